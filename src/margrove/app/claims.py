"""The numbers of a certificate's claims as text, for the screen and for reports."""

from __future__ import annotations

import math

from margrove.certificate import Claim

_LARGEST_COUNT = 1e9  # beyond, nobody reads all digits


def number_text(value: float) -> str:
    """Return a count in full, a measure with three digits."""
    is_count = value.is_integer() and abs(value) < _LARGEST_COUNT
    return f"{value:,.0f}" if is_count else f"{value:.3g}"


def value_texts(claim: Claim, at_most: str = " ≤ ") -> list[str]:
    """Return the values of a claim, each with its limit where there is one."""
    texts = [number_text(value) for value in claim.values]
    if claim.limits is None:
        return texts
    limits = [f"{at_most}{number_text(limit)}" if math.isfinite(limit) else "" for limit in claim.limits]
    return [text + limit for text, limit in zip(texts, limits, strict=True)]
