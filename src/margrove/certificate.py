"""Certificates: the claims of a fitted model, with numbers that anyone can recompute.

`certify` takes the model and the data and recomputes every number in float64. It imports no solver and no engine, and
neither do the family modules that it calls.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError, MargroveError, shown, warn_early
from margrove.learner import learner_of, learners, loaded
from margrove.status import Status
from margrove.visible import visible

Source = Literal["solver", "recomputed"]
_UNKNOWN = "unknown"  # the status of models of other libraries, which report none


@dataclass(frozen=True)
class Claim:
    """One line of a certificate.

    Parameters
    ----------
    name : str
        The claim in a few words; also its key in the certificate.
    values : tuple of float
        One number per machine, or a single one for the whole model. A machine is one binary classifier of the model.
    limits : tuple of float, optional
        The largest allowed values. None if the line only informs.
    holds : bool, optional
        Whether the claim is true. None if the line only informs.
    words : str
        A short explanation of the claim.
    """

    name: str
    values: tuple[float, ...]
    limits: tuple[float, ...] | None = None
    holds: bool | None = None
    words: str = ""

    @classmethod
    def bounded(cls, name: str, values: NDArray[np.float64], limits: NDArray[np.float64], words: str) -> Claim:
        """Return the claim that each value is at most its limit."""
        return cls(name, per_machine(values), per_machine(limits), bool((values <= limits).all()), words)


@dataclass(frozen=True, repr=False)
class Certificate:
    """The claims of a model and whether they hold.

    ``holds`` is True or False when ``source`` is ``"recomputed"``. With ``source="solver"`` the numbers are the
    solver's own, which prove nothing, and ``holds`` is None.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import Perceptron, certify
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array(["low", "low", "high", "high"])
    >>> certificate = certify(Perceptron(random_state=0).fit(X, y), X, y)
    >>> certificate.holds
    True
    >>> certificate["rows on the wrong side"]
    0.0
    """

    learner: str
    status: str
    source: Source
    n_rows: int
    machines: tuple[str, ...]
    claims: tuple[Claim, ...] = field(default=())

    @classmethod
    def of(
        cls, model: Any, source: Source, n_rows: int, machines: Sequence[str], claims: Sequence[Claim] = ()
    ) -> Certificate:
        """Return the certificate of a fitted model, Margrove's or another library's, which may have no status."""
        status = str(getattr(model, "status_", _UNKNOWN))
        return cls(type(model).__name__, status, source, n_rows, tuple(machines), tuple(claims))

    @property
    def holds(self) -> bool | None:
        """True if every claim is true; None for the solver's own numbers."""
        if self.source == "solver":
            return None
        return all(claim.holds is not False for claim in self.claims)

    def claim(self, name: str) -> Claim:
        """Return the claim of that name."""
        for claim in self.claims:
            if claim.name == name:
                return claim
        raise KeyError(f"{name!r}; this certificate has {[claim.name for claim in self.claims]}")

    def __getitem__(self, name: str) -> Any:
        """Return the value of the claim of that name: a number, or one per machine."""
        values = self.claim(name).values
        return values[0] if len(values) == 1 else values

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; NaN and infinity become strings."""
        record = asdict(self) | {"holds": self.holds, "machines": list(self.machines)}
        record["claims"] = list(record["claims"])
        for claim in record["claims"]:
            claim["values"] = [_plain(value) for value in claim["values"]]
            claim["limits"] = None if claim["limits"] is None else [_plain(value) for value in claim["limits"]]
        return record

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Certificate:
        """Return the certificate of which `to_dict` returned this record."""
        claims = tuple(
            Claim(
                str(claim["name"]),
                tuple(float(value) for value in claim["values"]),
                None if claim["limits"] is None else tuple(float(value) for value in claim["limits"]),
                None if claim["holds"] is None else bool(claim["holds"]),
                str(claim["words"]),
            )
            for claim in record["claims"]
        )
        source: Source = "recomputed" if record["source"] == "recomputed" else "solver"
        machines = tuple(str(machine) for machine in record["machines"])
        return cls(str(record["learner"]), str(record["status"]), source, int(record["n_rows"]), machines, claims)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        subject = self.learner if self.status == _UNKNOWN else f"{self.learner}, {self.status}"
        if self.holds is None and any(math.isnan(value) for claim in self.claims for value in claim.values):
            return f"{subject}: the solver's own numbers, as far as they are known"
        if self.holds is None:
            return f"{subject}: the solver's own numbers; certify(model, X, y) recomputes them"
        word = "holds" if self.holds else "does NOT hold"
        return f"{subject}: the certificate {word} on {self.n_rows} rows, recomputed in float64"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the rows of the table that is printed: mark, claim, value, words."""
        marks = {True: "✓", False: "✗", None: "·"}
        return [(marks[c.holds], c.name, _shown(c, self.machines), c.words) for c in self.claims]

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        lines = [
            f"  {mark}  {name:<{widths[1]}}  {value:>{widths[2]}}  {words}".rstrip()
            for mark, name, value, words in rows
        ]
        return visible("\n".join([self.verdict, *lines]), keep="\n")

    __repr__ = __str__  # readable at the Python prompt

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        return f"<div><b>{escape(self.verdict)}</b><table>{cells}</table></div>"


