"""The estimators of `margrove.data`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.data.encoder:TableEncoder",
        file="margrove.data.file:ENCODER_FILE",
        onnx="margrove.data.onnx:encoded",
    ),
)
