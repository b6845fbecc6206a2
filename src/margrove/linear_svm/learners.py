"""The estimators of `margrove.linear_svm`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.linear_svm.svc:LinearSVC",
        called="a linear support vector machine",
        certify="margrove.linear_svm.certificate:certify_linear_svc",
        explain="margrove.linear_svm.explain:LinearMachine",
        has_unit_margin=True,
        certify_chunks="margrove.linear_svm.certificate:certify_linear_stream",
        file="margrove.linear_svm.file:LINEAR_SVC_FILE",
        onnx="margrove.onnx.answer:linear_classifier",
        peers=("sklearn.svm:LinearSVC",),
        adopt="margrove.linear_svm.adopted:adopt_classifier",
    ),
    Learner(
        "margrove.linear_svm.svr:LinearSVR",
        called="a linear support vector regression",
        certify="margrove.linear_svm.certificate:certify_linear_svr",
        explain="margrove.linear_svm.explain:LinearMachine",
        certify_chunks="margrove.linear_svm.certificate:certify_linear_stream",
        file="margrove.linear_svm.file:LINEAR_SVR_FILE",
        onnx="margrove.onnx.answer:linear_regression",
        peers=("sklearn.svm:LinearSVR",),
        adopt="margrove.linear_svm.adopted:adopt_regression",
    ),
)
