"""``margrove show`` of a model of pictures."""

from __future__ import annotations

from typing import Any

from margrove.app.images.models import network_of
from margrove.app.models import learner_of, plain_parameters
from margrove.app.screen.console import Screen
from margrove.app.screen.display import AS_SAVED, tell_learned, tell_saved_certificate
from margrove.app.summary import learned
from margrove.data.columns import some

SHOWN_CLASSES = 12


def show_image_model(screen: Screen, path: str, model: Any) -> None:
    """Print network, classes, certificate and, of a learner on codes, what it learned."""
    first, learner = network_of(model), learner_of(model)
    is_on_codes = learner is not first
    lessons = learned(model) if is_on_codes else None
    seen = first.preparation_
    record = {
        "command": "show",
        "model": path,
        "class": type(learner).__name__,
        "parameters": plain_parameters(learner),
        "network": {"name": first.network_name_, "fingerprint": first.network_digest_},
        "layer": getattr(first, "layer_", None),
        "size": seen.size,
        "classes": learner.classes_.tolist(),
        "status": str(learner.status_),
        "engine": learner.engine_,
        "certificate": learner.certificate_.to_dict(),
        "certificate_is": AS_SAVED,
        "learned": None if lessons is None else lessons.to_dict(),
    }
    screen.essential(f"{path}: {record['class']}, {record['status']}, engine {record['engine']}", style="bold")
    screen.say(f"tells apart pictures of {some([*map(str, record['classes'])], SHOWN_CLASSES)}", indent=2)
    screen.say(f"network: {first.network_name_}, fingerprint {first.network_digest_}", indent=2)
    if is_on_codes:
        screen.say(f"learns from {first.n_features_out_:,} numbers for each picture ({first.layer_})", indent=2)
    screen.say(f"sees {seen.size} × {seen.size} pixels, {'grey' if seen.mode == 'L' else 'in colour'}", indent=2)
    tell_saved_certificate(screen, learner.certificate_)
    if lessons is not None:
        tell_learned(screen, lessons, has_columns=False)
    screen.document(record)
