"""`ImpuritySelector` in a model file."""

from __future__ import annotations

from typing import Any

from margrove.estimator import with_parameters
from margrove.select.scores import KINDS
from margrove.store.arrays import HALF_WHOLE, Array, Arrays
from margrove.store.fault import FaultError
from margrove.store.schema import ARRAYS, ENGINE_NAME, N_FEATURES, NAMES, OUTPUT, Draft, Part, Schema


class _SelectorFile(Schema):
    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        named = with_parameters(model, score_func=model.score_name())  # a file holds no code
        return super().parameters_to_json(named, arrays)

    def build(self, draft: Draft) -> Any:
        if not draft.fitted["support_"].any():
            raise FaultError("support_ chooses no column")
        return super().build(draft)


def _read_engine(value: Any, draft: Draft) -> None:
    draft.fitted["engine_"] = ENGINE_NAME.read("engine_", value)


SELECTOR_FILE = _SelectorFile(
    (
        Array("scores_", "d", has_gaps=True),
        Array("p_values_", "d", has_gaps=True, least=0, most=1),
        Array("gains_", "d", has_gaps=True),
        Array("best_thresholds_", "d", has_gaps=True),
        Array("support_", "d", HALF_WHOLE, least=0, most=1, is_truth=True),
    ),
    limits={"score_func": tuple(KINDS)},
    parts=(N_FEATURES, NAMES, Part("engine", lambda model, *_: model.engine_, _read_engine), ARRAYS, OUTPUT),
    is_for_schemes=False,
    n_out=lambda model: int(model.support_.sum()),
)
