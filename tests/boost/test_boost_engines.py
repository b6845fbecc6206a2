"""Every engine on tables of any kind: its certificate holds, and the model is the same for any number of threads."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.tree.ugly_tables import CATEGORIES, NUMBERS, ugly_table

from margrove.boost.certificate import certify_boost_problem
from margrove.boost.model import BoostModel
from margrove.boost.problem import BoostProblem, HeldOut
from margrove.engine import Effort, solve
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.problem import Growth

THRESHOLDS = ("exact", "exact", "histogram")


def ugly_boost(number):
    """Any table, learner and number of rounds at all, the same for the same number."""
    rng = np.random.default_rng(number)
    kinds = rng.choice([*NUMBERS, *CATEGORIES], int(rng.integers(1, 5))).tolist()
    growth = Growth(
        criterion=str(rng.choice(["gini", "entropy", "error"])),
        max_depth=int(rng.integers(1, 5)),
        min_samples_leaf=int(rng.integers(1, 5)),
        min_weight_leaf=float(rng.choice([0.0, 0.0, 0.05])),
        thresholds=str(rng.choice(THRESHOLDS)),
        max_leaf_nodes=None if rng.random() < 0.7 else 4,
        n_bins=8,
    )
    n, n_classes = int(rng.integers(4, 120)), int(rng.integers(2, 6))
    weights = str(rng.choice(["one", "whole", "any"]))
    learner = ugly_table(rng, n, kinds, n_classes, weights, growth, monotone=False)
    problem = BoostProblem(learner, int(rng.integers(1, 9)), float(rng.choice([1.0, 0.5])))
    if rng.random() < 0.3:
        rows = np.arange(0, n, 3)
        held_out = HeldOut(learner.cells.take(rows), learner.target[rows], None, patience=2)
        problem = replace(problem, held_out=held_out)
    return problem


@pytest.mark.parametrize("number", range(60))
def test_the_certificate_of_an_engine_holds_for_any_table(engine, number):
    problem = ugly_boost(number)
    solution = solve(problem, engine)
    if solution.rounds.n_rounds == 0:
        assert solution.status is Status.NO_BETTER_THAN_CHANCE
        assert solution.model.grove.n_trees == 0
        return
    claims = certify_boost_problem(problem, solution.model, solution.rounds)
    assert [f"{claim.name}: {claim.values}" for claim in claims if claim.holds is False] == []


@pytest.mark.parametrize("number", range(40))
def test_engines_agree_until_tests_tie(number):
    """Rounds are the same as long as the trees judge alike; where they part, two tests tie, and the rest may differ."""
    problem = ugly_boost(number)
    one, other = solve(problem, "reference"), solve(problem, "native")
    n_both = min(one.rounds.n_rounds, other.rounds.n_rounds)
    n_same = 0
    for t in range(n_both):
        mine, theirs = (_labels(solution.model.grove, t, problem) for solution in (one, other))
        if not np.array_equal(mine, theirs):
            break
        np.testing.assert_allclose(one.rounds.error[t], other.rounds.error[t], atol=1e-12)
        np.testing.assert_allclose(one.rounds.training_error[t], other.rounds.training_error[t], atol=1e-12)
        n_same += 1
    if n_same == n_both == max(one.rounds.n_rounds, other.rounds.n_rounds):
        assert one.status == other.status


def _labels(grove, t, problem):
    tree = grove.tree(t)
    return np.argmax(tree.value, axis=1)[tree.apply(problem.learner.cells)]


@pytest.mark.parametrize("number", range(10))
def test_repeated_rounds_are_the_same(engine, number):
    problem = replace(ugly_boost(number), n_rounds=6)
    whole = solve(problem, engine)
    if whole.rounds.n_rounds < 3:
        pytest.skip("too few rounds to part")
    before = BoostModel(whole.model.grove.first(2), whole.model.vote[:2], problem.n_classes)
    parts = solve(replace(problem, before=before), engine)
    assert parts.status == whole.status
    for name in ("error", "vote", "training_error"):
        np.testing.assert_array_equal(getattr(parts.rounds, name), getattr(whole.rounds, name))
    for part in fields(Grove)[1:]:
        np.testing.assert_array_equal(getattr(parts.model.grove, part.name), getattr(whole.model.grove, part.name))


@pytest.mark.parametrize("number", range(8))
def test_the_model_is_the_same_for_any_number_of_threads(number):
    problem = ugly_boost(number)
    one, two = (solve(problem, "native", Effort(n_jobs=n_jobs)) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.rounds.error, two.rounds.error)
    for part in fields(Grove)[1:]:
        np.testing.assert_array_equal(getattr(one.model.grove, part.name), getattr(two.model.grove, part.name))


def test_a_grove_is_its_trees(clouds):
    """Taken apart, cut, joined: the same arrays."""
    problem = ugly_boost(5)
    grove = solve(replace(problem, n_rounds=5), "reference").model.grove
    trees = [grove.tree(t) for t in range(grove.n_trees)]
    assert grove.n_trees >= 3
    again = Grove.of(grove.columns, trees)
    joined = Grove.joined([grove.first(2), Grove.of(grove.columns, trees[2:])])
    for part in fields(Grove)[1:]:
        wanted = getattr(grove, part.name)
        for found in (getattr(again, part.name), getattr(joined, part.name)):
            assert found.dtype == wanted.dtype, part.name
            np.testing.assert_array_equal(found, wanted)
    assert Grove.of(grove.columns, []).n_trees == 0
    assert Grove.of(grove.columns, []).start.tolist() == [0]
