"""The estimators of `margrove.transfer`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.transfer.softmax:SoftmaxClassifier",
        called="softmax, the usual last layer of a network",
        certify="margrove.transfer.certificate:certify_softmax",
        explain="margrove.transfer.explain:SoftmaxWeights",
        file="margrove.transfer.file:SOFTMAX_FILE",
        onnx="margrove.transfer.onnx:softmax_classifier",
    ),
    Learner(
        "margrove.transfer.fine_tuned:FineTuned",
        called="a fine-tuned network",
        certify="margrove.transfer.certificate:certify_fine_tuned",
        explain="margrove.transfer.explain:FineTunedNetwork",
        file="margrove.transfer.file:TUNED_FILE",
    ),
    Learner(
        "margrove.transfer.features:ConvFeatures",
        file="margrove.transfer.file:FEATURES_FILE",
    ),
)
