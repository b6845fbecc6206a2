"""AdaBoost: many weak learners, each on the rows the ones before got wrong."""
