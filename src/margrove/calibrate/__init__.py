"""Calibrated probabilities and tuned thresholds for any classifier, from rows held out."""
