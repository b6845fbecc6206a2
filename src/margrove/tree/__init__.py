"""Decision trees: problem, model, reference, certificate, estimators. The names for users are in `margrove`."""
