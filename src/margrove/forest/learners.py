"""The estimators of `margrove.forest`, described for the registry."""

from margrove.learner import Learner, Offer, register

_CERTIFY = "margrove.forest.certificate:certify_forest"
_EXPLAIN = "margrove.forest.explain:ForestExplanation"
_OF_CLASSES = {"certify": _CERTIFY, "explain": _EXPLAIN, "file": "margrove.forest.file:CLASSES_FILE"}
_OF_NUMBERS = {"certify": _CERTIFY, "explain": _EXPLAIN, "file": "margrove.forest.file:NUMBERS_FILE"}

register(
    Learner(
        "margrove.forest.classifier:RandomForestClassifier",
        called="a random forest",
        onnx="margrove.forest.onnx:forest_of_classes",
        offer=Offer(
            "forest",
            "the mean of many trees, each grown from rows and columns drawn at random",
            place=8,
            defaults={"n_estimators": 300, "oob_score": True},
            takes_tables=True,
            remark="Defaults: n_estimators=300, max_features=sqrt.",
        ),
        **_OF_CLASSES,
    ),
    Learner(
        "margrove.forest.regressor:RandomForestRegressor",
        called="a random forest",
        onnx="margrove.forest.onnx:forest_of_numbers",
        offer=Offer(
            "forest",
            "the mean of many trees, each grown from rows and columns drawn at random",
            task="regress",
            defaults={"n_estimators": 300, "oob_score": True, "max_features": 0.33},
            takes_tables=True,
            remark="Defaults: n_estimators=300, max_features=0.33.",
        ),
        **_OF_NUMBERS,
    ),
    Learner(
        "margrove.forest.classifier:ExtraTreesClassifier",
        called="a forest of extremely randomised trees",
        offer=Offer(
            "extra-trees",
            "the mean of many trees whose tests are drawn at random",
            defaults={"n_estimators": 300},
            takes_tables=True,
            is_listed=False,
        ),
        onnx="margrove.forest.onnx:forest_of_classes",
        **_OF_CLASSES,
    ),
    Learner(
        "margrove.forest.regressor:ExtraTreesRegressor",
        called="a forest of extremely randomised trees",
        offer=Offer(
            "extra-trees",
            "the mean of many trees whose tests are drawn at random",
            task="regress", defaults={"n_estimators": 300},
            takes_tables=True,
            is_listed=False,
        ),
        onnx="margrove.forest.onnx:forest_of_numbers",
        **_OF_NUMBERS,
    ),
)
