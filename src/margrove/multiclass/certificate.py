"""Certificates of codes: distance and errors corrected, recomputed from the matrix, and a certificate for each machine.

Nothing here imports a solver or an engine: the machines are certified by `margrove.certify`, each on the rows of its
column of the code, or with its label. Where a learner has no certificate, that of the code alone would be no proof of
the model: `certify` raises an error. A machine that is constant claims that every row is on its side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from margrove.certificate import Certificate, Claim, Source, certify
from margrove.errors import InputError, ParameterError
from margrove.multiclass.codes import check_code, errors_corrected, minimum_distance
from margrove.multiclass.problem import ConstantMachine, Layout, Question, as_rows, last_step, rows_of, weights_of
from margrove.run.progress import as_one_of
from margrove.svm.layout import code_of

_HELD = "machines whose certificate holds"
_CONSTANT = "rows on the other side of a constant"


def certify_coded(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Certify a fitted scheme of Margrove's."""
    if not hasattr(model, "_machines"):
        package = type(model).__module__.partition(".")[0]
        raise InputError(
            f"{type(model).__name__} of {package} has no certificate",
            cure="Fit Margrove's estimator of the same name.",
        )
    certificates = column_certificates(model, X, y, sample_weight)
    return _certificate(model, "recomputed", _num_samples(y), certificates)


def column_certificates(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Certificate]:
    """Return the certificate of each machine of a fitted scheme, on its own rows; one where machines share a
    kernel, with a number for each machine in every line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import BasicLinearClassifier, OneVsOneClassifier
    >>> from margrove.multiclass.certificate import column_certificates
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier(BasicLinearClassifier()).fit(X, y)
    >>> [(each.n_rows, each.holds) for each in column_certificates(model, X, y)]
    [(100, True), (100, True), (100, True)]
    """
    machines = model._machines
    if machines.is_shared:
        return [certify(machines.estimators[0], X, y, sample_weight)]
    X, found = as_rows(X, is_pairwise=machines.is_pairwise), []
    columns = Layout.of(model).questions(y)
    for number, (estimator, column) in enumerate(zip(machines.estimators, columns, strict=True)):
        if isinstance(estimator, ConstantMachine):
            found.append(_certify_constant(estimator, column))
            continue
        part = rows_of(X, column.rows, is_pairwise=machines.is_pairwise)
        weight = weights_of(sample_weight, column.rows, _num_samples(y))
        learner = last_step(estimator)
        # The labels of its sides: 0 and 1, in older model files −1 and +1; a regressor has no labels.
        sides = column.targets if not hasattr(learner, "classes_") else learner.classes_[column.targets]
        with as_one_of("certificate", number, len(machines.estimators)):
            found.append(certify(estimator, part, sides, weight))
    return found


def _certify_constant(machine: ConstantMachine, column: Question) -> Certificate:
    against = np.array([np.count_nonzero(column.targets != machine.side)])
    words = f"all rows are on side {machine.side}, which it predicts"
    return Certificate.of(
        machine, "recomputed", len(column.sign), ("1 vs 0",), (Claim.bounded(_CONSTANT, against, np.zeros(1), words),)
    )


def combined_certificate(model: Any) -> Certificate:
    """Return the certificates of a fitted scheme and its machines as they are: recomputed only if every machine's
    is."""
    machines = [each for each in model._machines.estimators if not isinstance(each, ConstantMachine)]
    own = [getattr(last_step(each), "certificate_", None) for each in machines]
    known = [each for each in own if isinstance(each, Certificate)]
    # A constant keeps no count of the rows: only `certify` can prove it.
    is_known = len(known) == len(model._machines.estimators)
    n_rows = max((each.n_rows for each in known), default=0)
    if is_known and all(each.source == "recomputed" for each in known):
        return _certificate(model, "recomputed", n_rows, known)
    # A solver's own certificate proves nothing: no claim holds, and none is counted.
    found = _certificate(model, "solver", n_rows, known if is_known else [])
    return replace(found, claims=tuple(replace(each, holds=None) for each in found.claims if each.name != _HELD))


