"""The Dask engine: tables in partitions on the workers of a cluster, which may die at any time.

The rows stay on the workers; this process holds the model and decides. A worker that dies takes nothing with it that
Dask cannot make again, and every sum is added in the order of the partitions: for one partitioning the model has the
same bits for any number of workers of one kind, whichever of them die.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.dask_partitions import check_extra, connected, partitions_of
from margrove.data.partitions import Partitions
from margrove.engine.registry import Capability, Engine, default
from margrove.errors import ParameterError, shown
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.problem import DualProblem


@dataclass(frozen=True)
class Dask(Engine):
    """A Dask cluster.

    Parameters
    ----------
    address : str, optional
        The address of its scheduler, such as ``"tcp://10.0.0.5:8786"``; ``"local"`` is a cluster of this machine's
        cores for the time of the fit. None is the current `dask.distributed.Client`.

    Examples
    --------
    >>> from margrove import LinearSVC
    >>> from margrove.engine import Dask
    >>> model = LinearSVC(engine=Dask(address="local"))
    >>> model.get_params()["engine"]
    Dask(address='local')
    """

    address: str | None = None
    name = "dask"
    can = frozenset({Capability.TIME_LIMIT, Capability.CHECKPOINT, Capability.PARTITIONED})

    def __post_init__(self) -> None:
        check_extra()
        if self.address is not None and (not isinstance(self.address, str) or not self.address):
            raise ParameterError(
                f"address is {shown(self.address)}; it must be that of a scheduler, 'local', or None for the current "
                "client."
            )

    def solves(self, problem: Problem[Any]) -> bool:
        is_known = not isinstance(problem, DualProblem) or problem.kernel.is_native  # workers compute its values
        return is_known and super().solves(problem)

    def kernel_sums(
        self, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64], effort: Effort
    ) -> NDArray[np.float64]:
        return default().kernel_sums(kernel, points, support, beta, effort)  # of rows in memory

    @contextmanager
    def partitions(self, X: Any, y: Any, sample_weight: Any) -> Iterator[Partitions]:
        """Give the partitions of a table on the cluster; see `margrove.data.dask_partitions.partitions_of`."""
        with connected(self.address) as client:
            yield partitions_of(client, X, y, sample_weight)


from margrove.engine.dask import boost as _boost  # noqa: E402, F401  (register their solvers)
from margrove.engine.dask import forest as _forest  # noqa: E402, F401
from margrove.engine.dask import linear_svm as _linear_svm  # noqa: E402, F401
from margrove.engine.dask import search as _search  # noqa: E402, F401
from margrove.engine.dask import svm as _svm  # noqa: E402, F401
from margrove.engine.dask import tree as _tree  # noqa: E402, F401
