"""One check of choices for all: what is one of them, and what the message says."""

from __future__ import annotations

import numpy as np
import pytest

from margrove.errors import ParameterError, check_choice


@pytest.mark.parametrize("value", ["auto", np.str_("auto"), True, np.True_, None])
def test_what_equals_a_choice_and_is_of_its_kind_is_one(value):
    check_choice("what", value, ("auto", True, False, None))


@pytest.mark.parametrize("value", [1, 0.0, "Auto", ["auto"], {"auto": 1}, np.array(["auto", "auto"]), "x" * 500])
def test_anything_else_is_refused_in_a_short_line(value):
    with pytest.raises(ParameterError, match=r"^what is .+; it must be one of 'auto', True, False\.$") as caught:
        check_choice("what", value, ("auto", True, False))
    assert len(str(caught.value)) < 150


def test_the_message_names_the_alternatives():
    with pytest.raises(ParameterError, match=r"kernel is 'cubic'; it must be one of 'linear', 'rbf', or a callable\."):
        check_choice("kernel", "cubic", ("linear", "rbf"), also="a callable")
    with pytest.raises(ParameterError, match=r"size is 'big'; it must be 'auto', or a number\."):
        check_choice("size", "big", ("auto",), also="a number")


def test_an_option_of_the_command_line_is_shown_as_it_is_typed():
    with pytest.raises(ParameterError, match=r"--to is 'pdf'; it must be one of onnx, sql\."):
        check_choice("--to", "pdf", ("onnx", "sql"))
