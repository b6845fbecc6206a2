"""Forests: trees grown from rows and columns drawn at random, whose predictions are averaged."""
