"""Margrove: support vector machines and decision trees with certificates.

Every public name is listed here and loaded when it is first used, so that ``import margrove`` and the command line
start fast.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers treat this as True; importing typing would slow the start
if TYPE_CHECKING:
    from typing import Any

    from margrove import data, errors, plots
    from margrove.app.functions import auto, report
    from margrove.boost.classifier import AdaBoostClassifier
    from margrove.boost.regressor import AdaBoostRegressor
    from margrove.calibrate.classifier import CalibratedClassifier
    from margrove.certificate import Certificate, Claim, certify
    from margrove.data import Column, Table, TableEncoder, as_table, load_penguins, read_table
    from margrove.forest.classifier import ExtraTreesClassifier, RandomForestClassifier
    from margrove.forest.regressor import ExtraTreesRegressor, RandomForestRegressor
    from margrove.linear.centroid import BasicLinearClassifier
    from margrove.linear.kernel_perceptron import KernelPerceptron
    from margrove.linear.least_squares import LeastSquaresClassifier
    from margrove.linear.perceptron import Perceptron
    from margrove.linear_svm.search import LinearSVCCV, LinearSVRCV
    from margrove.linear_svm.svc import LinearSVC
    from margrove.linear_svm.svr import LinearSVR
    from margrove.multiclass.classifiers import BitStringClassifier, OneVsOneClassifier, OneVsRestClassifier
    from margrove.onnx.file import write_onnx
    from margrove.predictor import Predictor, load_predictor
    from margrove.run.checkpoint import Checkpoint
    from margrove.select.scores import error_gain, gain_ratio, gini_gain, information_gain, skew_adjusted_gain
    from margrove.select.selector import ImpuritySelector
    from margrove.status import Status
    from margrove.store import from_sklearn, load, save, to_sklearn
    from margrove.svm.margins import Margins, margins
    from margrove.svm.one_class import OneClassSVM
    from margrove.svm.svc import SVC, NuSVC
    from margrove.svm.svr import SVR, NuSVR
    from margrove.transfer.features import ConvFeatures
    from margrove.transfer.fine_tuned import FineTuned
    from margrove.transfer.pictures import read_picture_folder
    from margrove.transfer.softmax import SoftmaxClassifier
    from margrove.tree.classifier import DecisionTreeClassifier
    from margrove.tree.regressor import DecisionTreeRegressor
    from margrove.tree.stump import DecisionStump

_PUBLIC = {
    "auto": "margrove.app.functions",
    "report": "margrove.app.functions",
    "BasicLinearClassifier": "margrove.linear.centroid",
    "LeastSquaresClassifier": "margrove.linear.least_squares",
    "Perceptron": "margrove.linear.perceptron",
    "KernelPerceptron": "margrove.linear.kernel_perceptron",
    "SVC": "margrove.svm.svc",
    "NuSVC": "margrove.svm.svc",
    "SVCCV": "margrove.svm.search",
    "LinearSVC": "margrove.linear_svm.svc",
    "LinearSVCCV": "margrove.linear_svm.search",
    "LinearSVR": "margrove.linear_svm.svr",
    "LinearSVRCV": "margrove.linear_svm.search",
    "SVR": "margrove.svm.svr",
    "SVRCV": "margrove.svm.search",
    "NuSVR": "margrove.svm.svr",
    "OneClassSVM": "margrove.svm.one_class",
    "DecisionTreeClassifier": "margrove.tree.classifier",
    "DecisionTreeRegressor": "margrove.tree.regressor",
    "DecisionStump": "margrove.tree.stump",
    "AdaBoostClassifier": "margrove.boost.classifier",
    "AdaBoostRegressor": "margrove.boost.regressor",
    "RandomForestClassifier": "margrove.forest.classifier",
    "RandomForestRegressor": "margrove.forest.regressor",
    "ExtraTreesClassifier": "margrove.forest.classifier",
    "ExtraTreesRegressor": "margrove.forest.regressor",
    "OneVsRestClassifier": "margrove.multiclass.classifiers",
    "OneVsOneClassifier": "margrove.multiclass.classifiers",
    "BitStringClassifier": "margrove.multiclass.classifiers",
    "CalibratedClassifier": "margrove.calibrate.classifier",
    "ConvFeatures": "margrove.transfer.features",
    "FineTuned": "margrove.transfer.fine_tuned",
    "SoftmaxClassifier": "margrove.transfer.softmax",
    "read_picture_folder": "margrove.transfer.pictures",
    "ImpuritySelector": "margrove.select.selector",
    "information_gain": "margrove.select.scores",
    "gini_gain": "margrove.select.scores",
    "error_gain": "margrove.select.scores",
    "gain_ratio": "margrove.select.scores",
    "skew_adjusted_gain": "margrove.select.scores",
    "Margins": "margrove.svm.margins",
    "margins": "margrove.svm.margins",
    "Certificate": "margrove.certificate",
    "Claim": "margrove.certificate",
    "certify": "margrove.certificate",
    "Checkpoint": "margrove.run.checkpoint",
    "Status": "margrove.status",
    "Column": "margrove.data",
    "Table": "margrove.data",
    "TableEncoder": "margrove.data",
    "as_table": "margrove.data",
    "load_penguins": "margrove.data",
    "read_chunks": "margrove.data",
    "read_table": "margrove.data",
    "from_sklearn": "margrove.store",
    "to_sklearn": "margrove.store",
    "load": "margrove.store",
    "Predictor": "margrove.predictor",
    "load_predictor": "margrove.predictor",
    "save": "margrove.store",
    "write_onnx": "margrove.onnx.file",
}
_MODULES = ("data", "errors", "plots")

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BasicLinearClassifier",
    "BitStringClassifier",
    "CalibratedClassifier",
    "Certificate",
    "Checkpoint",
    "Claim",
    "Column",
    "ConvFeatures",
    "DecisionStump",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "FineTuned",
    "ImpuritySelector",
    "KernelPerceptron",
    "LeastSquaresClassifier",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "Margins",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "Perceptron",
    "Predictor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SoftmaxClassifier",
    "Status",
    "Table",
    "TableEncoder",
    "as_table",
    "auto",
    "certify",
    "data",
    "error_gain",
    "errors",
    "from_sklearn",
    "gain_ratio",
    "gini_gain",
    "information_gain",
    "load",
    "load_penguins",
    "load_predictor",
    "margins",
    "plots",
    "read_chunks",
    "read_picture_folder",
    "read_table",
    "report",
    "save",
    "skew_adjusted_gain",
    "to_sklearn",
    "write_onnx",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("margrove")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return import_module(f"margrove.{name}")
    raise AttributeError(f"module 'margrove' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
