"""The estimators of `margrove.svm`, described for the registry."""

from typing import Any

from margrove.learner import Learner, Offer, register


def _machine(place: str, *, certify: str, file: str, onnx: str, predict: str, **others: Any) -> Learner:
    return Learner(
        f"margrove.svm.{place}",
        certify=f"margrove.svm.certificate:{certify}",
        explain="margrove.svm.explain:explain_machine",
        file=f"margrove.svm.file:{file}",
        onnx=f"margrove.svm.onnx:{onnx}",
        predict=f"margrove.svm.predictor:{predict}",
        peers=(f"sklearn.svm:{place.partition(':')[2]}",),
        adopt="margrove.svm.adopted:adopt_sklearn",
        to_peer="margrove.svm.adopted:to_sklearn",
        **others,
    )


register(
    _machine(
        "svc:SVC",
        called="a support vector machine",
        certify="certify_svc",
        file="SVC_FILE",
        onnx="support_vector_classifier",
        predict="classifier",
        has_unit_margin=True,
        search="margrove.svm.search:SVCCV",
        # C = 10 instead of 1 has a better mean yet (91.9 against 91.4 %), but it is worse on noisy tables
        # (german_credit, pima), takes three times as long on the largest, and is not what SVC() means in Python.
        offer=Offer("svm", "the widest margin, with a curved boundary", place=8, is_searched=True),
    ),
    _machine(
        "svc:NuSVC",
        called="a support vector machine",
        certify="certify_nu_svc",
        file="NU_SVC_FILE",
        onnx="support_vector_classifier",
        predict="classifier",
        has_unit_margin=True,
    ),
    _machine(
        "svr:SVR",
        called="a support vector regression",
        certify="certify_svr",
        file="SVR_FILE",
        onnx="kernel_regression",
        predict="regression",
        search="margrove.svm.search:SVRCV",
        # Not listed: its C and ε are in the unit of the target, and only a search knows them.
        offer=Offer("svm", "the flattest surface, ignoring small errors", task="regress", is_listed=False),
    ),
    _machine(
        "svr:NuSVR",
        called="a support vector regression",
        certify="certify_nu_svr",
        file="NU_SVR_FILE",
        onnx="kernel_regression",
        predict="regression",
    ),
    _machine(
        "one_class:OneClassSVM",
        called="a one-class support vector machine",
        certify="certify_one_class",
        file="ONE_CLASS_FILE",
        onnx="one_class",
        predict="one_class",
        needs_target=False,
    ),
)
