"""Choose settings by a search, and a learner by a contest; estimate the choice on rows that took no part in it."""


def in_digits(value: float) -> str:
    """Return a number to three digits, as people write it.

    Examples
    --------
    >>> from margrove.app.choose import in_digits
    >>> [in_digits(value) for value in (0.1, 3.1623, 31623.0, 5.49e-7)]
    ['0.1', '3.16', '31600', '5.49e-07']
    """
    return f"{float(f'{value:.3g}'):.10g}"
