"""AdaBoost: a vote of weak learners, each focused on the rows that the ones before misclassified."""
