"""Linear support vector machines for many rows or many columns: w is held itself, not its kernel expansion.

Import the learners from ``margrove``. This package imports nothing by itself, so that the certificate can be used
without bringing in the solvers it judges.
"""
