"""The estimators of `margrove.boost`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.boost.classifier:AdaBoostClassifier",
        called="AdaBoost",
        certify="margrove.boost.certificate:certify_boost",
        explain="margrove.boost.explain:explain_vote",
        file="margrove.boost.file:CLASSES_FILE",
        onnx="margrove.boost.onnx:boosted_classes",
        peers=("sklearn.ensemble:AdaBoostClassifier",),
    ),
    Learner(
        "margrove.boost.regressor:AdaBoostRegressor",
        called="AdaBoost",
        certify="margrove.boost.certificate:certify_boost_of_numbers",
        explain="margrove.boost.explain:explain_vote",
        file="margrove.boost.file:NUMBERS_FILE",
        onnx="margrove.boost.onnx:boosted_numbers",
        peers=("sklearn.ensemble:AdaBoostRegressor",),
    ),
)
