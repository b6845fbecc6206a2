"""What certificates claim, computed again in extended precision by code that shares nothing with the library.

`complaints` takes a fitted model, the data as plain arrays and the certificate, and returns what it finds wrong with
it. Sums are of ``np.longdouble``, whose rounding is 2048 times finer than that of float64 on x86-64.

A quantity that a certificate holds to be at most its limit is denied where it is above the limit by more than MARGIN.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

MARGIN = 0.01  # of a limit: what rounding of float64 is allowed to hide of the quantity itself
EQUALITY = 1e-8  # of Σ|α|
CONSTANT = 1e-13  # a column whose spread is below this, relative to its mean, counts as constant
LEAST_GAP = 1e-12  # a relative gap below this is none

Wide = np.longdouble
Array = Any


def complaints(model: Any, X: Array, y: Array, weight: Array | None, certificate: Any) -> list[str] | None:
    """Return what is wrong with a certificate that holds, or None if it was not checked; X is (n, d) of numbers, y of
    shape (n,) or None."""
    name = type(model).__name__
    check = _CHECKS.get(name)
    if check is None:
        return None
    own = np.ones(len(X), Wide) if weight is None else np.broadcast_to(np.asarray(weight, Wide), len(X))
    with np.errstate(all="ignore"):
        found = check(model, wide(X), y, own, certificate)
    return None if found is None else [f"{name}: {words}" for words in found]


def wide(values: Any) -> Array:
    """Numbers in extended precision."""
    return np.asarray(values.toarray() if sp.issparse(values) else values).astype(Wide)


# ---- kernel machines: min ½αᵀQα + pᵀα, yᵀα = δ, 0 ≤ α ≤ C; b is between max v of I_up and min v of I_low


def kernel_matrix(model: Any, X: Array) -> Array | None:
    """K of all rows; None for a kernel that is not known here."""
    kernel, gamma, coef0 = model.kernel, Wide(model.gamma_), Wide(model.coef0)
    if kernel == "precomputed":
        return X
    if kernel == "linear":
        return X @ X.T
    if kernel == "rbf":
        return np.exp(-gamma * np.stack([((X - x) ** 2).sum(axis=1) for x in X]))
    if kernel == "laplacian":
        return np.exp(-gamma * np.stack([np.abs(X - x).sum(axis=1) for x in X]))
    if kernel == "intersection":
        return np.stack([np.minimum(X, x).sum(axis=1) for x in X])
    if kernel == "poly":
        return (gamma * (X @ X.T) + coef0) ** Wide(model.degree)
    if kernel == "sigmoid":
        return np.tanh(gamma * (X @ X.T) + coef0)
    if kernel == "chi2":
        parts = [np.where(X + x > 0, (X - x) ** 2 / np.where(X + x > 0, X + x, 1), 0).sum(axis=1) for x in X]
        return np.exp(-gamma * np.stack(parts))
    return None


def dual_machine(f: Array, y: Array, p: Array, upper: Array, alpha: Array, b: Wide, rho: Wide | None) -> dict[str, Any]:
    """Violation, distance of b from its interval, and what is infeasible, of one machine. ``rho`` is that of a ν-form,
    whose violation is within each sign."""
    largest = np.abs(alpha).max(initial=0)
    at_upper = np.isfinite(upper) & (np.abs(alpha - upper) <= 1e-10 * upper)
    at_zero = np.abs(alpha) <= 1e-13 * largest
    can_grow, can_fall = ~at_upper & (alpha < upper), ~at_zero & (alpha > 0)
    up, low = np.where(y > 0, can_grow, can_fall), np.where(y > 0, can_fall, can_grow)
    v = -f - y * p
    levels = [(np.ones(len(y), bool), b)] if rho is None else [(y > 0, b - rho), (y < 0, b + rho)]
    violation = off_b = Wide(-np.inf)
    for part, level in levels:
        highest, lowest = v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)
        violation = max(violation, highest - lowest)
        off_b = max(off_b, min(highest, lowest) - level, level - max(highest, lowest))
    own = np.where(np.isfinite(upper) & (upper > 0), upper, max(largest, Wide(5e-324)))
    beyond = np.maximum(-alpha, np.where(np.isfinite(upper), alpha - upper, 0)) / own
    return {"violation": violation, "off_b": off_b, "outside": beyond.max(initial=0)}


def _judged(model: Any, number: int, found: dict[str, Any], off: Any, total: Any, certificate: Any) -> list[str]:
    """Complaints about one kernel machine; ``off`` is how far its equalities are from being met, ``total`` is Σ|α|."""
    said = []
    for key, title in (("violation", "violation"), ("off_b", "b outside its interval")):
        claim = certificate.claim(title)
        # tol is a share of a unit that is at most 1; each side of a hard margin is solved to tol.
        limit, value = min(claim.limits[number], 2 * model.tol), float(found[key])
        if not value <= limit * (1 + MARGIN):
            said.append(f"{title} of machine {number} is {value:.6g}, its limit {limit:g}")
    if not found["outside"] <= EQUALITY:
        said.append(f"α of machine {number} is outside its box by {float(found['outside']):.3g} of it")
    if not off <= EQUALITY * total:
        said.append(f"the equality of machine {number} is off by {float(off):.3g} of Σ|α| = {float(total):.3g}")
    return said


def _by_class(model: Any, y: Array, own: Array) -> Array:
    """Weights of rows, their class's included, as SVC and NuSVC have them: "balanced" counts rows."""
    kept = getattr(model, "class_weight", None)
    if kept is None:
        return own
    if kept == "balanced":
        counts = {label: int((y == label).sum()) for label in model.classes_.tolist()}
        factor = {label: Wide(len(y)) / (len(counts) * count) for label, count in counts.items()}
    else:
        factor = {label: Wide(kept.get(label, 1.0)) for label in model.classes_.tolist()}
    return own * np.array([factor[label] for label in y.tolist()], Wide)


