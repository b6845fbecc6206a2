"""Other packages over our estimators (the extra ``clients``): each in a small real use, with a result that is compared.

Trees in shap, dtreeviz and treeinterpreter are in `test_trees.py`.
"""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import recall_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def rare():
    """Two overlapping classes, of which the second is rare."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.08).astype(int)
    return rng.normal(size=(400, 3)) + 1.2 * y[:, None], y


MODELS = [
    margrove.SVC(),
    margrove.LinearSVC(),
    margrove.Perceptron(max_iter=200, random_state=0),
    margrove.DecisionTreeClassifier(max_depth=3),
    margrove.AdaBoostClassifier(n_estimators=4),
    margrove.OneVsRestClassifier(margrove.SVC()),
]


# joblib with processes


@pytest.fixture
def _processes_end():
    yield
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


def predictions_of_a_fit(model, X, y):
    return model.fit(X, y).predict(X)


@pytest.mark.usefixtures("_processes_end")
def test_processes_fit_and_predict_as_one_process_does(iris):
    X, y = iris
    X, y = X[:100], y[:100]
    models = [clone(model) for model in MODELS]
    apart = joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(predictions_of_a_fit)(model, X, y) for model in models
    )
    for model, predicted in zip(models, apart, strict=True):
        np.testing.assert_array_equal(predicted, predictions_of_a_fit(clone(model), X, y))
    fitted = [clone(model).fit(X, y) for model in models]
    sent = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(model.predict)(X) for model in fitted)
    for model, predicted in zip(fitted, sent, strict=True):
        np.testing.assert_array_equal(predicted, model.predict(X))


@pytest.mark.usefixtures("_processes_end")
def test_a_search_in_processes_finds_what_one_process_finds(iris):
    grid = {"svc__C": [0.1, 1.0, 10.0]}
    searches = [
        GridSearchCV(make_pipeline(StandardScaler(), margrove.SVC()), grid, cv=3, n_jobs=jobs).fit(*iris)
        for jobs in (1, 2)
    ]
    alone, apart = (search.cv_results_["mean_test_score"] for search in searches)
    np.testing.assert_array_equal(apart, alone)


# shap without trees


def test_shap_explains_linear_models_directly(diabetes):
    shap = pytest.importorskip("shap")
    X, y = diabetes
    model = margrove.LinearSVR(C=10.0).fit(X, y)
    explained = shap.LinearExplainer(model, X[:80])(X[:10])
    base = explained.base_values.ravel()  # intercept_ has shape (1,), as scikit-learn's
    np.testing.assert_allclose(explained.values.sum(axis=1) + base, model.predict(X[:10]))
    np.testing.assert_allclose(explained.values, (X[:10] - X[:80].mean(axis=0)) * model.coef_, atol=1e-6)


def test_shap_explains_the_decision_function_of_a_kernel(iris):
    shap = pytest.importorskip("shap")
    X, y = iris
    model = margrove.SVC().fit(X[:100], y[:100])
    explained = shap.Explainer(model.decision_function, X[:100:5], seed=0)(X[:6])
    np.testing.assert_allclose(
        explained.values.sum(axis=1) + explained.base_values, model.decision_function(X[:6]), atol=1e-6
    )


# imbalanced-learn


@pytest.mark.parametrize("model", [margrove.SVC(), margrove.DecisionTreeClassifier(max_depth=3)], ids=repr)
def test_sampling_before_the_fit_finds_more_of_the_rare_class(model, rare):
    sampling = pytest.importorskip("imblearn.over_sampling")
    pipelines = pytest.importorskip("imblearn.pipeline")
    X, y = rare
    plain = recall_score(y, clone(model).fit(X, y).predict(X))
    for sampler in (sampling.RandomOverSampler(random_state=0), sampling.SMOTE(random_state=0)):
        sampled = pipelines.make_pipeline(sampler, clone(model)).fit(X, y)
        assert recall_score(y, sampled.predict(X)) > plain + 0.2


def test_balanced_bagging_of_our_trees(rare):
    ensemble = pytest.importorskip("imblearn.ensemble")
    X, y = rare
    tree = margrove.DecisionTreeClassifier(max_depth=3)
    bag = ensemble.BalancedBaggingClassifier(tree, n_estimators=5, random_state=0).fit(X, y)
    assert recall_score(y, bag.predict(X)) > recall_score(y, clone(tree).fit(X, y).predict(X)) + 0.2
    assert isinstance(bag.estimators_[0][-1], margrove.DecisionTreeClassifier)


def test_our_machine_as_the_judge_of_smote(rare):
    sampling = pytest.importorskip("imblearn.over_sampling")
    X, y = rare
    _, labels = sampling.SVMSMOTE(svm_estimator=margrove.SVC(), random_state=0).fit_resample(X, y)
    assert np.bincount(labels)[1] > 3 * np.bincount(y)[1]


# Optuna


def test_optuna_finds_the_better_penalty():
    optuna = pytest.importorskip("optuna")
    optuna.logging.disable_default_handler()
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:200])

    def score(trial):
        model = margrove.SVC(C=trial.suggest_float("C", 1e-5, 10.0, log=True))
        return cross_val_score(model, X, y[:200], cv=3).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.enqueue_trial({"C": 1e-5})
    study.enqueue_trial({"C": 1.0})
    study.optimize(score, n_trials=6)
    worst, good = study.trials[0].value, study.trials[1].value
    assert study.best_value >= good > worst
    assert study.best_params["C"] > 1e-3


# MAPIE


def covered(y, intervals):
    return ((intervals[:, 0, 0] <= y) & (y <= intervals[:, 1, 0])).mean()


@pytest.mark.parametrize("model", [margrove.SVR(C=100), margrove.DecisionTreeRegressor(max_depth=3)], ids=repr)
def test_conformal_intervals_contain_what_they_promise(model, diabetes):
    regression = pytest.importorskip("mapie.regression")
    X, y = diabetes
    wide, narrow = (
        regression.SplitConformalRegressor(clone(model), confidence_level=level, prefit=False)
        .fit(X[:150], y[:150])
        .conformalize(X[150:300], y[150:300])
        .predict_interval(X[300:])[1]
        for level in (0.9, 0.5)
    )
    assert covered(y[300:], wide) > 0.85
    assert 0.4 < covered(y[300:], narrow) < 0.7
    cross = regression.CrossConformalRegressor(clone(model), confidence_level=0.9).fit_conformalize(X[:300], y[:300])
    assert covered(y[300:], cross.predict_interval(X[300:])[1]) > 0.85


def test_conformal_sets_contain_the_class(iris):
    classification = pytest.importorskip("mapie.classification")
    X, y = iris
    fitted = margrove.SVC(probability=True, random_state=0).fit(X[::3], y[::3])
    sets = classification.SplitConformalClassifier(fitted, confidence_level=0.9).conformalize(X[1::3], y[1::3])
    _, contains = sets.predict_set(X[2::3])
    assert contains[np.arange(50), y[2::3], 0].mean() > 0.85
    assert contains.sum(axis=1).mean() < 1.5


# skops and mlflow


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_skops_keeps_predictions_and_certificate(model, iris):
    skops = pytest.importorskip("skops.io")
    X, y = iris[0][:100], iris[1][:100]
    fitted = clone(model).fit(X, y)
    data = skops.dumps(fitted)
    unknown = skops.get_untrusted_types(data=data)
    assert all(name.startswith("margrove.") for name in unknown)
    again = skops.loads(data, trusted=unknown)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.certificate_.to_json() == fitted.certificate_.to_json()
    assert margrove.certify(again, X, y).holds == margrove.certify(fitted, X, y).holds
    with pytest.raises(TypeError, match="Untrusted types"):
        skops.loads(data)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_skops_trusts_what_is_converted_but_for_the_nodes_of_trees(model, iris):
    skops = pytest.importorskip("skops.io")
    X, y = iris[0][:100].astype(np.float32), iris[1][:100]
    fitted = clone(model).fit(X, y)
    data = skops.dumps(margrove.to_sklearn(fitted))
    unknown = skops.get_untrusted_types(data=data)
    is_of_trees = isinstance(model, margrove.DecisionTreeClassifier | margrove.AdaBoostClassifier)
    assert unknown == (["sklearn.tree._tree.Tree"] if is_of_trees else [])
    np.testing.assert_array_equal(skops.loads(data, trusted=unknown).predict(X), fitted.predict(X))


@pytest.mark.filterwarnings(  # mlflow's own use of SQLAlchemy, and its own type hints
    "ignore:The ``noload`` loader strategy is deprecated", "ignore:.*Any type hint is inferred as AnyType:UserWarning"
)
def test_mlflow_logs_and_loads(iris, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")  # read by the import
    mlflow = pytest.importorskip("mlflow")
    skops = pytest.importorskip("skops.io")
    monkeypatch.chdir(tmp_path)
    X, y = iris
    model = make_pipeline(StandardScaler(), margrove.SVC(C=3)).fit(X, y)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.create_experiment("margrove", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("margrove")
    with mlflow.start_run():
        mlflow.log_params({"C": 3})
        logged = mlflow.sklearn.log_model(
            model,
            name="model",
            skops_trusted_types=skops.get_untrusted_types(data=skops.dumps(model)),
            pip_requirements=["margrove"],  # else mlflow starts a process to find them
        )
    again = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert margrove.certify(again[-1], again[:-1].transform(X), y).holds
    served = mlflow.pyfunc.load_model(logged.model_uri)
    np.testing.assert_array_equal(served.predict(X), model.predict(X))
    assert list(Path(tmp_path, "artifacts").rglob("MLmodel"))
