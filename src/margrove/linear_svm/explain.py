"""The explanation of a linear support vector machine: its weights, and how near they are to the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.explanation import Weights


class LinearSVMWeights(Weights):
    """The weights of a linear support vector machine."""

    def solve(self) -> dict[str, Any] | None:
        model = self.model
        lengths = np.linalg.norm(np.atleast_2d(model.coef_), axis=1)
        widths = [2 / float(length) if length > 0 else None for length in lengths] if self.classes else []
        # That of the certificate, which was recomputed, before the solver's own.
        claimed = [claim.values for claim in model.certificate_.claims if claim.name == "relative duality gap"]
        gaps = claimed[0] if claimed else model.gap_
        if np.isnan(gaps).any():  # a model that was solved elsewhere has none
            return None
        return {"solver": model.solver_, "gap": max(0.0, float(np.max(gaps))), "margins": widths}
