"""The warning about a solve that stopped early, `margrove.errors.ConvergenceWarning`."""

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning

from margrove.errors import MargroveWarning


class ConvergenceWarning(MargroveWarning, _SklearnConvergenceWarning):
    """A solve ended before it was done; the message carries the status."""

    __module__ = "margrove.errors"
