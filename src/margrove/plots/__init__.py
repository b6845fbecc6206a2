"""Pictures of fitted classifiers and searches: matplotlib axes in, matplotlib axes out.

=================  =======================================================================================
plot_boundary      a plane, of two columns or two principal components: regions, boundary, margins, points
compare_linear     the linear classifiers side by side on the same points (THEORY L5)
plot_margins       how far on the right side the points lie, for any number of columns
plot_convergence   the course of a fit: its gap, violation or loss over time
plot_search        the scores of a search over C and γ, the best cell marked
plot_path          margin, support vectors and coefficients along C
plot_tree          a tree: its tests in words, the rows and classes of each node
plot_regions       the rectangles into which a tree cuts the plane of two columns
plot_impurities    entropy, Gini's index and error of a node of two classes
plot_code          a code matrix: the word of each class, what each machine asks
plot_rounds        the course of AdaBoost: errors, loss and bound, ε and α of each round
plot_vote_margins  how surely AdaBoost judges, after some of its rounds
plot_feature_maps  what the maps of a network respond to: the pictures that fire each most, and where
=================  =======================================================================================

Each has its display beside it, in scikit-learn's way (`BoundaryDisplay.from_estimator` and its sisters: see
`margrove.plots.displays`). Confusion matrices, ROC and precision-recall curves, calibration curves and learning curves
are scikit-learn's own displays, which take Margrove's estimators as they are.

matplotlib is imported when a picture is drawn, not before. Every function draws on the axes it is given, or
makes a figure of its own; none calls ``plt.show``. Colours are those of Okabe and Ito, which colour-blind
people can tell apart; classes have different markers too.
"""

from margrove.plots.boundary import plot_boundary
from margrove.plots.code import plot_code
from margrove.plots.compare import LINEAR_CLASSIFIERS, compare_linear
from margrove.plots.convergence import plot_convergence
from margrove.plots.displays import (
    BoundaryDisplay,
    CodeDisplay,
    ConvergenceDisplay,
    FeatureMapsDisplay,
    ImpuritiesDisplay,
    LinearComparisonDisplay,
    MarginsDisplay,
    PathDisplay,
    RegionsDisplay,
    RoundsDisplay,
    SearchDisplay,
    TreeDisplay,
    VoteMarginsDisplay,
)
from margrove.plots.feature_maps import plot_feature_maps
from margrove.plots.impurities import plot_impurities
from margrove.plots.margins import plot_margins
from margrove.plots.path import plot_path
from margrove.plots.regions import plot_regions
from margrove.plots.rounds import plot_rounds
from margrove.plots.search import plot_search
from margrove.plots.tree import plot_tree
from margrove.plots.vote_margins import plot_vote_margins

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
