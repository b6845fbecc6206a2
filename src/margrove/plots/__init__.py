"""Pictures of fitted classifiers and searches: matplotlib axes in, matplotlib axes out.

=================  =======================================================================
plot_boundary      the plane of two columns: regions, boundary, margin lines, points
compare_linear     the linear classifiers side by side on the same points (THEORY L5)
plot_margins       how far on the right side the points lie, for any number of columns
plot_search        the scores of a search over C and γ, the best cell marked
plot_path          margin, support vectors and coefficients along C
plot_tree          a tree: its tests in words, the rows and classes of each node
plot_regions       the rectangles into which a tree cuts the plane of two columns
plot_code          a code matrix: the word of each class, what each machine asks
plot_rounds        the course of AdaBoost: errors, loss and bound, ε and α of each round
plot_feature_maps  what maps of a network respond to: the pictures that fire them most
plot_vote_margins  how surely AdaBoost judges, after some of its rounds
=================  =======================================================================

matplotlib is imported when a picture is drawn, not before. Every function draws on the axes it is given, or
makes a figure of its own; none calls ``plt.show``. Colours are those of Okabe and Ito, which colour-blind
people can tell apart; classes have different markers too.
"""

from margrove.plots.boundary import plot_boundary
from margrove.plots.code import plot_code
from margrove.plots.compare import LINEAR_CLASSIFIERS, compare_linear
from margrove.plots.feature_maps import plot_feature_maps
from margrove.plots.margins import plot_margins
from margrove.plots.path import plot_path
from margrove.plots.regions import plot_regions
from margrove.plots.rounds import plot_rounds
from margrove.plots.search import plot_search
from margrove.plots.tree import plot_tree
from margrove.plots.vote_margins import plot_vote_margins

__all__ = [
    "LINEAR_CLASSIFIERS",
    "compare_linear",
    "plot_boundary",
    "plot_code",
    "plot_feature_maps",
    "plot_margins",
    "plot_path",
    "plot_regions",
    "plot_rounds",
    "plot_search",
    "plot_tree",
    "plot_vote_margins",
]
