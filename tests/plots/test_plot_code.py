"""`plot_code`: a code matrix as it is."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

from margrove import SVC, BitStringClassifier, OneVsOneClassifier
from margrove.errors import InputError, ParameterError
from margrove.multiclass.codes import exhaustive, hadamard
from margrove.plots import plot_code


def cells_of(ax):
    """The matrix that is drawn, row 0 on top."""
    assert ax.yaxis_inverted()
    return np.asarray(ax.collections[0].get_array()).reshape(len(ax.get_yticks()), -1)


def test_the_picture_is_the_matrix_with_its_signs():
    code = hadamard(5)
    ax = plot_code(code, list("abcde"))
    np.testing.assert_array_equal(cells_of(ax), code)
    assert [text.get_text() for text in ax.get_yticklabels()] == list("abcde")
    signs = np.array([text.get_text() for text in ax.texts]).reshape(code.shape)
    np.testing.assert_array_equal(signs == "+", code > 0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["positive side", "negative side"]


def test_a_fitted_model_labels_its_classes_and_zeros_have_their_own_colour():
    X, y = load_iris(return_X_y=True)
    model = OneVsOneClassifier(SVC()).fit(X, load_iris().target_names[y])
    _, given = plt.subplots()
    ax = plot_code(model, ax=given)
    assert ax is given
    assert ax.get_title(loc="left") == "3 machines, minimum distance 2, corrects 0"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["setosa", "versicolor", "virginica"]
    assert ax.get_legend().get_texts()[-1].get_text() == "not used"


def test_a_code_of_a_thousand_machines_has_no_signs_and_few_ticks():
    ax = plot_code(exhaustive(11))
    assert not ax.texts
    assert len(ax.get_xticks()) <= 21


def test_invalid_codes_are_refused():
    with pytest.raises(ParameterError, match="same code word"):
        plot_code([[1, -1], [1, -1], [-1, 1]])
    with pytest.raises(ParameterError, match="labels has 2 entries, but the code has 4 classes"):
        plot_code(hadamard(4), ["a", "b"])
    with pytest.raises(InputError, match="SVC has no code matrix"):
        plot_code(SVC().fit([[0.0], [1.0]], [0, 1]))
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        plot_code(BitStringClassifier())
