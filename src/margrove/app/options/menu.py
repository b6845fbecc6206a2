"""The choices of ``--model``: the learners whose descriptions have an offer (`margrove.learner.Offer`).

Nothing heavy is imported here: the names are needed for ``--help`` and for shell completion.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from margrove.learner import Learner, Offer, learners, loaded

AUTO = "auto"  # of ``train``: try several, and take the best
TASKS = ("classify", "regress")
_NUMBER_OR_WORD = ("ccp_alpha",)  # parameters that are numbers by default and may be words


@dataclass(frozen=True)
class Choice(Offer):
    """One choice of ``--model`` with the description of its learner, and the same for numbers if there is one."""

    described: Learner = field(kw_only=True)
    regression: Choice | None = None

    def estimator(self, params: Mapping[str, Any], *, seed: int, time_limit: float | None) -> Any:
        """Return the unfitted estimator; raise `ParameterError` for an unknown parameter, or a wrong value."""
        from margrove.engine.estimator import RunsOnEngine

        kind: Any = loaded(self.described.estimator)
        base: Any = None if self.base is None else loaded(self.base)
        estimator = kind(**({} if base is None else {"estimator": base(**self.boosted)}), **self.defaults)
        own = estimator.get_params()
        for name, value in params.items():
            _check_param(self.name, own, name, value)
        shared = {"random_state": seed, "time_limit": time_limit}
        if self.takes_tables and base is None and "n_estimators" not in own:
            # A tree without a random state takes the first of equal columns: nobody wants another for another --seed.
            del shared["random_state"]
        estimator.set_params(**{**{name: value for name, value in shared.items() if name in own}, **params})
        for each in (estimator, getattr(estimator, "estimator", None)):
            if isinstance(each, RunsOnEngine):
                each._check()  # its own rules, before a table is read
        return estimator


def choices() -> dict[str, Choice]:
    """Return what may be typed after ``--model``, by name: every described learner that has an offer."""
    offered = sorted(
        ((learner.offer, learner) for learner in learners() if learner.offer is not None and learner.offer.is_listed),
        key=lambda pair: pair[0].place,
    )
    numbers = {offer.name: choice_of(learner) for offer, learner in offered if offer.task == "regress"}
    return {
        offer.name: replace(choice_of(learner), regression=numbers.get(offer.name))
        for offer, learner in offered
        if offer.task == "classify"
    }


def choice_of(learner: Learner) -> Choice:
    return Choice(**vars(learner.offer), described=learner)


def choice_named(name: str) -> Choice:
    """Return the learner of that name, or raise `ParameterError`."""
    from margrove.errors import check_choice

    known = choices()
    check_choice("--model", name, (AUTO, *known))
    return known[name]


def completed_choices(incomplete: str) -> list[str]:
    """Return the learners, and ``auto``, that a shell may complete this beginning to."""
    return [name for name in (AUTO, *choices()) if name.startswith(incomplete)]


def parse_params(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``name=value`` pairs; a value is read as JSON, or ``inf``, and as plain text where it is neither."""
    from margrove.errors import ParameterError

    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParameterError(f"--param is {text!r}; it must be name=value, such as max_iter=100.")
        if name in params:
            raise ParameterError(f"--param {name} is given twice.")
        try:
            params[name] = json.loads(value)
        except json.JSONDecodeError:
            params[name] = math.inf if value == "inf" else value
    return params


@contextmanager
def parameters_blamed(params: Mapping[str, Any]) -> Iterator[None]:
    """Turn scikit-learn's own error about a ``--param`` that no check of ours foresaw into a `ParameterError`."""
    from margrove.errors import MargroveError, ParameterError

    try:
        yield
    except MargroveError:
        raise
    except (TypeError, ValueError) as error:
        if not params:
            raise
        raise ParameterError(f"the learner does not accept --param {', '.join(params)}: {error}") from error


def _check_param(learner: str, own: Mapping[str, Any], name: str, value: Any) -> None:
    from margrove.errors import ParameterError, did_you_mean

    if name not in own:
        raise ParameterError(f"{learner} has no parameter {name!r}. {did_you_mean(name, own)}It has {', '.join(own)}.")
    usual = own[name]
    if not isinstance(usual, int | float) or (name in _NUMBER_OR_WORD and isinstance(value, str)):
        return
    is_flag = isinstance(usual, bool)  # which is a number to Python
    if not isinstance(value, int | float) or isinstance(value, bool) != is_flag:
        wanted = "true or false" if is_flag else "a number"
        raise ParameterError(f"--param {name} is {value!r}; it must be {wanted} (the default is {json.dumps(usual)}).")
