"""``margrove certify``: recompute, from the model file and the data, everything the model claims."""

from __future__ import annotations

import warnings
from dataclasses import replace

from margrove.certificate import certify as recompute
from margrove.errors import ParameterError
from margrove.surface.cures import warnings_in_shell
from margrove.surface.display import tell_certificate
from margrove.surface.meter import metered
from margrove.surface.models import features_of, read_model, target_of
from margrove.surface.reading import STANDARD_STREAM, Reading
from margrove.surface.screen import Screen


def certify(screen: Screen, model_path: str, reading: Reading) -> bool:
    """Recompute and print the certificate; the answer is whether it holds."""
    if model_path == STANDARD_STREAM and reading.file == STANDARD_STREAM:
        raise ParameterError("MODEL and FILE are both '-'; only one can come from standard input.")
    model = read_model(model_path)
    if reading.target is None:
        reading = replace(reading, target=target_of(model))
    with metered(screen, "recomputing the certificate"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = reading.labelled()
        certificate = recompute(model, features_of(model, table), table.labels())
    for message in warnings_in_shell(caught):
        screen.warn(message)
    screen.say(f"{model_path} on {table.source}")
    tell_certificate(screen, certificate)
    screen.document({"command": "certify", "model": model_path, "table": table.source, **certificate.to_dict()})
    return certificate.holds is True
