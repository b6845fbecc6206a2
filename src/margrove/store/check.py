"""Checks of what a record says, whoever wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.store.fault import FaultError, shown

if TYPE_CHECKING:
    from margrove.certificate import Certificate

MOST_COLUMNS = 2**31 - 1  # the core counts the columns of sparse rows in 32 bits


def check_fields(record: Any, wanted: set[str], what: str) -> None:
    """Check that it is a JSON object with exactly these names."""
    if not isinstance(record, dict):
        raise FaultError(f"{what} is {shown(record)}; a JSON object was expected")
    for name in sorted(wanted - record.keys()):
        raise FaultError(f"{what} has no {name!r}")
    for name in sorted(record.keys() - wanted):
        raise FaultError(f"{what} has {shown(name)}, which is unknown")


def check_integer(value: Any, least: int, what: str, most: int = np.iinfo(np.int64).max) -> int:
    """Return a whole number that NumPy can count to."""
    if type(value) is not int or not least <= value <= most:
        raise FaultError(f"{what} is {shown(value)}; a whole number from {least} to {most} was expected")
    return value


def check_target(target: Any, names: Any) -> str | None:
    """Return the name of the target, None if it has none: none of the columns'."""
    if target is not None and (type(target) is not str or target in names):
        raise FaultError(f"the target is {shown(target)}; a name that no other column has was expected")
    return target


def check_certificate(record: Any, learner: str, machines: int, parts: int = 1) -> Certificate:
    """Return the certificate, as it was; that its words are true is for `certify` to find out. A claim has a value for
    each machine, or for each part of the machine (the splits of a tree), or one for all."""
    from margrove.certificate import Certificate

    try:
        certificate = Certificate.from_dict(record)
        is_whole = certificate.to_dict() == record
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FaultError("its certificate is not one that Margrove wrote") from error
    if not is_whole or certificate.learner != learner or len(certificate.machines) != machines:
        raise FaultError("its certificate does not fit the model")
    for claim in certificate.claims:
        has_limits = claim.limits is None or len(claim.limits) == len(claim.values)
        if not has_limits or len(claim.values) not in (0, 1, machines, parts):
            raise FaultError(
                f"its certificate does not fit the model: {shown(claim.name)} has {len(claim.values)} values"
            )
    return certificate
