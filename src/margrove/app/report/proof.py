"""The certificate of a model, explained and as a table."""

from __future__ import annotations

import math
from typing import Any

from margrove.app.report.blocks import Block, Grid, note
from margrove.app.report.plain_words import share_words
from margrove.app.screen.display import OF_TREES, SEARCHED, number_text, value_texts
from margrove.certificate import Certificate, Claim
from margrove.explanation import Explanation, counted, explanation_of

_MOST_MACHINES = 4  # whose numbers stand side by side
_LEAST_GAP = 1e-4  # that is written: a smaller one makes no difference to a reader
_MARKS = {True: "✓", False: "✗", None: "·"}
_BETTER = "a better column"  # the claim that no other split has a larger gain
_WHERE_HARD = {
    "classes": "inside the margin or on the wrong side",
    "numbers": "off by more than the tolerance ε",
    "novelty": "outside, and so unusual",
}


def certificate_words(learner: Any) -> list[str]:
    """Explain a certificate that holds to a reader without mathematics; nothing for one that does not."""
    certificate: Certificate = learner.certificate_
    if not certificate.holds:
        return []
    claims, explanation = {claim.name: claim for claim in certificate.claims}, explanation_of(learner)
    is_number = explanation.task == "numbers"
    words = []
    gap = _relative_gap(explanation, claims)
    if gap is not None:
        balance = "small weights with small errors" if is_number else "a wide margin with few mistakes"
        words.append(
            f"The model is the best of its kind for its settings and rows: its objective, which balances {balance}, "
            f"could not be improved by more than {100 * max(gap, _LEAST_GAP):.2g} %."
        )
    counts = SEARCHED.match(claims[_BETTER].words) if _BETTER in claims else None
    if counts is not None and counts[1] == counts[2] != "0" and hasattr(learner, "nodes_"):  # of a vote some trees only
        words.append(
            "For every split of the tree, all columns were searched again: no other split would have been better."
        )
    error = claims.get("training error")
    if error is not None and error.limits is not None:
        words.append(
            f"The vote gets {share_words(error.values[0])} of its training rows wrong; the theory guarantees at most "
            f"{share_words(min(1.0, error.limits[0]))}, and this was checked."
        )
    words += _forest_words(claims)
    if "w is the difference of the class means" in claims:
        words.append("The boundary lies exactly halfway between the means of the classes.")
    if {"easy points", "hard points"} <= claims.keys() and len(certificate.machines) == 1:
        easy, hard = (int(claims[name].values[0]) for name in ("easy points", "hard points"))
        words.append(
            f"{counted(easy, 'training row')} could be left out without changing the model; {counted(hard, 'row')} "
            f"{'is' if hard == 1 else 'are'} {_WHERE_HARD[explanation.task]}."
        )
    return words


def _forest_words(claims: dict[str, Claim]) -> list[str]:
    """Explain the claims about a forest."""
    if "rows drawn for each tree" not in claims:
        return []
    words = []
    leaves, splits = (
        claims[name].words if name in claims else "" for name in ("rows, weight and prediction of each leaf", _BETTER)
    )
    if recounted := OF_TREES.search(leaves):
        words.append(
            f"The rows of each tree were drawn again from the seed, and {recounted[0]} counted again from them."
        )
    if searched := OF_TREES.search(splits):
        words.append(f"In {searched[0]}, splits were searched again: no other split would have been better.")
    if error := claims.get("out-of-bag error"):
        share = share_words(error.values[0])
        words.append(f"Out of bag, {share} of the rows are predicted incorrectly; this was counted again.")
    return words


def _relative_gap(explanation: Explanation, claims: dict[str, Claim]) -> float | None:
    """Return the largest relative duality gap; None where there is none."""
    if "relative duality gap" in claims:
        return max(0.0, *claims["relative duality gap"].values)
    if not {"duality gap", "primal"} <= claims.keys() or not explanation.is_convex:
        return None
    pairs = zip(claims["duality gap"].values, claims["primal"].values, strict=True)
    shares = [gap / abs(primal) if primal else math.inf for gap, primal in pairs]
    return max(0.0, *shares) if all(map(math.isfinite, shares)) else None


def claims_grid(certificate: Certificate) -> Grid:
    """Return a row for each claim, with a column for each machine where there are few."""
    machines = list(certificate.machines)
    is_split = 1 < len(machines) <= _MOST_MACHINES and any(len(claim.values) > 1 for claim in certificate.claims)
    rows = [
        [_MARKS[c.holds], f"{c.name}: {c.words}" if c.words else c.name, *_cells(c, len(machines), is_split)]
        for c in certificate.claims
    ]
    header = ["", "claim", *(machines if is_split else ["value"])]
    caption = "✓ holds, ✗ does not hold, · for information only"
    return Grid(header, rows, caption, frozenset(range(2, len(header))), long=frozenset({1}))


def leave_one_out(learner: Any) -> list[Block]:
    """Explain the leave-one-out bound, which is mostly far above the error."""
    bounds = explanation_of(learner).loo_bounds
    if bounds is None:
        return []
    loo, sharper = map(share_words, bounds)
    other = "" if loo == sharper else f", and at most {sharper} by the sharper ξα-estimate"
    text = (
        f"The leave-one-out bound is not an estimate of the error. If each row were left out in turn, at most {loo} of "
        f"them would be predicted incorrectly{other}. This always holds, but is often far above the true error."
    )
    return [note(text)]


def _cells(claim: Claim, n_machines: int, is_split: bool) -> list[str]:
    """Return the numbers of a claim: one for each machine where they fit, else the least and the largest."""
    if is_split and len(claim.values) == n_machines:
        return value_texts(claim)
    text = value_texts(claim)[0] if claim.values else "none"
    if len(claim.values) > 1:
        low, high = number_text(min(claim.values)), number_text(max(claim.values))
        text = low if min(claim.values) == max(claim.values) else f"{low} … {high}"
        if claim.limits is not None:
            text += f" ≤ {number_text(max(claim.limits))}"
    return [text, *([""] * (n_machines - 1))] if is_split else [text]