def certify(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Recompute every claim of a fitted model from the data, in float64.

    Parameters
    ----------
    model : a fitted estimator of Margrove, a search that has refitted one, or a ``Pipeline`` that ends in either
        Or one of these estimators of scikit-learn: ``Perceptron``, ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR``,
        ``OneClassSVM``; ``LinearSVC`` and ``LinearSVR`` with a squared loss, whose ``tol`` is read as a limit on the
        relative duality gap, as in Margrove. Convert a tree with `from_sklearn` first.
    X, y : the data the model was fitted on; a ``OneClassSVM`` has no y
        For a `LinearSVC` or `LinearSVR`, X may be chunks as ``fit_stream`` takes them, without y. Then only one chunk
        is in memory at a time.
    sample_weight : array of shape (n,), optional
        The weights it was fitted with.

    Returns
    -------
    Certificate
        With ``source="recomputed"``; ``holds`` is a plain True or False.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier, certify
    >>> X, y = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 4.0], [5.0, 4.0]]), np.array([0, 0, 1, 1])
    >>> model = BasicLinearClassifier().fit(X, y)
    >>> certify(model, X, y).holds
    True
    >>> model.coef_[0, 0] += 0.1
    >>> certify(model, X, y).holds
    False
    """
    check_is_fitted(model)
    model, X = at_the_end(model, X)
    learner = learner_of(model)
    if learner is None or learner.certify is None:
        known = ", ".join(sorted({learner.name for learner in learners() if learner.certify is not None}))
        raise InputError(f"{type(model).__name__} has no certificate", cure=f"Models with a certificate: {known}.")
    if y is None and learner.certify_chunks is not None:
        return _returned(model, loaded(learner.certify_chunks)(model, X))
    if y is None and learner.needs_target:
        raise InputError(f"certify needs y, the labels or values that {type(model).__name__} was fitted on")
    recompute = loaded(learner.certify)
    try:
        return _returned(model, recompute(model, X, y, sample_weight))
    except MargroveError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{type(model).__name__} cannot be certified: its parameters or fitted attributes do not match each other "
            f"or the data ({type(error).__name__}: {error})",
            cure="Certify the model as it was fitted, on the data it was fitted on.",
        ) from error


def _returned(model: Any, certificate: object) -> Certificate:
    """Return what the function of a learner's description returned, if it is a certificate."""
    if not isinstance(certificate, Certificate):
        problem = f"the function that certifies {type(model).__name__} returned {shown(certificate)}"
        raise InputError(problem, cure="It must return a margrove.Certificate.")
    return certificate


