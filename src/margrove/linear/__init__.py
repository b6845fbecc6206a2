"""Linear classifiers: the basic linear classifier, least squares, the perceptron in the primal and in the dual.

Import the learners from ``margrove``. This package imports nothing by itself, so that the certificate can be used
without bringing in the solvers it judges.
"""
