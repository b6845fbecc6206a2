"""The estimators of `margrove.multiclass`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.multiclass.classifiers:OneVsRestClassifier",
        called="one machine for each class",
        certify="margrove.multiclass.certificate:certify_coded",
        explain="margrove.multiclass.explain:Machines",
        file="margrove.multiclass.file:SCHEME_FILE",
        onnx="margrove.multiclass.onnx:coded_classifier",
        peers=("sklearn.multiclass:OneVsRestClassifier",),
    ),
    Learner(
        "margrove.multiclass.classifiers:OneVsOneClassifier",
        called="one machine for each pair of classes",
        certify="margrove.multiclass.certificate:certify_coded",
        explain="margrove.multiclass.explain:Machines",
        file="margrove.multiclass.file:SCHEME_FILE",
        onnx="margrove.multiclass.onnx:coded_classifier",
        peers=("sklearn.multiclass:OneVsOneClassifier",),
    ),
    Learner(
        "margrove.multiclass.classifiers:BitStringClassifier",
        called="machines by bit strings",
        certify="margrove.multiclass.certificate:certify_coded",
        explain="margrove.multiclass.explain:Machines",
        file="margrove.multiclass.file:SCHEME_FILE",
        onnx="margrove.multiclass.onnx:coded_classifier",
    ),
)
