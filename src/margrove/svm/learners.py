"""The estimators of `margrove.svm`, described for the registry."""

from margrove.learner import Learner, Offer, register

register(
    Learner(
        "margrove.svm.svc:SVC",
        called="a support vector machine",
        certify="margrove.svm.certificate:certify_svc",
        explain="margrove.svm.explain:explain_machine",
        has_unit_margin=True,
        file="margrove.svm.file:SVC_FILE",
        onnx="margrove.svm.onnx:support_vector_classifier",
        peers=("sklearn.svm:SVC",),
        adopt="margrove.svm.adopted:adopt_sklearn",
        search="margrove.svm.search:SVCCV",
        # C = 10 instead of 1 has a better mean yet (91.9 against 91.4 %), but it is worse on noisy tables
        # (german_credit, pima), takes three times as long on the largest, and is not what SVC() means in Python.
        offer=Offer("svm", "the widest margin, with a boundary that bends", place=8, is_searched=True),
    ),
    Learner(
        "margrove.svm.svc:NuSVC",
        called="a support vector machine",
        certify="margrove.svm.certificate:certify_nu_svc",
        explain="margrove.svm.explain:explain_machine",
        has_unit_margin=True,
        file="margrove.svm.file:NU_SVC_FILE",
        onnx="margrove.svm.onnx:support_vector_classifier",
        peers=("sklearn.svm:NuSVC",),
        adopt="margrove.svm.adopted:adopt_sklearn",
    ),
    Learner(
        "margrove.svm.svr:SVR",
        called="a support vector regression",
        certify="margrove.svm.certificate:certify_svr",
        explain="margrove.svm.explain:explain_machine",
        file="margrove.svm.file:SVR_FILE",
        onnx="margrove.svm.onnx:kernel_regression",
        peers=("sklearn.svm:SVR",),
        adopt="margrove.svm.adopted:adopt_sklearn",
        search="margrove.svm.search:SVRCV",
        # Not listed: its C and ε are in the unit of the target, and only a search knows them.
        offer=Offer("svm", "the flattest surface that leaves small errors alone", task="regress", is_listed=False),
    ),
    Learner(
        "margrove.svm.svr:NuSVR",
        called="a support vector regression",
        certify="margrove.svm.certificate:certify_nu_svr",
        explain="margrove.svm.explain:explain_machine",
        file="margrove.svm.file:NU_SVR_FILE",
        onnx="margrove.svm.onnx:kernel_regression",
        peers=("sklearn.svm:NuSVR",),
        adopt="margrove.svm.adopted:adopt_sklearn",
    ),
    Learner(
        "margrove.svm.one_class:OneClassSVM",
        called="a one-class support vector machine",
        certify="margrove.svm.certificate:certify_one_class",
        explain="margrove.svm.explain:explain_machine",
        file="margrove.svm.file:ONE_CLASS_FILE",
        onnx="margrove.svm.onnx:one_class",
        peers=("sklearn.svm:OneClassSVM",),
        adopt="margrove.svm.adopted:adopt_sklearn",
        needs_target=False,
    ),
)
