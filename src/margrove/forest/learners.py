"""The estimators of `margrove.forest`, described for the registry."""

from margrove.learner import Learner, register

_OF_CLASSES = {
    "RandomForestClassifier": "a random forest",
    "ExtraTreesClassifier": "a forest of extremely randomised trees",
}
for name, called in _OF_CLASSES.items():
    register(
        Learner(
            f"margrove.forest.classifier:{name}",
            called=called,
            certify="margrove.forest.certificate:certify_forest",
        )
    )
for name, called in _OF_CLASSES.items():
    register(
        Learner(
            f"margrove.forest.regressor:{name.replace('Classifier', 'Regressor')}",
            called=called,
            certify="margrove.forest.certificate:certify_forest",
        )
    )
