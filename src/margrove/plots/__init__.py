"""Pictures of fitted classifiers: matplotlib axes in, matplotlib axes out.

=================  =======================================================================
plot_boundary      the plane of two columns: regions, boundary, margin lines, points
compare_linear     the linear classifiers side by side on the same points (THEORY L5)
plot_margins       how far on the right side the points lie, for any number of columns
=================  =======================================================================

matplotlib is imported when a picture is drawn, not before. Every function draws on the axes it is given, or
makes a figure of its own; none calls ``plt.show``. Colours are those of Okabe and Ito, which colour-blind
people can tell apart; classes have different markers too.
"""

from margrove.plots.boundary import plot_boundary
from margrove.plots.compare import LINEAR_CLASSIFIERS, compare_linear
from margrove.plots.margins import plot_margins

__all__ = ["LINEAR_CLASSIFIERS", "compare_linear", "plot_boundary", "plot_margins"]
