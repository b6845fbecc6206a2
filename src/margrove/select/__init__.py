"""Feature selection by impurity: problem, reference, scores, selector. The names for users are in `margrove`."""
