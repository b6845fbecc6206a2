"""The estimators of `margrove.multiclass`, described for the registry."""

from margrove.learner import Learner, register


def _scheme(name: str, called: str, *peers: str) -> Learner:
    return Learner(
        f"margrove.multiclass.classifiers:{name}",
        called=called,
        certify="margrove.multiclass.certificate:certify_coded",
        explain="margrove.multiclass.explain:CodedMachines",
        file="margrove.multiclass.file:SCHEME_FILE",
        onnx="margrove.multiclass.onnx:coded_classifier",
        peers=peers,
        to_peer="margrove.store.adoption:with_learners_of" if peers else None,
    )


register(
    _scheme("OneVsRestClassifier", "one machine for each class", "sklearn.multiclass:OneVsRestClassifier"),
    _scheme("OneVsOneClassifier", "one machine for each pair of classes", "sklearn.multiclass:OneVsOneClassifier"),
    _scheme("BitStringClassifier", "machines by bit strings"),
)
