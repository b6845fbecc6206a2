"""The estimators of `margrove.forest`, described for the registry."""

from functools import partial

from margrove.learner import Learner, Offer, register

_FOREST = partial(
    Learner,
    certify="margrove.forest.certificate:certify_forest",
    explain="margrove.forest.explain:ForestExplanation",
)
_OF_CLASSES = partial(_FOREST, file="margrove.forest.file:CLASSES_FILE", onnx="margrove.forest.onnx:forest_of_classes")
_OF_NUMBERS = partial(_FOREST, file="margrove.forest.file:NUMBERS_FILE", onnx="margrove.forest.onnx:forest_of_numbers")

register(
    _OF_CLASSES(
        "margrove.forest.classifier:RandomForestClassifier",
        called="a random forest",
        offer=Offer(
            "forest",
            "the mean of many trees, each grown from rows and columns drawn at random",
            place=8,
            defaults={"n_estimators": 300, "oob_score": True},
            takes_tables=True,
            remark="Defaults: n_estimators=300, max_features=sqrt.",
        ),
    ),
    _OF_NUMBERS(
        "margrove.forest.regressor:RandomForestRegressor",
        called="a random forest",
        offer=Offer(
            "forest",
            "the mean of many trees, each grown from rows and columns drawn at random",
            task="regress",
            defaults={"n_estimators": 300, "oob_score": True, "max_features": 0.33},
            takes_tables=True,
            remark="Defaults: n_estimators=300, max_features=0.33.",
        ),
    ),
    _OF_CLASSES(
        "margrove.forest.classifier:ExtraTreesClassifier",
        called="a forest of extremely randomised trees",
        offer=Offer(
            "extra-trees",
            "the mean of many trees whose tests are drawn at random",
            defaults={"n_estimators": 300},
            takes_tables=True,
            is_listed=False,
        ),
    ),
    _OF_NUMBERS(
        "margrove.forest.regressor:ExtraTreesRegressor",
        called="a forest of extremely randomised trees",
        offer=Offer(
            "extra-trees",
            "the mean of many trees whose tests are drawn at random",
            task="regress",
            defaults={"n_estimators": 300},
            takes_tables=True,
            is_listed=False,
        ),
    ),
)
