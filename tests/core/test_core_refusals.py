"""The boundary of the core: what would read outside memory is refused, whoever calls; names, constants and types."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from margrove.boost import problem as boost_problem
from margrove.engine.native.core import core
from margrove.linear.problem import VARIANTS
from margrove.linear_svm.problem import LOSSES
from margrove.svm import problem as svm_problem
from margrove.svm.kernels import NATIVE_KERNELS
from margrove.svm.machine import PRECISIONS
from margrove.tree import association, thresholds
from margrove.tree import problem as tree_problem
from margrove.tree.problem import CLASS_CRITERIA, TESTS, VALUE_CRITERIA, SplitScore


def csr(column=(0, 1), start=(0, 1, 2), d=2):
    return core.csr_points(np.ones(2), np.array(column, np.int32), np.array(start, np.int64), d)


def test_a_sound_matrix_is_taken():
    assert (csr().n, csr().d) == (2, 2)


@pytest.mark.parametrize(
    "parts",
    [
        {"column": (0, 2)},
        {"column": (-1, 0)},
        {"start": (0, 2, 1)},
        {"start": (0, 1, 3)},
        {"start": (1, 1, 2)},
        {"d": 1},
    ],
)
def test_csr_that_leaves_its_arrays_is_refused(parts):
    with pytest.raises(ValueError, match="CSR"):
        csr(**parts)


def walk(sign, weight=()):
    return core.Walk(
        sign=np.array(sign, np.int8),
        weight=np.array(weight, float),
        seeds=[0],
        eta=1.0,
        fit_intercept=True,
        shuffle=True,
    )


def perceptron(points, walk):
    return core.Perceptron(points, walk, variant=core.Variant.last, patience=0, tolerance=0.0, kept_bytes=0)


def penalised(points, walk):
    return core.PenalisedPerceptron(points, walk, alpha=0.1, l1_ratio=0.5, patience=0, tolerance=0.0)


@pytest.mark.parametrize(("sign_shape", "weight"), [((1, 3), np.empty(0)), ((2, 4), np.empty(0)), ((1, 4), np.ones(3))])
@pytest.mark.parametrize("solver", [perceptron, penalised])
def test_perceptron_refuses_signs_and_weights_of_another_length(solver, sign_shape, weight):
    points = core.dense_points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"sign|weight"):
        solver(points, walk(np.ones(sign_shape), weight))


@pytest.mark.parametrize("solver", [perceptron, penalised])
def test_perceptron_refuses_machines_and_starts_that_are_not_there(solver):
    found = solver(core.dense_points(np.zeros((4, 2))), walk(np.ones((1, 4))))
    for machine, w in ((1, np.zeros(2)), (0, np.zeros(3))):
        with pytest.raises(ValueError, match="start must be"):
            found.start_from(machine, w, 0.0)
    for asked in (found.standing, found.state):
        with pytest.raises(IndexError):
            asked(1)


def test_labels_outside_the_classes_are_refused():
    points = core.dense_points(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="label"):
        core.class_sums(points, label=np.array([0, 2], np.int32), weight=np.empty(0), classes=2, threads=1)


def test_gram_matrix_must_be_square():
    with pytest.raises(ValueError, match="square"):
        core.kernel_perceptron_on_gram(np.zeros((2, 3)), walk(np.ones((1, 2))))


def test_points_live_as_long_as_the_solver():
    solver = perceptron(core.dense_points(np.array([[1.0], [-1.0]])), walk([[1, -1]]))
    solver.run(10, 1.0, 1)
    assert solver.standing(0).separated


def column(cells, test="threshold", n_codes=0, rows=None):
    return core.Column(test=core.Test[test], monotone=0, cells=cells, n_codes=n_codes, cuts=np.empty(0), rows=rows)


@pytest.mark.parametrize(
    ("given", "label", "weight", "words"),
    [
        ((np.zeros(2),), [0, 1, 1], [], "another number of rows"),
        ((np.array([0, 1, 2], np.int32), "multiway", 2), [0, 1, 1], [], "beyond the column's levels"),
        ((np.zeros(1), "threshold", 0, np.array([3], np.int32)), [0, 1, 1], [], "ascend within the table"),
        ((np.zeros(3),), [0, 1, 2], [], "beyond the classes"),
        ((np.zeros(3),), [0, 1, 1], [1.0], "weight must be"),
    ],
)
def test_columns_that_leave_their_table_are_refused(given, label, weight, words):
    with pytest.raises(ValueError, match=words):
        core.best_column_tests(
            [column(*given)],
            n=3,
            label=np.array(label, np.int32),
            n_classes=2,
            weight=np.array(weight, float),
            criterion=core.Criterion.gini,
            thresholds=core.Thresholds.every,
            n_bins=0,
            threads=1,
        )


ENUMS = {
    "KernelKind": NATIVE_KERNELS,
    "Criterion": CLASS_CRITERIA + VALUE_CRITERIA,
    "Test": TESTS,
    "SplitScore": get_args(SplitScore),
    "Variant": VARIANTS,
    "Loss": LOSSES,
    "Precision": PRECISIONS,
}


@pytest.mark.parametrize("name", ENUMS)
def test_the_core_knows_what_python_names(name):
    assert set(getattr(core, name).__members__) == set(ENUMS[name])


def test_constants_that_the_certificates_need_are_the_cores():
    assert core.EQUAL_GAIN == tree_problem.EQUAL_GAIN
    assert core.VARIANCE_FLOOR == tree_problem.VARIANCE_FLOOR
    assert core.LEAST_LEVEL == association.LEAST_LEVEL
    assert core.RIDGE == thresholds.RIDGE
    assert core.NUDGE == thresholds.NUDGE
    assert core.LEAST_WEIGHT == boost_problem.LEAST_WEIGHT
    assert core.EQUAL_VOTES == boost_problem.EQUAL_VOTES
    assert core.MOST_OF_THEM == svm_problem.MOST_OF_THEM


def test_the_stub_is_that_of_the_core():
    """`make stubs` writes it anew."""
    pytest.importorskip("nanobind", minversion="3.1", reason="earlier ones write types in other words")
    from nanobind import stubgen

    path = Path(tree_problem.__file__).parents[1] / "_core.pyi"
    made = stubgen.StubGen(core, quiet=True)
    made.put(core)
    assert path.read_text(encoding="utf-8").strip() == made.get().strip()
