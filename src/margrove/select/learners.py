"""The estimators of `margrove.select`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.select.selector:ImpuritySelector",
        file="margrove.select.file:SELECTOR_FILE",
        onnx="margrove.select.onnx:selected",
    ),
)