def _machines_of(model: Any, n: int) -> list[tuple[Array, Array]]:
    """The code (+1, −1, 0 of each class) and β of each row, of every machine of a support vector classifier."""
    n_classes, support = len(model.classes_), np.asarray(model.support_)
    dual = wide(model.dual_coef_)
    if n_classes > 2 and model.multiclass == "ovo":
        ends = np.cumsum(model.n_support_)
        parts = [slice(end - count, end) for end, count in zip(ends, model.n_support_, strict=True)]
        found = []
        for i, j in combinations(range(n_classes), 2):
            code, beta = np.zeros(n_classes), np.zeros(n, Wide)
            code[i], code[j] = 1, -1
            beta[support[parts[i]]] = dual[j - 1, parts[i]]
            beta[support[parts[j]]] = dual[i, parts[j]]
            found.append((code, beta))
        return found
    codes = [np.array([-1, 1])] if n_classes == 2 else list(np.where(np.eye(n_classes) > 0, 1, -1))
    found = []
    for code, row in zip(codes, dual, strict=True):
        beta = np.zeros(n, Wide)
        beta[support] = row
        found.append((code, beta))
    return found


def _classifier(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    K, is_nu = kernel_matrix(model, X), hasattr(model, "nu")
    if K is None or not np.isfinite(K).all() or not isinstance(model.multiclass, str):
        return None
    own, said = _by_class(model, y, own), []
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    codes = np.array([place[label] for label in y.tolist()])
    for number, (code, beta) in enumerate(_machines_of(model, len(X))):
        rows = (code[codes] != 0) & (own > 0)
        sign, b = code[codes][rows].astype(Wide), Wide(np.ravel(model.intercept_)[number])
        f, beta_there = K[np.ix_(rows, rows)] @ beta[rows], beta[rows]
        if np.abs(beta[~rows]).sum() > 0:
            said.append(f"machine {number} has support vectors among rows it never sees")
        if is_nu:
            # An indefinite kernel may give ρ < 0; a model divided by it has the signs of −y.
            rho = model.nu * own[rows].sum() / np.abs(beta_there).sum() * (1 if sign @ beta_there >= 0 else -1)
            alpha = rho * sign * beta_there
            found = dual_machine(rho * f, sign, 0 * sign, own[rows], alpha, rho * b, rho)
            off = max(abs((sign * alpha).sum()), abs(alpha.sum() - model.nu * own[rows].sum()))
        else:
            upper = Wide(model.C) * own[rows] if math.isfinite(model.C) else np.full(rows.sum(), np.inf, Wide)
            alpha = sign * beta_there
            found = dual_machine(f, sign, -np.ones(len(sign), Wide), upper, alpha, b, None)
            off = abs((sign * alpha).sum())
        said += _judged(model, number, found, off, np.abs(alpha).sum(), certificate)
    return said


def _one_machine(model: Any, X: Array, own: Array) -> tuple[Array, Array, Array, Wide] | None:
    """The rows that count, f and β of them, and b."""
    K = kernel_matrix(model, X)
    if K is None or not np.isfinite(K).all():
        return None
    rows, beta = own > 0, np.zeros(len(X), Wide)
    beta[model.support_] = wide(model.dual_coef_)[0]
    return rows, K[np.ix_(rows, rows)] @ beta[rows], beta[rows], Wide(np.ravel(model.intercept_)[0])


def _one_class(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    given = _one_machine(model, X, own)
    if given is None:
        return None
    rows, f, alpha, b = given
    found = dual_machine(f, np.ones(len(f)), 0 * f, own[rows], alpha, b, None)
    return _judged(model, 0, found, abs(alpha.sum() - model.nu * own[rows].sum()), np.abs(alpha).sum(), certificate)


def _regression(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    given = _one_machine(model, X, own)
    if given is None:
        return None
    rows, f, beta, b = given
    z, upper = wide(y)[rows], Wide(model.C) * own[rows]
    alpha = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)])
    sign, total = np.repeat([1.0, -1.0], len(z)), np.abs(beta).sum()
    twice, both = np.concatenate([f, f]), np.concatenate([upper, upper])
    if hasattr(model, "nu"):
        mass = model.nu * upper.sum()
        if total < mass * (1 - 1e-9):
            return None  # α and α* share a part that the model does not keep
        found = dual_machine(twice, sign, np.concatenate([-z, z]), both, alpha, b, None)
        by_sign = _violation_by_sign(twice, sign, np.concatenate([-z, z]), both, alpha)
        found = {**found, "violation": by_sign, "off_b": Wide(0)}
        return _judged(model, 0, found, max(abs(beta.sum()), abs(total - mass)), total, certificate)
    epsilon = Wide(model.epsilon)
    found = dual_machine(twice, sign, np.concatenate([epsilon - z, epsilon + z]), both, alpha, b, None)
    return _judged(model, 0, found, abs(beta.sum()), total, certificate)


