"""Pictures of fitted classifiers and searches: matplotlib axes in, matplotlib axes out.

=================  =======================================================================================
plot_boundary      a plane, of two columns or two principal components: regions, boundary, margins, points
compare_linear     the linear classifiers side by side on the same points
plot_margins       the distribution of the margins of points, for any number of columns
plot_convergence   the course of a fit: gap, violation or loss over time
plot_search        the scores of a search over C and γ, the best cell marked
plot_path          margin, support vectors and coefficients along C
plot_tree          a tree: its tests, the rows and classes of each node
plot_regions       the rectangles into which a tree cuts the plane of two columns
plot_impurities    entropy, Gini's index and error of a node of two classes
plot_code          a code matrix: a row for each class, a column for each machine
plot_rounds        the rounds of AdaBoost: errors, loss and bound, ε and α of each round
plot_vote_margins  the margins of AdaBoost's vote, after some of its rounds
plot_feature_maps  the pictures to which the maps of a network respond most, and where
=================  =======================================================================================

Each has a display as in scikit-learn (`BoundaryDisplay.from_estimator`; see `margrove.plots.displays`). Confusion
matrices, ROC, precision-recall, calibration and learning curves are scikit-learn's own displays, which take Margrove's
estimators.

matplotlib is imported when a picture is drawn. Every function draws on given axes or makes a figure; none calls
``plt.show``. Colours are those of Okabe and Ito, which colour-blind people can tell apart; classes have different
markers too.
"""

from margrove.plots.boundary import BoundaryDisplay, plot_boundary
from margrove.plots.code import CodeDisplay, plot_code
from margrove.plots.compare import LINEAR_CLASSIFIERS, LinearComparisonDisplay, compare_linear
from margrove.plots.convergence import ConvergenceDisplay, plot_convergence
from margrove.plots.feature_maps import FeatureMapsDisplay, plot_feature_maps
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
    "plot_impurities",
    "plot_margins",
    "plot_path",
    "plot_regions",
    "plot_rounds",
    "plot_search",
    "plot_tree",
    "plot_vote_margins",
]
