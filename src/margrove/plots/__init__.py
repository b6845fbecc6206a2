"""Pictures of fitted classifiers and searches: matplotlib axes in, matplotlib axes out.

One module for each picture, with a display beside it as in scikit-learn (`BoundaryDisplay.from_estimator`; see
`margrove.plots.displays`). Confusion matrices, ROC, precision-recall, calibration and learning curves are
scikit-learn's own displays, which take Margrove's estimators.

matplotlib is imported when a picture is drawn. Every function draws on given axes or makes a figure; none calls
``plt.show``. Colours are those of Okabe and Ito, which colour-blind people can tell apart; classes have different
markers too.
"""

from margrove.plots.boundary import BoundaryDisplay, plot_boundary
from margrove.plots.code import CodeDisplay, plot_code
from margrove.plots.compare import LINEAR_CLASSIFIERS, LinearComparisonDisplay, compare_linear
from margrove.plots.convergence import ConvergenceDisplay, plot_convergence
from margrove.plots.feature_maps import FeatureMapsDisplay, plot_feature_maps
from margrove.plots.forest_error import ForestErrorDisplay, plot_forest_error
from margrove.plots.importances import ImportancesDisplay, plot_importances
from margrove.plots.impurities import ImpuritiesDisplay, plot_impurities
from margrove.plots.margins import MarginsDisplay, plot_margins
from margrove.plots.path import PathDisplay, plot_path
from margrove.plots.regions import RegionsDisplay, plot_regions
from margrove.plots.rounds import RoundsDisplay, plot_rounds
from margrove.plots.search import SearchDisplay, plot_search
from margrove.plots.tree import TreeDisplay, plot_tree
from margrove.plots.vote_margins import VoteMarginsDisplay, plot_vote_margins

__all__ = [
    "LINEAR_CLASSIFIERS",
    "BoundaryDisplay",
    "CodeDisplay",
    "ConvergenceDisplay",
    "FeatureMapsDisplay",
    "ForestErrorDisplay",
    "ImportancesDisplay",
    "ImpuritiesDisplay",
    "LinearComparisonDisplay",
    "MarginsDisplay",
    "PathDisplay",
    "RegionsDisplay",
    "RoundsDisplay",
    "SearchDisplay",
    "TreeDisplay",
    "VoteMarginsDisplay",
    "compare_linear",
    "plot_boundary",
    "plot_code",
    "plot_convergence",
    "plot_feature_maps",
    "plot_forest_error",
    "plot_importances",
    "plot_impurities",
    "plot_margins",
    "plot_path",
    "plot_regions",
    "plot_rounds",
    "plot_search",
    "plot_tree",
    "plot_vote_margins",
]
