"""A linear SVM of chunks is that of all rows at once."""

from __future__ import annotations

import threading
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

import margrove.engine.stream as stream_engine
from margrove import LinearSVC, LinearSVR, certify, load, save
from margrove.data import read_chunks
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.linear_svm.problem import LOSSES, implied_beta
from margrove.linear_svm.proximal import KAPPA_OF_SQUARES, proximal_step
from margrove.run.progress import watched

CLASS_LOSSES = ("hinge", "squared_hinge")
VALUE_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
INTERCEPTS = {
    "penalised": {},
    "large scaling": {"intercept_scaling": 10.0},
    "free": {"regularize_intercept": False},
    "none": {"fit_intercept": False},
}


def cut(X, y, rows, weight=None):
    bounds = [*range(0, len(y), rows), len(y)]
    parts = [slice(start, stop) for start, stop in pairwise(bounds)]
    return [(X[part], y[part]) if weight is None else (X[part], y[part], weight[part]) for part in parts]


def rows_of(seed, n=300, d=6, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.3
    X[:, 0] *= 100  # unscaled
    X[:, 1] = 1.0  # constant
    X[n // 2 : n // 2 + 20] = X[:20]  # repeated
    codes = (X[:, 2:] @ rng.normal(size=(d - 2, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)
    return X, codes


def assert_same_objective(streamed, model, X, y):
    """That of all rows at once, whose own gap brackets the best there is."""
    whole = clone(model).fit(X, y)
    assert (streamed.primal_ <= whole.primal_ * (1 + 1e-6)).all()
    assert (streamed.primal_ >= whole.dual_ * (1 - 1e-12)).all()
    assert streamed.gap_.max() <= 1e-6


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", CLASS_LOSSES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_a_stream_finds_the_objective_of_all_rows_at_once(loss, intercept, C):
    X, y = rows_of(0)
    model = LinearSVC(loss=loss, C=C, tol=1e-6, max_iter=100_000, **INTERCEPTS[intercept])
    streamed = clone(model).fit_stream(cut(X, y, 70))
    assert_same_objective(streamed, model, X, y)
    assert certify(streamed, cut(X, y, 110)).holds
    assert certify(streamed, X, y).holds


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", VALUE_LOSSES)
def test_a_regression_over_a_stream_finds_the_objective_of_all_rows_at_once(loss, intercept):
    X, _ = rows_of(1)
    y = X[:, 2:] @ [1.0, -2.0, 3.0, 0.5] + np.random.default_rng(1).normal(size=len(X)) + 50
    model = LinearSVR(loss=loss, epsilon=0.3, tol=1e-6, max_iter=100_000, **INTERCEPTS[intercept])
    streamed = clone(model).fit_stream(cut(X, y, 70))
    assert_same_objective(streamed, model, X, y)
    assert certify(streamed, cut(X, y, 33)).holds
    assert streamed.coef_.shape == (6,)
    assert streamed.predict(X).shape == y.shape


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_several_classes_share_the_passes(loss):
    X, y = rows_of(2, n_classes=4)
    labels = np.array(["a", "b", "c", "d"])[y]
    seen = []

    def chunks():
        seen.append(1)
        return iter(cut(X, labels, 100))

    model = LinearSVC(loss=loss, tol=1e-6, class_weight="balanced")
    whole, streamed = clone(model).fit(X, labels), clone(model).fit_stream(chunks)
    np.testing.assert_allclose(streamed.primal_, whole.primal_, rtol=1.5e-6)
    assert len(seen) == streamed.n_iter_ + 1  # one look, then the passes of all machines
    assert (streamed.predict(X) == whole.predict(X)).mean() > 0.99


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_the_size_of_chunks_does_not_matter(loss):
    X, y = rows_of(3)
    primal = [LinearSVC(loss=loss, tol=1e-6).fit_stream(cut(X, y, rows)).primal_[0] for rows in (1, 17, 300)]
    np.testing.assert_allclose(primal, primal[0], rtol=1e-9)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_weights_are_repeats(loss):
    X, y = rows_of(4)
    weight = np.arange(len(y)) % 3
    model = LinearSVC(loss=loss, tol=1e-6)
    weighted = clone(model).fit_stream(cut(X, y, 80, weight.astype(float)))
    repeated = clone(model).fit_stream(cut(np.repeat(X, weight, axis=0), np.repeat(y, weight), 80))
    np.testing.assert_allclose(weighted.primal_, repeated.primal_, rtol=1.5e-6)


def test_sparse_chunks_are_dense_chunks_and_float32_stays_close():
    X, y = rows_of(5)
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense = LinearSVC(tol=1e-6).fit_stream(cut(X, y, 80))
    sparse = LinearSVC(tol=1e-6).fit_stream(cut(sp.csr_matrix(X), y, 80))
    np.testing.assert_allclose(sparse.primal_, dense.primal_, rtol=1e-9)
    single = LinearSVC(tol=1e-6).fit_stream(cut(X.astype(np.float32), y, 80))
    np.testing.assert_allclose(single.primal_, dense.primal_, rtol=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_the_format_of_sparse_chunks_does_not_matter(form):
    X, y = rows_of(5, n=90)
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense = LinearSVC(tol=1e-6).fit_stream(cut(X, y, 40))
    for kind in (sp.csr_matrix, sp.csr_array):
        listed = [(kind(points).asformat(form), labels) for points, labels in cut(X, y, 40)]
        for chunks in (listed, (kind(X).asformat(form), y)):
            streamed = LinearSVC(tol=1e-6).fit_stream(chunks)
            np.testing.assert_allclose(streamed.primal_, dense.primal_, rtol=1e-9)
            assert certify(streamed, chunks).holds


def test_targets_may_come_as_one_column():
    X, y = rows_of(5, n=120)
    for learner in (LinearSVC, LinearSVR):
        flat = learner().fit_stream(cut(X, y, 50))
        for chunks in (cut(X, y[:, None], 50), (X, y[:, None])):
            with pytest.warns(DataConversionWarning):
                column = learner().fit_stream(chunks)
            np.testing.assert_allclose(column.coef_, flat.coef_, rtol=1e-6)


DAYS = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")


@pytest.mark.parametrize(
    "names",
    [
        np.array([3, 7], dtype=object),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([b"n", b"y"]),
        np.array([0.0, 1.0], dtype=np.float32),
        DAYS,
        DAYS.astype("datetime64[ns]"),
    ],
    ids=lambda names: str(names.dtype),
)
def test_a_stream_takes_the_labels_that_fit_takes(names):
    X, y = rows_of(25)
    whole = LinearSVC(tol=1e-6).fit(X, names[y])
    for classes in (None, names):
        streamed = LinearSVC(tol=1e-6).fit_stream(cut(X, names[y], 100), classes)
        assert (streamed.classes_ == whole.classes_).all()
        assert streamed.classes_.dtype.kind == whole.classes_.dtype.kind or names.dtype == object
        np.testing.assert_allclose(streamed.primal_, whole.primal_, rtol=1.5e-6)
        assert (streamed.predict(X) == whole.predict(X)).mean() > 0.99
        assert certify(streamed, cut(X, names[y], 100)).holds


def test_a_pair_of_memory_maps_is_a_stream(tmp_path):
    X, y = rows_of(6)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    mapped = tuple(np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    model = LinearSVC(tol=1e-6).fit_stream(mapped)
    np.testing.assert_allclose(model.primal_, LinearSVC(tol=1e-6).fit(X, y).primal_, rtol=1.5e-6)
    assert certify(model, mapped).holds


def test_a_file_is_a_stream(tmp_path):
    X, y = rows_of(7)
    path = tmp_path / "t.csv"
    path.write_text(
        "".join(",".join(map(repr, [*row, label])) + "\n" for row, label in zip(X.tolist(), y.tolist(), strict=True))
    )
    model = LinearSVC(loss="hinge", tol=1e-6).fit_stream(read_chunks(path, rows=50))
    np.testing.assert_allclose(
        model.primal_, LinearSVC(loss="hinge", tol=1e-6, max_iter=100_000).fit(X, y).primal_, rtol=1.5e-6
    )


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_very_many_columns_are_solved_by_blocks_of_rows(loss, intercept, monkeypatch):
    monkeypatch.setattr(stream_engine, "MOST_COLUMNS", 3)
    rng = np.random.default_rng(8)
    X = sp.random(160, 40, 0.2, format="csr", random_state=8)
    y = (X @ rng.normal(size=40) > 0.2).astype(float)
    learner = LinearSVC if loss in CLASS_LOSSES else LinearSVR
    model = learner(loss=loss, C=0.3, tol=1e-3, max_iter=100_000, **INTERCEPTS[intercept])
    streamed, whole = (
        clone(model).fit_stream(cut(X, y, 50), max_passes=400),
        clone(model).set_params(tol=1e-6).fit(X, y),
    )
    assert "descent" in streamed.solver_
    assert whole.primal_[0] * (1 - 1e-6) <= streamed.primal_[0] <= whole.primal_[0] * (1 + 1.1e-3)
    assert streamed.dual_[0] <= whole.primal_[0] * (1 + 1e-9)
    proof = certify(streamed, cut(X, y, 70))
    assert proof.holds
    assert proof["dual value"] == pytest.approx(streamed.dual_[0], rel=1e-6)


def test_dual_coefficients_of_too_many_rows_and_columns_are_not_kept(monkeypatch):
    monkeypatch.setattr(stream_engine, "MOST_COLUMNS", 3)
    monkeypatch.setattr("margrove.engine.stream.descent.KEPT_BETA", 299)
    X, y = rows_of(8)
    X = X[:, 1:]  # all of one scale
    model = LinearSVC(loss="hinge", tol=0.5).fit_stream(cut(X, y, 100))
    assert not hasattr(model, "dual_coef_")
    with pytest.raises(
        InputError, match=r"too many rows and columns to keep the dual coefficients.*squared_hinge.*gap_"
    ):
        certify(model, cut(X, y, 100))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_zeros_do_not_keep_the_gap_open(loss, intercept, monkeypatch):
    monkeypatch.setattr(stream_engine, "MOST_COLUMNS", 3)
    rng = np.random.default_rng(29)
    X = np.vstack([np.zeros((25, 8)), rng.normal(size=(100, 8)), np.zeros((25, 8))])
    y = rng.permutation(np.repeat([0.0, 1.0], 75))
    learner = LinearSVC if loss in CLASS_LOSSES else LinearSVR
    model = learner(loss=loss, C=0.3, tol=1e-3, max_iter=100_000, **INTERCEPTS[intercept])
    for rows in (X, np.zeros_like(X)):
        streamed = clone(model).fit_stream(cut(rows, y, 20), max_passes=1000)
        assert "descent" in streamed.solver_
        assert streamed.gap_[0] <= 1e-3
        whole = clone(model).set_params(tol=1e-6).fit(rows, y)
        assert streamed.primal_[0] == pytest.approx(whole.primal_[0], rel=1.1e-3)
        assert streamed.dual_[0] <= whole.primal_[0] * (1 + 1e-9)


def test_a_squared_loss_has_the_beta_that_w_implies():
    rng = np.random.default_rng(9)
    f, C = rng.normal(size=50), rng.uniform(0, 2, size=50)
    for loss, z in (
        ("squared_hinge", np.sign(rng.normal(size=50))),
        ("squared_epsilon_insensitive", rng.normal(size=50)),
    ):
        epsilon = 0.0 if loss == "squared_hinge" else 0.4
        beta, _ = proximal_step(loss, z, f, C, epsilon, 0.0, KAPPA_OF_SQUARES)
        np.testing.assert_allclose(beta, implied_beta(loss, z, f, C, epsilon), atol=1e-14)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_odd_streams_converge(loss):
    model = LinearSVC(loss=loss, tol=1e-6)
    separable = [([[0.0], [1.0]], [0, 0]), ([[3.0], [4.0]], [1, 1])]
    assert clone(model).set_params(C=1e6).fit_stream(separable).gap_[0] <= 1e-6
    same = [([[1.0, 2.0]] * 4, [0, 1, 1, 1]), (np.empty((0, 2)), []), ([[1.0, 2.0]], [0])]
    assert clone(model).fit_stream(same).gap_[0] <= 1e-6
    wide = [(np.eye(5, 30)[[k]], [k % 2]) for k in range(5)]
    assert clone(model).fit_stream(wide).gap_[0] <= 1e-6
    zeros = [(np.zeros((6, 3)), [0, 1] * 3)]
    assert clone(model).fit_stream(zeros).gap_[0] <= 1e-6
    tiny = [(np.random.default_rng(0).normal(size=(40, 3)), [0, 1] * 20)]
    assert clone(model).set_params(C=1e-12).fit_stream(tiny).gap_[0] <= 1e-6


def test_a_certificate_over_chunks_is_that_over_all_rows_and_finds_a_change():
    X, y = rows_of(10)
    model = LinearSVC(loss="hinge").fit_stream(cut(X, y, 60))
    assert model.certificate_.source == "solver"
    streamed, whole = certify(model, cut(X, y, 45)), certify(model, X, y)
    assert [claim.name for claim in streamed.claims] == [claim.name for claim in whole.claims]
    for ours, theirs in zip(streamed.claims, whole.claims, strict=True):
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(streamed["relative duality gap"], model.gap_[0], rtol=1e-3, atol=1e-12)
    model.coef_ = model.coef_ * 1.1
    assert not certify(model, cut(X, y, 45)).holds


def test_a_model_of_all_rows_can_be_certified_over_chunks():
    X, y = rows_of(11)
    model = LinearSVC(loss="hinge").fit(X, y)
    assert certify(model, cut(X, y, 45)).holds
    assert not certify(model, cut(X[:-1], y[:-1], 45)).holds


def test_a_model_file_keeps_the_dual_steps(tmp_path):
    X, y = rows_of(22, n_classes=3)
    model = LinearSVC(loss="hinge").fit_stream(cut(X, y, 90))
    save(model, tmp_path / "model.margrove")
    loaded = load(tmp_path / "model.margrove")
    assert loaded.engine_ == "stream"
    assert certify(loaded, cut(X, y, 90)).holds
    save(LinearSVC().partial_fit(X, y, classes=[0, 1, 2]), tmp_path / "pieces.margrove")
    assert np.isnan(load(tmp_path / "pieces.margrove").gap_).all()


def test_a_loaded_model_goes_on_with_pieces(tmp_path):
    X, y = rows_of(10)
    model = LinearSVC(loss="hinge").partial_fit(X[:150], y[:150], classes=[0, 1])
    save(model, tmp_path / "pieces.margrove")
    again = load(tmp_path / "pieces.margrove").partial_fit(X[150:], y[150:])
    model.partial_fit(X[150:], y[150:])
    assert again.n_seen_ == model.n_seen_ == len(X)
    np.testing.assert_array_equal(again.dual_, model.dual_)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_memory_of_a_stream_is_that_of_a_chunk():
    d, rows, count = 20, 2000, 60

    def chunks():
        for number in range(count):
            rng = np.random.default_rng(number)
            X = rng.normal(size=(rows, d))
            yield X, (X[:, 0] + rng.normal(size=rows) > 0).astype(int)

    for loss in CLASS_LOSSES:
        tracemalloc.start()
        model = LinearSVC(loss=loss, tol=1e-2).fit_stream(chunks)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert model.gap_[0] <= 1e-2
        assert peak < 12 * rows * d * 8 < count * rows * d * 8 / 4


# Pieces


@pytest.mark.parametrize("many_columns", [False, True])
@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_pieces_raise_a_lower_bound_of_the_objective_of_all_rows(loss, many_columns, monkeypatch):
    if many_columns:
        monkeypatch.setattr(stream_engine, "MOST_COLUMNS", 3)
    X, y = rows_of(12)
    X = X / np.abs(X).max(axis=0)
    model, last = LinearSVC(loss=loss, C=0.1, tol=1e-3), 0.0
    for number, (points, labels) in enumerate(cut(X, y, 60), start=1):
        model.partial_fit(points, labels, classes=[0, 1])
        seen = slice(0, 60 * number)
        best = LinearSVC(loss=loss, C=0.1, tol=1e-6, max_iter=100_000).fit(X[seen], y[seen])
        assert last < model.dual_[0] <= best.primal_[0] * (1 + 1e-9)
        assert model.n_seen_ == min(60 * number, 300)
        last = model.dual_[0]
    assert model.certificate_.source == "solver"
    assert model.certificate_["dual value"] == last
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_one_chunk_is_the_whole_problem(loss):
    X, y = rows_of(13, n_classes=3)
    piece = LinearSVC(loss=loss, tol=1e-6).partial_fit(X, y, classes=[0, 1, 2])
    whole = LinearSVC(loss=loss, tol=1e-6, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(piece.dual_, whole.primal_, rtol=2e-6)


def test_a_piece_is_the_least_of_its_own_problem():
    """½‖w − w_before‖² + C Σ ℓ over the chunk: no step from its solution is better."""
    X, _ = rows_of(14)
    X = X / np.abs(X).max(axis=0)
    t = X @ np.arange(6.0)
    model = LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, tol=1e-9).partial_fit(X[:150], t[:150])
    before = np.append(model.coef_, model.intercept_)
    model.partial_fit(X[150:], t[150:] + 1)
    after = np.append(model.coef_, model.intercept_)

    def objective(theta):
        excess = np.maximum(np.abs(t[150:] + 1 - X[150:] @ theta[:-1] - theta[-1]) - 0.1, 0)
        return 0.5 * ((theta - before) ** 2).sum() + (excess**2).sum()

    rng = np.random.default_rng(0)
    steps = rng.normal(size=(50, 7)) * 1e-2
    assert min(objective(after + step) for step in steps) > objective(after)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_pieces_after_a_fit_go_on_from_its_weights_with_a_count_of_their_own(loss):
    X, y = rows_of(17)
    X = X / np.abs(X).max(axis=0)
    model = LinearSVC(loss=loss, tol=1e-8, max_iter=100_000).fit(X[:150], y[:150])
    before = np.append(model.coef_, model.intercept_)
    model.sparsify().partial_fit(X[150:], y[150:])
    after = np.append(model.coef_, model.intercept_)
    excess = np.maximum(1 - (2 * y[150:] - 1) * (X[150:] @ after[:-1] + after[-1]), 0)
    lost = excess.sum() if loss == "hinge" else (excess**2).sum()
    assert model.n_seen_ == 150
    assert model.dual_[0] == pytest.approx(0.5 * ((after - before) ** 2).sum() + lost, rel=1e-5)
    assert not hasattr(model.fit(X, y), "n_seen_")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"penalty": "l1"}, "penalty is 'l1'"),
        ({"multi_class": "crammer_singer"}, "multi_class is 'crammer_singer'"),
        ({"regularize_intercept": False}, "regularize_intercept is False"),
    ],
)
def test_pieces_are_not_to_be_had_where_they_cannot_be_learned(parameters, words):
    model = LinearSVC(**parameters)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as raised:
        model.partial_fit  # noqa: B018
    assert words in str(raised.value.__cause__)
    assert hasattr(LinearSVC(regularize_intercept=False, fit_intercept=False), "partial_fit")


def test_pieces_are_refused_where_they_cannot_be_learned():
    X, y = rows_of(15)
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        LinearSVC().partial_fit(X, y)
    with pytest.raises(ParameterError, match="the first call of partial_fit had 0, 1"):
        LinearSVC().fit(X, y).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(InputError, match="balanced"):
        LinearSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    model = LinearSVC().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(InputError, match="label 7"):
        model.partial_fit(X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.partial_fit(X[:, :3], y)


# Errors of streams


def test_errors_in_a_stream_name_their_chunk():
    X, y = rows_of(16)
    good = cut(X, y, 100)
    for chunks, words in (
        ([*good, (X[:, :4], y)], "chunk 4: X has 4 features, but LinearSVC is expecting 6"),
        ([*good, (np.full_like(X, np.nan), y)], "chunk 4: Input X contains NaN, first in row 0"),
        ([*good, (X, y[:-1])], "chunk 4: Found input variables with inconsistent numbers of samples"),
        ([*good, (X,)], "chunk 4 is a tuple of 1"),
        ([*good, (X, y, -np.ones(len(y)))], "chunk 4: sample_weight"),
        ([], "no rows"),
        ([(X, np.zeros(len(y)))], "only one class"),
    ):
        with pytest.raises(InputError, match=words):
            LinearSVC().fit_stream(chunks)
    with pytest.raises(InputError, match="chunk 1: label 1 is not one"):
        LinearSVC().fit_stream(good, classes=[0, 2])
    with pytest.raises(InputError, match="several types"):
        LinearSVC().fit_stream([(X, y), (X, y.astype(str))])


@pytest.mark.parametrize("missing", [np.nan, None, np.float32("nan")])
def test_a_missing_label_among_text_is_reported_as_one_of_y(missing):
    X, y = rows_of(26)
    labels = np.array(["no", "yes"], dtype=object)[y]
    labels[103] = missing
    with pytest.raises(InputError, match="chunk 2: Input y contains NaN, first in row 3"):
        LinearSVC().fit_stream(cut(X, labels, 100))
    with pytest.raises(InputError, match="Input y contains NaN, first in row 103"):
        LinearSVC().fit(X, labels)


def test_labels_of_several_types_and_missing_dates_are_refused():
    X, y = rows_of(27)
    with pytest.raises(InputError, match="chunk 1: y mixes labels of different types: int, str"):
        LinearSVC().fit_stream(cut(X, np.array(["no", 1], dtype=object)[y], 100))
    dates = DAYS[y]
    dates[203] = "NaT"
    with pytest.raises(InputError, match="chunk 3: Input y contains NaT, first in row 3"):
        LinearSVC().fit_stream(cut(X, dates, 100))
    with pytest.raises(InputError, match="several types"):
        LinearSVC().fit_stream([(X, y), (X, DAYS[y])])


def test_a_class_without_rows_is_refused():
    X, y = rows_of(28)
    with pytest.raises(InputError, match="the chunks contain no row of class 2") as raised:
        LinearSVC().fit_stream(cut(X, y, 100), classes=[0, 1, 2])
    assert "weight" not in str(raised.value)
    nothing = [(X, y, (y == 0).astype(float))]
    with pytest.raises(InputError, match="sample_weight or class_weight is 0 for all rows of class 1"):
        LinearSVC().fit_stream(nothing, classes=[0, 1])
    for classes in ([], [1]):
        with pytest.raises(ParameterError, match="at least two"):
            LinearSVC().fit_stream(cut(X, y, 100), classes)


@pytest.mark.parametrize("class_weight", ["foo", 3, {"a": 2.0}, {0: 0.0}, {0: -1.0}, {0: "much"}])
def test_class_weights_that_fit_refuses_are_refused_with_the_same_message(class_weight):
    X, y = rows_of(23)
    model = LinearSVC(class_weight=class_weight)
    with pytest.raises((InputError, ParameterError)) as of_fit:
        model.fit(X, y)
    with pytest.raises(of_fit.type) as of_stream:
        model.fit_stream(cut(X, y, 100))
    assert str(of_stream.value) == str(of_fit.value)


@pytest.mark.parametrize("class_weight", ["foo", 3, [1.0, 2.0], {"a": 2.0}, {0: 0.0}, {0: -1.0}, {0: "much"}])
def test_class_weights_that_fit_refuses_are_refused_by_pieces_too(class_weight):
    X, y = rows_of(23)
    model = LinearSVC(class_weight=class_weight)
    with pytest.raises((InputError, ParameterError)) as of_fit:
        model.fit(X, y)
    with pytest.raises(of_fit.type) as of_piece:
        model.partial_fit(X, y, classes=[0, 1])
    assert str(of_piece.value) == str(of_fit.value)


@pytest.mark.parametrize("loss", LOSSES)
def test_after_partial_fit_only_a_squared_loss_can_be_certified(loss):
    X, y = rows_of(24)
    chunks = cut(X, y.astype(float), 100)
    learner, given = (LinearSVC, {"classes": [0, 1]}) if loss in CLASS_LOSSES else (LinearSVR, {})
    model = learner(loss=loss)
    for piece in chunks:
        model.partial_fit(*piece, **given)
    text = str(model.certificate_)
    assert "converged on the last chunk: the solver's own numbers, as far as they are known" in text
    assert "unknown, because partial_fit does not keep the rows" in text
    assert np.isnan(model.gap_).all()
    if loss.startswith("squared"):
        assert "certify(model, chunks)" in model.certificate_.claim("relative duality gap").words
        assert certify(model, chunks)["relative duality gap"] > model.tol
    else:
        assert "use fit_stream" in text
        with pytest.raises(InputError, match=rf"fitted by partial_fit.*Use loss='squared_{loss}'.*fit_stream"):
            certify(model, chunks)


def test_invalid_class_weights_are_refused_before_the_first_pass():
    with pytest.raises(ParameterError, match="class_weight is 'foo'"):
        LinearSVC(class_weight="foo").fit_stream(lambda: pytest.fail("walked"))


def test_a_chunk_may_have_weight_zero_but_needs_a_weight_for_each_row():
    X, y = rows_of(24)
    chunks = cut(X, y, 100)
    weightless = (X[:50], 1 - y[:50], np.zeros(50))
    for weight in (np.zeros(50), 0.0):
        with_it = LinearSVC(tol=1e-6).fit_stream([*chunks, (*weightless[:2], weight)])
        np.testing.assert_allclose(with_it.primal_, LinearSVC(tol=1e-6).fit_stream(chunks).primal_, rtol=1.5e-6)
    for weight in (np.zeros(49), np.zeros((50, 1)), []):
        for learner in (LinearSVC, LinearSVR):
            with pytest.raises(InputError, match="chunk 4: sample_weight"):
                learner().fit_stream([*chunks, (*weightless[:2], weight)])


def test_a_generator_and_a_stream_that_runs_dry_are_refused():
    X, y = rows_of(17)
    with pytest.raises(ParameterError, match="only once"):
        LinearSVC().fit_stream(part for part in cut(X, y, 100))
    spent = iter(cut(X, y, 100))
    with pytest.raises(InputError, match="300 rows in the first pass, and 0 in a later one"):
        LinearSVC().fit_stream(lambda: spent)
    with pytest.raises(ParameterError, match="type int"):
        LinearSVC().fit_stream(5)


def test_parameters_that_streams_do_not_support_are_refused():
    X, y = rows_of(18)
    for parameters in ({"penalty": "l1"}, {"multi_class": "crammer_singer"}):
        with pytest.raises(ParameterError, match="fit_stream"):
            LinearSVC(**parameters).fit_stream([(X, y)])
    with pytest.raises(ParameterError, match="max_passes"):
        LinearSVC().fit_stream([(X, y)], max_passes=0)


def test_categories_in_a_file_are_refused_with_the_cure(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 5},{'uv'[i % 2]},{i % 3 > 0}\n" for i in range(60)))
    chunks = read_chunks(path, rows=20)
    with pytest.raises(InputError, match="encoded"):
        LinearSVC().fit_stream(chunks)
    model = LinearSVC().fit_stream(chunks.encoded())
    assert model.status_ == "converged"


# Interruption


def test_a_limit_keeps_the_best_model_and_its_gap():
    X, y = rows_of(19)
    chunks = cut(X, y, 50)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        few = LinearSVC(loss="hinge", tol=1e-9).fit_stream(chunks, max_passes=4)
    assert few.status_ == "max_iter"
    assert 1e-9 < few.gap_[0] <= 1
    assert few.primal_[0] >= LinearSVC(loss="hinge", tol=1e-6).fit(X, y).dual_[0]
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        late = LinearSVC(loss="hinge", time_limit=1e-9).fit_stream(chunks)
    assert late.gap_[0] == 1
    assert not late.coef_.any()
    assert len(late.predict(X)) == len(X)


def test_ctrl_c_keeps_the_best_model():
    X, y = rows_of(20)
    passes = []

    def chunks():
        passes.append(1)
        for number, chunk in enumerate(cut(X, y, 50)):
            if len(passes) == 6 and number == 2:
                raise KeyboardInterrupt
            yield chunk

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC(loss="hinge", tol=1e-9).fit_stream(chunks)
    assert model.status_ == "interrupted"
    assert 0 < model.gap_[0] < 1 or model.primal_[0] < 300


def test_progress_reports_passes_and_the_gap():
    X, y = rows_of(21)
    seen = []

    def slowly():
        for chunk in cut(X, y, 100):
            threading.Event().wait(0.02)
            yield chunk

    with watched(seen.append), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearSVC(tol=1e-6).fit_stream(slowly)
    gaps = [progress.objective for progress in seen if progress.stage == "passes"]
    assert len(gaps) > 1
    assert gaps[-1] <= gaps[0]
    assert {progress.goal for progress in seen if progress.stage == "passes"} == {1e-6}
