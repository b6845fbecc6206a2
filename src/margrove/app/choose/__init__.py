"""Choose settings by a search, and a learner by a contest; estimate the choice on rows that took no part in it."""


def in_digits(value: float) -> str:
    """Return a number to three digits, as people write it."""
    return f"{float(f'{value:.3g}'):.10g}"
