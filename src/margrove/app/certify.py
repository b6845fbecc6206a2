"""``margrove certify``: recompute, from the model file and the data, everything the model claims."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from margrove.app.images.models import opened, refuse_unlabelled
from margrove.app.models import features_of
from margrove.app.options.table import Reading
from margrove.app.screen.advice import warnings_told
from margrove.app.screen.console import Screen
from margrove.app.screen.display import tell_certificate
from margrove.app.screen.progress import metered
from margrove.certificate import certify as recompute
from margrove.explanation import explanation_of


def certify(screen: Screen, model_path: str, reading: Reading) -> bool:
    """Recompute and print the certificate; return whether it holds."""
    model, pictures, reading = opened(model_path, reading)
    if pictures is not None:
        refuse_unlabelled(model, pictures)
    with warnings_told(screen), metered(screen, "recomputing the certificate"):
        if pictures is None and reading.cluster is not None:
            from margrove.app.cluster import certified_on_cluster

            source, certificate = str(reading.file), certified_on_cluster(model, reading)
        elif pictures is None:
            match explanation_of(model).task:
                case "classes":
                    table = reading.labelled()
                    targets: NDArray[Any] | None = table.labels()
                case "numbers":
                    table, targets = reading.valued()
                case "novelty":
                    table, targets = reading.unlabelled(), None
            source, certificate = table.source, recompute(model, features_of(model, table), targets)
        else:
            source, certificate = str(pictures.root), recompute(model, pictures, pictures.labels)
    screen.say(f"{model_path} on {source}")
    tell_certificate(screen, certificate)
    screen.document({"command": "certify", "model": model_path, "table": source, **certificate.to_dict()})
    return certificate.holds is True