def keep_certificate(model: Any, certificate: Certificate) -> None:
    """Set ``model.certificate_``. If a claim fails, ``converged`` becomes ``stalled``, with a warning. Claims from the
    solver's own numbers get no verdict."""
    failed = next((claim for claim in certificate.claims if claim.holds is False), None)
    if failed is not None and model.status_ is Status.CONVERGED:
        model.status_ = Status.STALLED
        less = ", or use a smaller C or a larger tol" if hasattr(model, "C") else ""
        what = f": {failed.name}: {_shown(failed, certificate.machines)}"
        warn_early(type(model).__name__, model.status_, what, f"{model.status_.advice}{less}")
    claims = certificate.claims
    if certificate.source == "solver":
        claims = tuple(replace(claim, holds=None) for claim in claims)
    model.certificate_ = replace(certificate, status=str(model.status_), claims=claims)


def at_the_end(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline or the best model of a search, and X as transformed by the earlier steps."""
    model = getattr(model, "best_estimator_", model)  # of a search
    steps = getattr(model, "steps", None)
    if steps is None:
        return model, X
    for _, step in steps[:-1]:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return at_the_end(steps[-1][1], X)


def read_only(name: str) -> Any:
    """Return a property for a fitted array that predictions use but no certificate can recompute. It can be set once,
    by a fit or by loading a file; a new fit first removes it from the model's ``__dict__``."""

    def get(model: Any) -> Any:
        if name not in model.__dict__:
            raise AttributeError(f"{type(model).__name__!r} object has no attribute {name!r}")
        view = np.asarray(model.__dict__[name]).view()
        view.flags.writeable = False
        return view

    def put(model: Any, values: Any) -> None:
        if name in model.__dict__:
            raise AttributeError(f"{name} is read-only: no certificate would notice the change. Fit again.")
        model.__dict__[name] = values

    return property(get, put)


def recorded(model: Any, **numbers: tuple[Any, Any]) -> tuple[Claim, ...]:
    """Return a failed claim for each attribute of the model that differs from the recomputed value. ``numbers`` maps
    its name to the recomputed value and the largest allowed difference. An attribute that is missing or all NaN is not
    checked."""
    failed = []
    for name, (expected, allowed) in numbers.items():
        kept = np.asarray(getattr(model, name, np.nan), dtype=np.float64)
        if kept.size and np.isnan(kept).all():
            continue
        if kept.shape != np.shape(expected) or not (np.abs(kept - expected) <= allowed).all():
            words = f"{name} differs from the value that the model and the data give"
            failed.append(Claim(name, per_machine(kept), per_machine(expected), False, words))
    return tuple(failed)


def per_machine(values: Sequence[float] | np.ndarray | float) -> tuple[float, ...]:
    """Return numbers as a claim keeps them."""
    return tuple(float(value) for value in np.atleast_1d(np.asarray(values, dtype=np.float64)))


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


_SHOWN_MACHINES = 4  # more than this many numbers do not fit on a line: then the range is shown

_LONGEST_NAME = 25  # characters of a machine's name on a line


def _shown(claim: Claim, machines: Sequence[str]) -> str:
    def pair(i: int) -> str:
        text = f"{claim.values[i]:.6g}"
        return text if claim.limits is None else f"{text} ≤ {claim.limits[i]:.6g}"

    if len(claim.values) == 0:
        return "none"
    if len(claim.values) <= _SHOWN_MACHINES:
        return ", ".join(pair(i) for i in range(len(claim.values)))
    if claim.limits is None:
        low, high = min(claim.values), max(claim.values)
        return f"{low:.6g}" if low == high else f"{low:.6g} … {high:.6g}"
    slack = [
        value / limit if limit else math.inf * (value > 0)
        for value, limit in zip(claim.values, claim.limits, strict=True)
    ]
    worst = int(np.argmax(np.nan_to_num(slack, nan=0.0)))
    return f"{pair(worst)} (worst of {len(claim.values)}: {_short(machines[worst])})"


def _short(name: str) -> str:
    """Return a machine's name, without its middle if it is long."""
    side = (_LONGEST_NAME - 1) // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:side]}…{name[-side:]}"