def code_claims(model: Any) -> tuple[Claim, ...]:
    """Return the claims of the code, from its matrix alone; where there is none, that each label has a machine."""
    if not hasattr(model, "code_"):
        n, labels = len(model._machines.estimators), model.classes_
        is_whole = np.array_equal(labels, np.arange(n)) if Layout.of(model).has_several else n == len(labels) == 1
        return (Claim("labels", (float(len(labels)),), None, bool(is_whole), "each has a machine"),)
    code, fault = model.code_, _fault(model)
    if fault is not None:
        return (Claim("the code", (float(code.shape[1]),), None, False, fault),)
    zeros = " (a zero counts as ½)" if (code == 0).any() else ""
    return (
        Claim("minimum distance", (minimum_distance(code),), None, True, f"between two classes' code words{zeros}"),
        Claim(
            "errors it can correct",
            (float(errors_corrected(code)),),
            words="machines that may be wrong for a row while Hamming decoding is still correct",
        ),
    )


def _fault(model: Any) -> str | None:
    """Return why the matrix is not the code of the machines, or None."""
    code, classes = model.code_, model.classes_
    try:
        check_code(code, classes)
    except ParameterError as error:
        return str(error)
    machines = model._machines
    if not machines.is_shared:
        is_whole = len(machines.estimators) == code.shape[1]
    else:
        solved = code_of(machines.estimators[0])
        is_whole = np.array_equal(-solved if machines.flips else solved, code)
        is_whole = is_whole and np.array_equal(machines.estimators[0].classes_, classes)
    if not is_whole:
        return "the machines do not match the columns of the code"
    is_same = model.min_distance_ == minimum_distance(code) and model.errors_corrected_ == errors_corrected(code)
    return None if is_same else "min_distance_ and errors_corrected_ do not match the code"


def merged(certificates: list[Certificate], names: tuple[str, ...]) -> tuple[Claim, ...]:
    """Return the lines that all machines' certificates have, with a number for each machine; before them, whether each
    machine's certificate holds as a whole."""
    failing = [
        f"{name}: {claim.words or claim.name}"
        for name, each in zip(names, certificates, strict=True)
        for claim in each.claims
        if claim.holds is False
    ]
    whole = Claim(
        _HELD,
        tuple(float(all(claim.holds is not False for claim in each.claims)) for each in certificates),
        None,
        not failing,
        failing[0] if failing else "1 for each machine whose certificate holds",
    )
    lines = [whole]
    constants = [claim for each in certificates for claim in each.claims if claim.name == _CONSTANT]
    if constants:
        counts = [claim.values[0] for claim in constants]
        words = f"{len(constants)} of {len(certificates)} machines are constant: all rows are on one side"
        lines.append(Claim(_CONSTANT, (sum(counts),), (0.0,), not any(counts), words))
    learnt = [each for each in certificates if not any(claim.name == _CONSTANT for claim in each.claims)]
    for first in learnt[0].claims if learnt else ():
        by_machine = [{claim.name: claim for claim in each.claims}.get(first.name) for each in certificates]
        found = [claim for claim in by_machine if claim is not None]
        if len(found) != len(learnt) or any(len(claim.values) != 1 for claim in found):
            continue  # such as a number for each split of a tree; the first line reports what fails in it
        verdicts = {claim.holds for claim in found}
        has_limits = all(claim.limits is not None for claim in found)
        lines.append(
            Claim(
                first.name,  # NaN and no limit for a constant
                tuple(np.nan if claim is None else claim.values[0] for claim in by_machine),
                tuple(claim.limits[0] if claim and claim.limits else np.inf for claim in by_machine)
                if has_limits
                else None,
                False if False in verdicts else True if verdicts == {True} else None,
                first.words if len({claim.words for claim in found}) == 1 else "",
            )
        )
    return tuple(lines)


def _certificate(model: Any, source: Source, n_rows: int, machines: list[Certificate]) -> Certificate:
    """Return the certificate of the code and of its machines, as far as they have any."""
    claims = code_claims(model)
    if machines:
        claims += machines[0].claims if model._machines.is_shared else merged(machines, model.machine_names_)
    return Certificate.of(model, source, n_rows, Layout.of(model).names, claims)
