"""``margrove show``: what is in a model file."""

from __future__ import annotations

from typing import Any

from margrove.surface.display import AS_SAVED, tell_learned, tell_saved_certificate
from margrove.surface.learned import learned
from margrove.surface.models import encoder_of, learner_of, read_model, target_of
from margrove.surface.screen import Screen
from margrove.surface.train import plain_parameters

SHOWN_COLUMNS = 20


def show(screen: Screen, path: str) -> None:
    """Print parameters, columns, classes, certificate and lessons of a saved model."""
    model = read_model(path)
    learner, lessons = learner_of(model), learned(model)
    columns = _columns(model)
    record = {
        "command": "show",
        "model": path,
        "class": type(learner).__name__,
        "parameters": plain_parameters(learner),
        "target": target_of(model),
        "classes": learner.classes_.tolist(),
        "columns": columns,
        "status": str(learner.status_),
        "engine": learner.engine_,
        "certificate": learner.certificate_.to_dict(),
        "certificate_is": AS_SAVED,
        "learned": lessons.to_dict(),
    }
    screen.essential(f"{path}: {record['class']}, {record['status']}, engine {record['engine']}", style="bold")
    target = f"{record['target']!r}: " if record["target"] else ""
    screen.say(f"tells apart {target}{_listed([str(label) for label in learner.classes_], 12)}", indent=2)
    screen.say(
        f"from {len(columns):,} columns: {_listed([_column_words(c) for c in columns], SHOWN_COLUMNS)}", indent=2
    )
    settings = ", ".join(f"{name}={value!r}" for name, value in record["parameters"].items())
    screen.say(f"parameters: {settings}", indent=2)
    tell_saved_certificate(screen, learner.certificate_)
    tell_learned(screen, lessons)
    screen.document(record)


def _columns(model: Any) -> list[dict[str, Any]]:
    """Each column the model wants: its name and kind."""
    encoder = encoder_of(model)
    if encoder is not None:
        return [{"name": column["name"], "kind": column["kind"]} for column in encoder.columns_]
    width = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(width)])
    return [{"name": str(name), "kind": "numeric"} for name in names]


def _column_words(column: dict[str, Any]) -> str:
    return column["name"] if column["kind"] == "numeric" else f"{column['name']} ({column['kind']})"


def _listed(names: list[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
