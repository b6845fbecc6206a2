"""The estimators of `margrove.linear`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.linear.centroid:BasicLinearClassifier",
        called="the basic linear classifier, halfway between the class means",
        certify="margrove.linear.certificate:certify_centroid",
        explain="margrove.explanation:Weights",
        file="margrove.linear.file:LINEAR_FILE",
        onnx="margrove.onnx.answer:linear_classifier",
    ),
    Learner(
        "margrove.linear.least_squares:LeastSquaresClassifier",
        called="least squares",
        certify="margrove.linear.certificate:certify_least_squares",
        explain="margrove.explanation:Weights",
        file="margrove.linear.file:LINEAR_FILE",
        onnx="margrove.onnx.answer:linear_classifier",
    ),
    Learner(
        "margrove.linear.perceptron:Perceptron",
        called="a perceptron",
        certify="margrove.linear.certificate:certify_perceptron",
        explain="margrove.linear.explain:explain_perceptron",
        file="margrove.linear.file:PERCEPTRON_FILE",
        onnx="margrove.linear.onnx:perceptron",
        peers=("sklearn.linear_model:Perceptron",),
    ),
    Learner(
        "margrove.linear.kernel_perceptron:KernelPerceptron",
        called="a kernel perceptron",
        certify="margrove.linear.certificate:certify_kernel_perceptron",
        explain="margrove.linear.explain:KernelPerceptronRows",
        file="margrove.linear.file:KERNEL_PERCEPTRON_FILE",
        onnx="margrove.linear.onnx:kernel_perceptron",
    ),
)
