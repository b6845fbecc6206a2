"""The estimator of `margrove.calibrate`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.calibrate.classifier:CalibratedClassifier",
        called="a classifier with calibrated probabilities",
        certify="margrove.calibrate.certificate:certify_calibrated",
        explain="margrove.calibrate.explain:Calibrated",
        file="margrove.calibrate.file:CALIBRATED_FILE",
        onnx="margrove.calibrate.onnx:calibrated_classifier",
    )
)
