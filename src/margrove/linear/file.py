"""The linear classifiers in a model file."""

from __future__ import annotations

from margrove.store.arrays import WHOLE, Array
from margrove.store.schema import PLANE, ROWS, SOLVE, Scalar, Schema
from margrove.svm.file import KERNELS, support_arrays

_WALKED = ("variant", ("averaged", "voted"))

LINEAR_FILE = Schema(PLANE, SOLVE)
PERCEPTRON_FILE = Schema(
    (
        *PLANE,
        Array("n_mistakes_", "m", WHOLE, least=0),
        Array("alpha_", "n m", given=("variant", ("last",)), is_optional=True, least=0),
        Array("makers_", "v", WHOLE, given=_WALKED, least=0, below="n"),
        Array("times_", "v", WHOLE, given=_WALKED, least=1),
        Array("starts_", "m+1", WHOLE, given=_WALKED, rises_to="v"),
        Array("n_steps_", "m", WHOLE, given=_WALKED, least=0),
        Array("prototypes_", "v d+1", given=("variant", ("voted",))),
    ),
    {**SOLVE, **ROWS, "is_warm_": Scalar(bool)},
    later={"penalty": None, "alpha": 0.0001, "l1_ratio": 0.15},
)
KERNEL_PERCEPTRON_FILE = Schema(
    (
        *support_arrays("m", WHOLE),
        Array("n_mistakes_", "m", WHOLE, least=0),
        Array("norm_", "m", least=0),
    ),
    {**SOLVE, **ROWS, "gamma_": Scalar(float)},
    limits=KERNELS,
)