def _violation_by_sign(f: Array, y: Array, p: Array, upper: Array, alpha: Array) -> Any:
    return dual_machine(f, y, p, upper, alpha, Wide(0), Wide(0))["violation"]


# ---- linear machines: P(w, b), and D of any feasible β, which no P is below


def primal_and_dual(
    X: Array,
    z: Array,
    cost: Array,
    w: Array,
    b: Wide,
    beta: Array | None,
    *,
    loss: str,
    penalty: str,
    s: float,
    eps: float,
) -> tuple[Wide, Wide]:
    """P and D of one machine. Without β, the one that w implies of a squared loss. β is made feasible first."""
    is_squared, is_of_signs, is_free = loss.startswith("squared"), loss.endswith("hinge"), math.isinf(s)
    f = X @ w + b
    excess = np.maximum(0, 1 - z * f if is_of_signs else np.abs(z - f) - eps)
    scaled = Wide(0) if s == 0 or is_free else b / Wide(s)
    norm = np.abs(w).sum() + abs(scaled) if penalty == "l1" else ((w**2).sum() + scaled**2) / 2
    P = norm + (cost * (excess**2 if is_squared else excess)).sum()
    if beta is None:
        beta = 2 * cost * (z if is_of_signs else np.sign(z - f)) * excess
    bound = np.where(cost > 0, np.inf, 0) if is_squared else cost
    beta = (
        np.clip(beta, np.where(z > 0, 0, -bound), np.where(z > 0, bound, 0))
        if is_of_signs
        else np.clip(beta, -bound, bound)
    )
    if is_free:
        plus, minus = beta[beta > 0].sum(), -beta[beta < 0].sum()
        least = min(plus, minus)
        beta = np.where(beta > 0, beta * (least / plus if plus > 0 else 0), beta * (least / minus if minus > 0 else 0))
    u = Wide(0) if is_free else Wide(s) * beta.sum()
    if penalty == "l1":
        largest = max(Wide(1), np.abs(beta @ X).max(initial=0), abs(u))
        beta = beta / largest
    gain = z * beta - (0 if is_of_signs else Wide(eps) * np.abs(beta))
    if is_squared:
        gain = gain - np.where(cost > 0, beta**2 / np.where(cost > 0, 4 * cost, 1), 0)
    D = gain.sum()
    if penalty == "l2":
        D = D - ((beta @ X) ** 2).sum() / 2 - u**2 / 2
    return P, max(D, Wide(0))


