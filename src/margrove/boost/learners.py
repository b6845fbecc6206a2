"""The estimators of `margrove.boost`, described for the registry."""

from margrove.learner import Learner, Offer, register

register(
    Learner(
        "margrove.boost.classifier:AdaBoostClassifier",
        called="AdaBoost",
        certify="margrove.boost.certificate:certify_boost",
        explain="margrove.boost.explain:explain_vote",
        file="margrove.boost.file:CLASSES_FILE",
        predict="margrove.boost.predictor:boosted",
        onnx="margrove.boost.onnx:boosted_classes",
        peers=("sklearn.ensemble:AdaBoostClassifier",),
        to_peer="margrove.store.adoption:with_learners_of",
        # Of depths 1 to 6, 50 to 400 rounds, with and without early stopping: the best mean on 23 real tables, but for
        # settings with more knobs that are within noise of it (docs/guide/boosting.md). Subsets of very many levels,
        # such as titanic's tickets, fit whatever rows weigh most: one level against the rest has 81 % there, not 67.
        offer=Offer(
            "adaboost",
            "a vote of small trees, each focused on the errors of those before",
            place=7,
            defaults={"n_estimators": 200, "early_stopping": False},
            takes_tables=True,
            base="margrove.tree.classifier:DecisionTreeClassifier",
            boosted={"max_depth": 3, "categorical": "one_vs_rest"},
            remark="Defaults: n_estimators=200, estimator__max_depth=3, one level of a category per test, no early "
            "stopping (early_stopping=true), the most accurate settings on 23 benchmark tables.",
        ),
    ),
    Learner(
        "margrove.boost.regressor:AdaBoostRegressor",
        called="AdaBoost",
        certify="margrove.boost.certificate:certify_boost_of_numbers",
        explain="margrove.boost.explain:explain_vote",
        file="margrove.boost.file:NUMBERS_FILE",
        predict="margrove.boost.predictor:boosted",
        onnx="margrove.boost.onnx:boosted_numbers",
        peers=("sklearn.ensemble:AdaBoostRegressor",),
        to_peer="margrove.store.adoption:with_learners_of",
        # 3-fold on nine real tables (1,500 rows at most) the mean R² is 0.44; a tree alone has 0.35, trees of depth 3
        # or 4 have 0.34, 200 trees of depth 8 0.46 in eight times the time; one level at a time 0.44.
        offer=Offer(
            "adaboost",
            "the median of small trees, each focused on the errors of those before",
            task="regress",
            defaults={"n_estimators": 50},
            takes_tables=True,
            base="margrove.tree.regressor:DecisionTreeRegressor",
            boosted={"max_depth": 6},
            remark="Defaults: n_estimators=50, estimator__max_depth=6.",
        ),
    ),
)
