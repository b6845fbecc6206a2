"""Estimate how good a model is on rows that it has not seen."""
