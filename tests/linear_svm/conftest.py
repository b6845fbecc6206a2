"""Fixtures of the linear SVMs' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from margrove.run import slices
from margrove.run.progress import Progress, watched


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """`with ctrl_c(): …` presses Ctrl-C when the solve in it tells of its progress for the third time."""
    monkeypatch.setattr(slices, "SLICE", 1e-3)

    @contextmanager
    def pressed() -> Iterator[None]:
        reports: list[Progress] = []

        def press(progress: Progress) -> None:
            reports.append(progress)
            if len(reports) == 3:
                raise KeyboardInterrupt

        with watched(press):
            yield

    return pressed
