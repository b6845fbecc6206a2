"""What the tests of ONNX files share: write a model, run it, and hold the answers beside ours."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import write_onnx
from margrove.errors import MargroveWarning
from margrove.store import onnx_inputs

RELATIVE = 1e-8  # 1e-5 is promised; more than this would be a float32 somewhere in the graph


def run(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """What onnxruntime says of the rows, by the names of the outputs."""
    import onnxruntime

    file = io.BytesIO()
    written = write_onnx(model, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MargroveWarning)
        given = onnx_inputs(file, X)
    assert {each.name for each in session.get_inputs()} == set(given)
    assert [each.name for each in session.get_outputs()] == written.outputs
    return dict(zip(written.outputs, session.run(None, given), strict=True))


def assert_same(model: Any, X: Any, *, relative: float = RELATIVE) -> dict[str, NDArray[Any]]:
    """Every output is ours: labels equal, numbers within ``relative`` of themselves (or of a thousandth of the largest
    in their column, where they are smaller)."""
    found = run(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MargroveWarning)
        wanted = {"label" if "label" in found else "prediction": model.predict(X)}
        for name, method in (("scores", "decision_function"), ("probabilities", "predict_proba")):
            assert hasattr(model, method) == (name in found), name
            if hasattr(model, method):
                wanted[name] = getattr(model, method)(X)
    assert set(wanted) == set(found)
    for name, values in wanted.items():
        assert found[name].shape == values.shape, name
        if name == "label":
            assert found[name].tolist() == values.tolist()
        else:
            least = 1e-3 * np.abs(values).max(axis=0, initial=1e-9)
            off = float((np.abs(found[name] - values) / np.maximum(np.abs(values), least)).max(initial=0))
            assert off <= relative, f"{name}: {off}"
    return found