def _gap_complaints(tol: float, P: Wide, D: Wide, number: int, certificate: Any) -> list[str]:
    claim = certificate.claim("relative duality gap")
    claimed, limit = claim.values[number], min(tol, claim.limits[number])
    true = float((P - D) / P) if P > 0 else 0.0
    if true <= max(limit * (1 + MARGIN), LEAST_GAP) and true <= claimed + MARGIN * limit + LEAST_GAP:
        return []
    return [
        f"the relative gap of machine {number} is {true:.3g} (P = {float(P):.6g}, D = {float(D):.6g}); "
        f"claimed {claimed:.3g}, limit {limit:g}"
    ]


def _linear(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    w, b = np.atleast_2d(wide(model.coef_)), np.ravel(np.asarray(model.intercept_, Wide))
    b = np.broadcast_to(b, len(w))
    s = 0.0 if not model.fit_intercept else float(model.intercept_scaling) if model.regularize_intercept else math.inf
    dual = getattr(model, "dual_coef_", None)
    if hasattr(model, "dual_steps_"):
        return None
    if not hasattr(model, "classes_"):
        targets, costs, penalty, eps = [wide(y)], [Wide(model.C) * own], "l2", float(model.epsilon)
    else:
        place = {label: k for k, label in enumerate(model.classes_.tolist())}
        codes, n_classes = np.array([place[label] for label in y.tolist()]), len(model.classes_)
        prices = [Wide(model.C) * own] * max(1, len(w))
        if model.class_weight is not None:
            prices = _linear_prices(model, codes, own, len(w))
        if model.multi_class == "crammer_singer":
            return _joint(model.tol, X, codes, n_classes, prices[0], w, b, wide(dual), s, certificate)
        signs = (
            [np.where(codes == 1, 1, -1)] if n_classes == 2 else [np.where(codes == k, 1, -1) for k in range(n_classes)]
        )
        targets, costs, penalty, eps = [sign.astype(Wide) for sign in signs], prices, model.penalty, 0.0
    said = []
    for number, (z, cost) in enumerate(zip(targets, costs, strict=True)):
        beta = None if dual is None else wide(np.atleast_2d(dual))[number]
        how = {"loss": model.loss, "penalty": penalty, "s": s, "eps": eps}
        P, D = primal_and_dual(X, z, cost, w[number], b[number], beta, **how)
        said += _gap_complaints(model.tol, P, D, number, certificate)
    return said


def _linear_prices(model: Any, codes: Array, own: Array, machines: int) -> list[Array]:
    """C_i of each machine, by LIBLINEAR's rule for weights of classes."""
    n_classes, kept = len(model.classes_), model.class_weight
    if kept == "balanced":
        mass = np.array([own[codes == k].sum() for k in range(n_classes)])
        present = mass > 0
        by_class = np.where(present, mass.sum() / (present.sum() * np.where(present, mass, 1)), 0)
    else:
        by_class = np.array([Wide(kept.get(label, 1.0)) for label in model.classes_.tolist()])
    price = Wide(model.C) * own
    if n_classes == 2 or model.multi_class == "crammer_singer":
        return [price * by_class[codes]]
    return [np.where(codes == k, by_class[k], 1) * price for k in range(n_classes)]


def _joint(
    tol: float,
    X: Array,
    codes: Array,
    n_classes: int,
    cost: Array,
    w: Array,
    b: Array,
    beta: Array,
    s: float,
    certificate: Any,
) -> list[str]:
    """Crammer and Singer's machine; of two classes a model keeps w_1 − w_0."""
    if n_classes == 2:
        w, b = np.vstack([-w, w]) / 2, np.concatenate([-b, b]) / 2
    f, rows = X @ w.T + b, np.arange(len(X))
    behind = 1 + f - f[rows, codes][:, None]
    behind[rows, codes] = 0
    scaled = b / Wide(s) if s > 0 else 0 * b
    P = ((w**2).sum() + (scaled**2).sum()) / 2 + (cost * behind.max(axis=1)).sum()
    D = beta[codes, rows].sum() - ((beta @ X) ** 2).sum() / 2 - ((Wide(s) * beta.sum(axis=1)) ** 2).sum() / 2
    upper = np.zeros((n_classes, len(X)), Wide)
    upper[codes, rows] = cost
    outside = max((beta - upper).max(initial=0), np.abs(beta.sum(axis=0)).max(initial=0))
    said = _gap_complaints(tol, P, max(D, Wide(0)), 0, certificate)
    if outside > EQUALITY * cost.max(initial=0):
        said.append(f"β is outside its bounds by {float(outside):.3g}; the largest C is {float(cost.max()):.3g}")
    return said


# ---- linear classifiers without support vectors


def _signs(model: Any, y: Array) -> list[Array]:
    labels, classes = np.array(y.tolist(), object), model.classes_.tolist()
    wanted = classes[1:] if len(classes) == 2 else classes
    return [np.where([label == own for label in labels], 1, -1).astype(Wide) for own in wanted]


def _centroid(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str]:
    said = []
    for number, sign in enumerate(_signs(model, y)):
        plus, minus = ((X * (own * (sign == side))[:, None]).sum(axis=0) / own[sign == side].sum() for side in (1, -1))
        w, b = wide(model.coef_)[number], Wide(model.intercept_[number])
        size = np.sqrt((plus**2).sum()) + np.sqrt((minus**2).sum())
        off, middle = np.sqrt(((w - (plus - minus)) ** 2).sum()), abs(w @ (plus + minus) / 2 + b)
        if not (off <= 1e-10 * size and middle <= 1e-10 * size * np.sqrt((w**2).sum())):
            said.append(
                f"w of machine {number} is off by {float(off):.3g} of {float(size):.3g}, f by {float(middle):.3g}"
            )
    return said


def _least_squares(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str]:
    """The residual is orthogonal to every column (centred, with an intercept) and to the constant."""
    own, said = _by_class(model, y, own), []
    mean = (own @ X) / own.sum() if model.fit_intercept else np.zeros(X.shape[1], Wide)
    centred = X - mean
    for number, sign in enumerate(_signs(model, y)):
        w, b = wide(model.coef_)[number], Wide(model.intercept_[number])
        residual = X @ w + b - sign
        size = np.sqrt((own[:, None] * centred**2).sum(axis=0)) * np.sqrt(own.sum())
        pull = np.abs((own * residual) @ centred)
        size[(w == 0) & (size <= CONSTANT * np.abs(mean) * own.sum())] = 0  # left out, as a constant column is
        worst = np.where(size > 0, pull / np.where(size > 0, size, 1), 0).max(initial=0)
        if model.fit_intercept:
            worst = max(worst, abs((own * residual).sum()) / own.sum())
        if not worst <= 1e-5:
            said.append(f"a column of machine {number} is correlated with the residual by {float(worst):.3g}")
    return said


def _perceptron(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    if getattr(model, "variant", "last") != "last":
        return None
    said, claim = [], certificate.claim("rows on the wrong side")
    for number, sign in enumerate(_signs(model, y)):
        f = X @ wide(model.coef_)[number] + Wide(model.intercept_[number])
        size = np.abs(X) @ np.abs(wide(model.coef_)[number]) + abs(Wide(model.intercept_[number]))
        surely = int(((own > 0) & (sign * f < -1e-14 * size)).sum())
        if surely > claim.values[number]:
            said.append(f"{surely} rows are on the wrong side of machine {number}; claimed {claim.values[number]:g}")
    return said


# ---- trees: no threshold is better than the one chosen


def gini_gain(y: Array, weight: Array, is_left: Array) -> float:
    """The decrease of the Gini impurity, with exact rational sums for whole weights."""
    total = math.fsum(weight)

    def impurity(rows: Array) -> tuple[float, float]:
        mass = math.fsum(weight[rows])
        shares = [math.fsum(weight[rows & (y == label)]) / mass for label in np.unique(y[rows])]
        return mass, 1 - math.fsum(share**2 for share in shares)

    everything = np.ones(len(y), bool)
    parts = [impurity(is_left), impurity(~is_left)]
    return impurity(everything)[1] - math.fsum(mass / total * value for mass, value in parts)


_PLAIN_TREE = {
    "criterion": "gini",
    "split_score": "gain",
    "thresholds": "exact",
    "min_samples_leaf": 1,
    "min_weight_fraction_leaf": 0.0,
    "max_features": None,
    "max_leaf_nodes": None,
    "prune": None,
    "ccp_alpha": 0.0,
    "class_weight": None,
    "monotonic_cst": None,
    "split_values": None,
    "complexity": 0.0,
    "significance": None,
}


def _tree(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str] | None:
    if any(getattr(model, name, value) != value for name, value in _PLAIN_TREE.items()) or len(X) > 60:
        return None
    tree, X = model.nodes_, X.astype(np.float64)
    if not np.isfinite(X).all() or any(column.test != "threshold" for column in tree.columns):
        return None
    said, weight = [], np.asarray(own, float)
    stack = [(0, weight > 0)]
    while stack:
        node, rows = stack.pop()
        if tree.feature[node] < 0:
            continue
        is_left = X[:, tree.feature[node]] <= tree.threshold[node]
        children = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
        stack += [(int(children[0]), rows & is_left), (int(children[1]), rows & ~is_left)]
        if not (rows & is_left).any() or not (rows & ~is_left).any():
            said.append(f"node {node} leaves a branch empty")
            continue
        chosen = gini_gain(y[rows], weight[rows], is_left[rows])
        for column in range(X.shape[1]):
            for threshold in np.unique(X[rows, column])[:-1]:
                gain = gini_gain(y[rows], weight[rows], X[rows, column] <= threshold)
                if gain > chosen + 1e-9:
                    said.append(f"node {node} gains {chosen:.9g}; column {column} ≤ {threshold!r} gains {gain:.9g}")
                    break
    return said


# ---- AdaBoost: the votes of its learners


def _boost(model: Any, X: Array, y: Array, own: Array, certificate: Any) -> list[str]:
    X64 = X.astype(np.float64)
    classes = model.classes_.tolist()
    votes = np.zeros((len(X), len(classes)), Wide)
    for learner, vote in zip(model.estimators_, model.estimator_weights_, strict=True):
        for row, label in enumerate(np.asarray(learner.predict(X64)).tolist()):
            votes[row, classes.index(label)] += vote
    said, order = [], np.sort(votes, axis=1)
    second = order[:, -2] if len(classes) > 1 else 0.0
    is_clear = order[:, -1] - second > 1e-9 * order[:, -1]
    predicted = np.asarray(model.predict(X64)).tolist()
    voted = [classes[k] for k in votes.argmax(axis=1)]
    wrong = [row for row in np.flatnonzero(is_clear) if predicted[row] != voted[row]]
    if wrong:
        said.append(f"row {wrong[0]} is predicted {predicted[wrong[0]]!r}; the votes are for {voted[wrong[0]]!r}")
    if is_clear.all() and not model.early_stopping:
        error = (own * np.array([label != own_label for label, own_label in zip(voted, y.tolist(), strict=True)])).sum()
        claimed, true = certificate["training error"], float(error / own.sum())
        if not abs(true - claimed) <= 1e-9:
            said.append(f"the training error is {true:.9g}; claimed {claimed:.9g}")
    return said


_CHECKS = {
    "SVC": _classifier,
    "NuSVC": _classifier,
    "OneClassSVM": _one_class,
    "SVR": _regression,
    "NuSVR": _regression,
    "LinearSVC": _linear,
    "LinearSVR": _linear,
    "BasicLinearClassifier": _centroid,
    "LeastSquaresClassifier": _least_squares,
    "Perceptron": _perceptron,
    "DecisionTreeClassifier": _tree,
    "DecisionStump": _tree,
    "AdaBoostClassifier": _boost,
}
