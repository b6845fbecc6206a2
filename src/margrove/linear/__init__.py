"""Linear classifiers: the basic linear classifier, least squares, the perceptron in the primal and in the dual."""

from margrove.linear.centroid import BasicLinearClassifier
from margrove.linear.kernel_perceptron import KernelPerceptron
from margrove.linear.least_squares import LeastSquaresClassifier
from margrove.linear.margins import Margins, margins
from margrove.linear.perceptron import Perceptron

__all__ = [
    "BasicLinearClassifier",
    "KernelPerceptron",
    "LeastSquaresClassifier",
    "Margins",
    "Perceptron",
    "margins",
]
