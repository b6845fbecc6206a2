"""Numbers, lists and statuses as text for a reader without mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from margrove.data.columns import clip
from margrove.data.formats import Format
from margrove.status import Status
from margrove.tree.rules import p_words
from margrove.tree.words import number_text

_MOST_DECIMALS = 6  # beyond them a number is written with an exponent
_LISTED = 6  # names in a sentence
# The statuses of a solve; the last two are of the leaderboard.
_ENDS: dict[str, str] = {
    Status.CONVERGED: "it was complete (converged)",
    Status.TIME_LIMIT: "the time limit was reached before it was complete",
    Status.MAX_ITER: "the limit of iterations was reached before it was complete",
    Status.INTERRUPTED: "it was interrupted",
    Status.STALLED: "it could make no further progress",
    Status.NONFINITE: "its numbers became too large",
    Status.PERFECT_LEARNER: "one of its models makes no mistakes, so no more were needed",
    Status.NO_BETTER_THAN_CHANCE: "another model would have been no better than guessing",
    Status.BOUND_REACHED: "the training error is as low as requested",
    Status.EARLY_STOPPED: "more rounds did not help on held-out rows",
    Status.IMPORTED: "the model was trained by another program",
    "not tried": "not tried",
    "failed": "could not be fitted",
}


def status_words(status: str) -> str:
    return _ENDS.get(str(status), str(status).replace("_", " "))


def share_words(share: float) -> str:
    """Return a share in per cent; 100 and 0 only if it is all or nothing."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return f"{100 * share:.2f} %"
    return f"{100 * share:.0f} %" if share in (0.0, 1.0) else f"{100 * share:.1f} %"


def signed(amount: float, most: float) -> str:
    """Return an amount with its sign, and with the decimals that the largest one beside it needs for three digits."""
    decimals = max(0, 2 - math.floor(math.log10(most))) if most > 0 else 0
    text = f"{amount:+,.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{amount:+.3g}"
    if not any(digit in text for digit in "123456789"):
        return text[1:]
    return f"−{text[1:]}" if amount < 0 else text


def p_text(p_value: float | None) -> str:
    return "" if p_value is None else p_words(p_value).removeprefix("p ").removeprefix("= ")


def listed(names: Sequence[str], last: str = "or") -> str:
    """Join a few names for a sentence."""
    shown = [clip(name, 40) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        return f"{', '.join(shown)} … ({len(names):,} in all)"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def sentence(text: str) -> str:
    """Return a text as a sentence: with a capital first and a full stop last."""
    text = text.strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")


def estimate_text(number: float, form: Format | None) -> str:
    """Return an estimate with its significant digits, four and all before the point, and its unit."""
    return number_text(float(f"{number:.4g}") if abs(number) < 1000 else round(number), form)


def more_columns(n: int) -> str:
    """Return the caption of a table that leaves out n columns."""
    return f"and {n:,} more columns" if n else ""
