"""The certificate of a calibrated classifier: that of its estimator, and claims that the model alone decides.

The rows held out are not kept, so nobody can recompute the calibration itself from the model and the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove.certificate import Certificate, Claim, certify, per_machine

_SLOPES, _FACTORS, _CLASSES = "slopes of the calibration", "factors of the classes", "classes"
_OWN = "the predicted class is the estimator's, and the most probable one"
_TUNED = "the predicted class has the largest product of probability and factor"


def certify_calibrated(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Certify a `CalibratedClassifier`."""
    return with_calibration(model, certify(model.estimator_, X, y, sample_weight))


def with_calibration(model: Any, inner: Certificate) -> Certificate:
    """Return the certificate of the estimator with the claims of the calibration; of a solver's own none is
    decided."""
    k = len(model.classes_)
    a, b = model.slopes_, model.intercepts_
    is_sound = a.shape == b.shape == (1 if k == 2 else k,) and bool((a >= 0).all() and np.isfinite([a, b]).all())
    words = "≥ 0: a higher score of a class never makes it less probable"
    claims = [Claim(_SLOPES, per_machine(a), None, is_sound, words)]
    if hasattr(model, "class_factors_"):
        c = model.class_factors_
        is_positive = c.shape == (k,) and bool((c > 0).all() and np.isfinite(c).all())
        words = (
            f"{model.classes_[1]} is predicted if its probability is above {model.threshold_:.4g}" if k == 2 else _TUNED
        )
        claims.append(Claim(_FACTORS, per_machine(c), None, is_positive, words))
    else:
        claims.append(Claim(_CLASSES, (float(k),), None, None, _OWN))
    if inner.source == "solver":
        claims = [replace(claim, holds=None) for claim in claims]
    learner = f"{type(model).__name__} of {inner.learner}"
    return replace(inner, learner=learner, status=str(model.status_), claims=(*inner.claims, *claims))


def without_calibration(certificate: Certificate, **own: str) -> Certificate:
    """Return the certificate of the estimator from what `with_calibration` returned."""
    kept = [claim for claim in certificate.claims if claim.name not in (_SLOPES, _FACTORS, _CLASSES)]
    return replace(certificate, claims=tuple(kept), **own)  # type: ignore[arg-type]
