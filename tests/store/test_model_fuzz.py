"""Damage of any kind, at random: refused every time, with the one exception and no other."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrove import load
from margrove.errors import ModelFileError


@pytest.fixture(params=["perceptron", "voted", "sparse_kernel_perceptron", "pipeline"])
def whole(request, content):
    return content(request.getfixturevalue(request.param))


def flipped(raw, rng):
    for place in rng.integers(0, len(raw), size=rng.integers(1, 4)):
        raw[place] ^= 1 << rng.integers(0, 8)
    return raw


def overwritten(raw, rng):
    start = int(rng.integers(0, len(raw)))
    piece = rng.bytes(int(rng.integers(1, 64)))
    return raw[:start] + piece + raw[start + len(piece) :]


def cut(raw, rng):
    return raw[: rng.integers(0, len(raw))]


def shortened(raw, rng):
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start + int(rng.integers(1, 100)) :]


def doubled(raw, rng):
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start : start + 50] + raw[start:]


@pytest.mark.parametrize("damage", [flipped, overwritten, cut, shortened, doubled])
def test_damage_is_never_loaded(whole, damage):
    rng = np.random.default_rng(20261115)
    for _ in range(100):
        broken = bytes(damage(bytearray(whole), rng))
        if broken != whole:
            with pytest.raises(ModelFileError):
                load(io.BytesIO(broken))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_never_loaded(noise):
    with pytest.raises(ModelFileError):
        load(io.BytesIO(noise))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4), st.lists), st.data())
@settings(max_examples=200, deadline=None)
def test_nonsense_in_a_forged_header_is_refused_or_harmless(small_perceptron, forge_header, nonsense, data):
    """Any value anywhere in the header, the digest right: the one exception, or a model that still predicts."""
    content, paths = small_perceptron
    broken = forge_header(content, data.draw(st.sampled_from(paths)), nonsense)
    try:
        model = load(io.BytesIO(broken))
    except ModelFileError:
        return
    assert model.predict(np.zeros((1, 3))).shape == (1,)


def paths_in(record, before=()):
    """Every place of a JSON value."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from paths_in(value, (*before, key))


@pytest.fixture(scope="module")
def small_perceptron():
    from margrove import Perceptron, save

    X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [3.0, 3.0, 1.0]])
    stream = io.BytesIO()
    save(Perceptron(random_state=0, class_weight={0: 1.0}).fit(X, np.array([0, 0, 1])), stream)
    from margrove.store import describe

    header = describe(io.BytesIO(stream.getvalue()))
    return stream.getvalue(), [("model", *path) for path in paths_in(header["model"])]


@pytest.fixture(scope="module")
def forge_header():
    from margrove.store.container import pack, unpack

    def change(content, path, value):
        header, tensors = unpack(io.BytesIO(content))
        del header["sha256"]
        place = header
        for key in path[:-1]:
            place = place[key]
        from margrove.store.plain import to_json

        place[path[-1]] = to_json(value, "nonsense")
        return bytes(pack(header, tensors))

    return change
