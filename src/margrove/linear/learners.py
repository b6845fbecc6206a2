"""The estimators of `margrove.linear`, described for the registry."""

from margrove.learner import Learner, Offer, register

register(
    Learner(
        "margrove.linear.centroid:BasicLinearClassifier",
        called="the basic linear classifier, halfway between the class means",
        certify="margrove.linear.certificate:certify_centroid",
        explain="margrove.explanation:Weights",
        file="margrove.linear.file:LINEAR_FILE",
        predict="margrove.linear.predictor:linear_classifier",
        onnx="margrove.onnx.prediction:linear_classifier",
        offer=Offer("basic", "halfway between the class means", place=1),
    ),
    Learner(
        "margrove.linear.least_squares:LeastSquaresClassifier",
        called="least squares",
        certify="margrove.linear.certificate:certify_least_squares",
        explain="margrove.explanation:Weights",
        file="margrove.linear.file:LINEAR_FILE",
        predict="margrove.linear.predictor:linear_classifier",
        onnx="margrove.onnx.prediction:linear_classifier",
        offer=Offer("least-squares", "the plane with the least squared error", place=2),
    ),
    Learner(
        "margrove.linear.perceptron:Perceptron",
        called="a perceptron",
        certify="margrove.linear.certificate:certify_perceptron",
        explain="margrove.linear.explain:explain_perceptron",
        file="margrove.linear.file:PERCEPTRON_FILE",
        predict="margrove.linear.predictor:perceptron",
        onnx="margrove.linear.onnx:perceptron",
        peers=("sklearn.linear_model:Perceptron",),
        to_peer="margrove.linear.adopted:to_sklearn",
        # Averaged, because real tables are seldom separable and then the last weights are as good as any. On the 23
        # tables 100 passes are as accurate as 1000 (mean 87.7 and 87.8 %) in a tenth of the time.
        offer=Offer(
            "perceptron",
            "corrects its mistakes; averaged weights",
            place=3,
            defaults={"variant": "averaged", "max_iter": 100},
        ),
    ),
    Learner(
        "margrove.linear.kernel_perceptron:KernelPerceptron",
        called="a kernel perceptron",
        certify="margrove.linear.certificate:certify_kernel_perceptron",
        explain="margrove.svm.explain:Kernels",
        file="margrove.linear.file:KERNEL_PERCEPTRON_FILE",
        predict="margrove.linear.predictor:kernel_perceptron",
        onnx="margrove.linear.onnx:kernel_perceptron",
        offer=Offer("kernel-perceptron", "corrects its mistakes; a curved boundary", place=5),
    ),
)
