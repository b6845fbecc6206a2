"""``margrove export``: write a saved model for another program."""

from __future__ import annotations

import io
import sys
from typing import Any

from margrove.app.files import check_output, read_model, write_content
from margrove.app.images.models import network_of, takes_pictures
from margrove.app.models import encoder_of, is_classifier, last_step_of
from margrove.app.options.table import STANDARD_STREAM
from margrove.app.screen.advice import warnings_told
from margrove.app.screen.console import Screen, put
from margrove.app.show import of_trees
from margrove.data.columns import some
from margrove.errors import InputError, check_choice
from margrove.store import write_libsvm_model, write_onnx

_SHOWN_COLUMNS, _REST = 12, "more (--json lists them)"
_ENDINGS = {"python": "py", "sql": "sql", "c": "c", "libsvm": "model", "onnx": "onnx"}


def export(screen: Screen, path: str, to: str, output: str) -> None:
    """Write the model for another program: a tree as code, an SVM as LIBSVM's model file, any model as an ONNX
    graph."""
    check_choice("--to", to, _ENDINGS)
    check_output(output, f"model.{_ENDINGS[to]}", path)
    if output == STANDARD_STREAM and to == "onnx" and (screen.is_json or sys.stdout.isatty()):
        raise InputError("an ONNX file is binary", file="-o -", cure="Name a file: -o model.onnx.")
    record: dict[str, Any] = {"command": "export", "model": path, "to": to, "output": output}
    model = read_model(path)
    if takes_pictures(model):
        model, record["codes"] = _after_the_network(screen, model, path)
    file = io.BytesIO()
    file.name = path  # for errors: the model that it is made of
    if to == "libsvm":
        record |= _write_libsvm(screen, model, file)
    elif to == "onnx":
        made = write_onnx(model, file)
        record |= {"inputs": made.inputs, "outputs": made.outputs}
    else:
        file.write(_tree_code(model, path, to))
    content = file.getvalue()
    if output == STANDARD_STREAM:
        if screen.is_json:
            record["content"] = content.decode()
        else:
            put(content)
    else:
        write_content(content, output)
        screen.essential(f"Exported {path} to {output} ({to})")
        if to == "onnx":
            named = [f"{fact['name']} ({fact['kind']})" for fact in record["inputs"]]
            screen.say(f"inputs: {some(named, _SHOWN_COLUMNS, rest=_REST)}", indent=2)
            screen.say(f"outputs: {', '.join(record['outputs'])}", indent=2)
            words = sorted({repr(fact["missing"]) for fact in record["inputs"] if "missing" in fact})
            in_text = f", or {' or '.join(words)} in a text column" if words else ""
            screen.say(f"A missing cell is NaN{in_text}.", indent=2)
    screen.document(record)


def _after_the_network(screen: Screen, model: Any, path: str) -> tuple[Any, dict[str, Any]]:
    """Return the part of a model of pictures behind the network, and facts about the network, which is not exported."""
    features = network_of(model)
    if features is model:
        problem = f"a {type(model).__name__} is a whole network, which cannot be exported"
        raise InputError(problem, file=path, cure="Its PyTorch weights are margrove.load(…).weights_.")
    name, layer, n = features.network_name_, features.layer_, features.n_features_out_
    screen.warn(
        f"the network is not included: the model takes the {n:,} numbers that {name} ({layer}) computes from a picture."
    )
    codes = {"network": name, "fingerprint": features.network_digest_, "layer": layer, "numbers": n}
    return model[-1], codes


def _write_libsvm(screen: Screen, model: Any, file: io.BytesIO) -> dict[str, Any]:
    """Write LIBSVM's text; return the names of its columns and labels."""
    learner, encoder = last_step_of(model), encoder_of(model)
    with warnings_told(screen):
        write_libsvm_model(learner, file)
    names = None if encoder is None else [str(name) for name in encoder.get_feature_names_out()]
    if names is not None:
        few = some([f"{number} {name}" for number, name in enumerate(names, start=1)], _SHOWN_COLUMNS, rest=_REST)
        screen.warn(f"the columns of the LIBSVM model are those of the encoder, scaled: {few}.")
    labels = learner.classes_.tolist() if is_classifier(learner) else None
    return {"columns": names, "labels": labels}


def _tree_code(model: Any, path: str, language: str) -> bytes:
    model = of_trees(model, path, f"--to {language}")
    if not hasattr(model, f"to_{language}"):
        problem = f"--to {language} is for a single tree, and {type(model).__name__} has {len(model.estimators_):,}"
        cure = "Use --to onnx" + (
            ", or --to c." if hasattr(model, "to_c") else ", or train a single tree: --model tree."
        )
        raise InputError(problem, file=path, cure=cure)
    return f"{getattr(model, f'to_{language}')()}\n".encode()
