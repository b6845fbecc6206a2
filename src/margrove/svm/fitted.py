"""A dual's solution as a model keeps it: with its offset, scaled, and judged by the solver's own numbers.

classification, one class, regression   α and b as they are
ν-classification                        α, b and w times 1/ρ, as LIBSVM's: marginal rows have y f(x) = 1
hard margin                             the nearest points of two hulls, times 2/‖w‖²; or the proof that they meet
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Row, Setting
from margrove.errors import InfeasibleError
from margrove.run.progress import watched
from margrove.status import Status
from margrove.svm.kkt import NU_CLASSIFICATION, Finding, Form, Machine, at_bounds, judge
from margrove.svm.problem import HULLS_MEET, Dual, DualSolution, classification, offset, offset_and_radius
from margrove.svm.sums import kernel_sums
from margrove.svm.training import TrainingData

_SHOWN_ROWS = 3  # of each side, in a message
_NO_MARGIN = 1e-12  # of the largest |f|: a ρ that small is rounding


@dataclass(frozen=True)
class Solved:
    """One machine as the model keeps it, and the solution it was made of."""

    machine: Machine
    finding: Finding
    solution: DualSolution

    @property
    def beta(self) -> NDArray[np.float64]:
        """What each variable contributes to ``dual_coef_``."""
        machine = self.machine
        return np.asarray(machine.dual.y * machine.alpha * machine.scale)

    @property
    def b(self) -> float:
        return self.machine.b * self.machine.scale

    @property
    def norm(self) -> float:
        return self.finding.norm * abs(self.machine.scale)


def settled(name: str, dual: Dual, solution: DualSolution, data: TrainingData, form: Form) -> Solved:
    """A solution as the model keeps it: with b, scaled, and judged by the solver's own v."""
    if dual.hulls:
        return _from_hulls(name, dual, solution, data)
    alpha, f = solution.alpha, -solution.v - dual.y * dual.p
    held = at_bounds(alpha, dual.upper)
    if not dual.by_sign:
        machine = Machine(name, dual, alpha, offset(solution.v, held, dual.upper, dual.y))
    else:
        b, rho = offset_and_radius(solution.v, held, dual.upper, dual.y)
        scale = 1.0
        if form is NU_CLASSIFICATION and solution.status is not Status.NONFINITE:
            # With an indefinite kernel ρ may be negative, as in LIBSVM, but not 0.
            least = _NO_MARGIN * float(np.abs(f).max(initial=0)) if data.kernel.is_semidefinite is False else np.inf
            if -least <= rho <= 0 and solution.status is Status.CONVERGED:
                raise InfeasibleError(
                    f"nu leaves no margin between the sides of {name}: the parts of the two hulls that it allows meet",
                    cure="Use a larger nu, a smaller tol, or another kernel.",
                    evidence={"machine": name, "rho": rho},
                )
            has_margin = rho > 0 or solution.status is Status.CONVERGED  # otherwise it stopped before there was one
            scale = 1 / rho if has_margin else 1.0
        machine = Machine(name, dual, alpha, b, rho, scale)
    with np.errstate(invalid="ignore", over="ignore"):
        return Solved(machine, _judged(machine, f, solution, data), solution)


def _judged(machine: Machine, f: NDArray[np.float64], solution: DualSolution, data: TrainingData) -> Finding:
    """What the machine comes to by the solver's v; nothing is claimed where that is not the v of this α."""
    finding = judge(machine, f, data.diagonal[machine.dual.point])
    return finding if solution.is_v_known else replace(finding, violation=np.inf, primal=np.inf, dual=-np.inf)


def _from_hulls(name: str, dual: Dual, solution: DualSolution, data: TrainingData) -> Solved:
    """The hard margin from the nearest points of two hulls: w = 2 (p₊ − p₋)/‖p₊ − p₋‖², so α and b times 2/‖w‖²."""
    alpha, squared = solution.alpha, 2 * solution.objective
    if solution.status is Status.CONVERGED and squared <= HULLS_MEET * float(data.diagonal[dual.point].max()):
        raise _meeting_hulls(name, dual, alpha, data)
    scale = 2 / squared if solution.is_v_known and squared > 0 else 1.0
    b, _ = offset_and_radius(solution.v, at_bounds(alpha, dual.upper), dual.upper, dual.y)
    f, b = -scale * solution.v, scale * b
    if data.centre is not None:  # w·(x − c) + b = w·x + (b − w·c), because Σβ = 0
        off = float((scale * dual.y * alpha) @ (data.points[dual.point] @ data.centre))
        f, b = f + off, b - off
    machine = Machine(name, classification(dual.y, dual.upper, dual.point), scale * alpha, b)
    with np.errstate(invalid="ignore", over="ignore"):
        return Solved(machine, _judged(machine, f, solution, data), solution)


def _meeting_hulls(name: str, dual: Dual, alpha: NDArray[np.float64], data: TrainingData) -> InfeasibleError:
    support = np.flatnonzero(alpha)
    beta = (dual.y * alpha)[support]
    with watched(None):  # the solve is over: whoever watches it need not hear of this
        squared = float(beta @ kernel_sums(data.solver_kernel, data.points, dual.point[support], beta))
    distance = float(np.sqrt(max(squared, 0)))
    nearest = float(np.sqrt(HULLS_MEET * data.diagonal[dual.point].max()))
    rows, weights, shown = [], [], []
    for sign in (1, -1):
        support = np.flatnonzero((dual.y == sign) & (alpha > 0))
        support = support[np.argsort(-alpha[support], kind="stable")]
        rows.append(dual.point[support])
        weights.append(alpha[support])
        terms = [(" + ", f"{alpha[t]:.3g}·row ", Row(dual.point[t])) for t in support[:_SHOWN_ROWS]]
        more = [" + …"] if len(support) > _SHOWN_ROWS else []
        shown.append(Advice(*[part for term in terms for part in term][1:], *more))
    return InfeasibleError(
        Advice(
            f"no hard margin for {name}: the convex hulls of the two sides meet, ",
            shown[0],
            " = ",
            shown[1],
            f" in the feature space (they are {distance:.2g} apart; less than {nearest:.2g} cannot be told from 0 "
            "here)",
        ),
        cure=Advice(
            "Use a finite ",
            InPython("C", Setting("C", ...)),
            ", or another ",
            InPython("kernel", Setting("kernel", ...)),
            ".",
        ),
        evidence={"machine": name, "rows": tuple(rows), "weights": tuple(weights), "distance": distance},
    )


def shows_margin(machine: Machine, finding: Finding) -> bool:
    """Whether ρ νΣC > Σ C ξ: by weak duality some w then has a margin at this ν, and ‖w‖ is not 0."""
    return machine.rho * float(machine.dual.alpha.sum()) > float(machine.dual.upper @ finding.slack)
