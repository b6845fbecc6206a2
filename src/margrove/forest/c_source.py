"""A forest as C99: a static function for each tree, and their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.errors import InputError
from margrove.tree import c_source
from margrove.tree.export import c_function, check_c_name
from margrove.tree.words import labels_of

_SHARES = """\
void {name}_shares(const double *x, double *shares)
{{
    for (int k = 0; k < {n_classes}; ++k)
        shares[k] = 0;
    for (int t = 0; t < {n_trees}; ++t) {{
        const double *leaf = {name}_share[{name}_tree[t](x)];
        for (int k = 0; k < {n_classes}; ++k)
            shares[k] += leaf[k];
    }}
    for (int k = 0; k < {n_classes}; ++k)
        shares[k] /= {n_trees};
}}

int {name}(const double *x)
{{
    double shares[{n_classes}];
    int best = 0;
    {name}_shares(x, shares);
    for (int k = 1; k < {n_classes}; ++k)
        if (shares[k] > shares[best])
            best = k;
    return best;
}}
"""
_MEAN = """\
double {name}(const double *x)
{{
    double sum = 0;
    for (int t = 0; t < {n_trees}; ++t)
        sum += {name}_tree[t](x);
    return sum / {n_trees};
}}
"""


def to_c(model: Any, name: str = "predict") -> str:
    """Return the source of the predictions of a fitted forest: ``int predict(const double *x)``, the position of the
    class, and ``void predict_shares(const double *x, double *shares)``; of numbers ``double predict(const double *x)``.
    ``x`` is as in `margrove.tree.export.to_c`."""
    check_c_name(name)
    if model.n_outputs_ > 1:
        problem = f"to_c takes one target, and this forest has {model.n_outputs_}"
        raise InputError(problem, cure="Fit one forest for each target.")
    forest, classes = model.model_, getattr(model, "classes_", None)
    n_trees, first = forest.n_trees, forest.tree(0)
    leaves = [forest.tree(t).is_leaf[forest.leaf_nodes(t)] for t in range(n_trees)]
    values = [forest.leaf_values(t)[is_leaf] for t, is_leaf in enumerate(leaves)]
    table, places = np.unique(np.concatenate(values), axis=0, return_inverse=True)
    labels = None if classes is None else labels_of(first, classes)
    kind = "double" if labels is None else "int"
    lines = [*c_source.comment(first, labels), "#include <math.h>", ""]
    end = 0
    for t, own in enumerate(values):
        tree, begin = forest.tree(t), end
        end += len(own)
        outcomes = ["0"] * tree.n_nodes
        for node, place in zip(forest.leaf_nodes(t)[leaves[t]].tolist(), places[begin:end].tolist(), strict=True):
            outcomes[node] = c_source.number(table[place, 0]) if labels is None else str(place)
        lines += [*c_function(tree, f"static {kind} {name}_{t}", outcomes), ""]
    named = [f"{name}_{t}" for t in range(n_trees)]
    rows = [", ".join(named[start : start + 8]) for start in range(0, n_trees, 8)]
    lines += [f"static {kind} (*const {name}_tree[])(const double *) = {{", *(f"    {row}," for row in rows), "};", ""]
    if labels is not None:
        shares = [", ".join(map(c_source.number, row)) for row in table.tolist()]
        lines += [
            f"static const double {name}_share[][{len(labels)}] = {{",
            *(f"    {{{row}}}," for row in shares),
            "};",
        ]
        lines += [""]
    body = _MEAN if labels is None else _SHARES
    return "\n".join(lines) + "\n" + body.format(name=name, n_trees=n_trees, n_classes=len(labels or ()))
