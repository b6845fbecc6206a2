"""The estimators of `margrove.forest`, described for the registry."""

from functools import partial

from margrove.learner import Learner, Offer, register

_FOREST = partial(
    Learner,
    certify="margrove.forest.certificate:certify_forest",
    explain="margrove.forest.explain:ForestExplanation",
    predict="margrove.forest.predictor:forest",
    to_peer="margrove.forest.adopted:to_sklearn",
)
_OF_CLASSES = partial(_FOREST, file="margrove.forest.file:CLASSES_FILE", onnx="margrove.forest.onnx:forest_of_classes")
_OF_NUMBERS = partial(_FOREST, file="margrove.forest.file:NUMBERS_FILE", onnx="margrove.forest.onnx:forest_of_numbers")

register(
    _OF_CLASSES(
        "margrove.forest.classifier:RandomForestClassifier",
        called="a random forest",
        # On the test rows of nine tables (dna, digits, letter, madelon, magic04, pendigits, phoneme, segment, spambase)
        # the mean accuracy is 91.8 % with 300 trees, 91.5 % with 100. With a third or half of the columns it is 92.9
        # and 92.8 %, but without madelon, where few of 500 columns matter, 94.4 and 94.3 %, not 94.5 %.
        offer=Offer(
            "forest",
            "the mean of many trees, each grown from rows and columns drawn at random",
            place=9,
            defaults={"n_estimators": 300, "oob_score": True},
            takes_tables=True,
            is_tuned=True,
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
            # On the same tables 93.8 % with half of the columns, 91.8 % with √d; without madelon 94.9 % both.
            defaults={"n_estimators": 300, "max_features": 0.5},
            takes_tables=True,
            is_tuned=True,
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
