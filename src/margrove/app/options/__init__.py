"""Read what is typed: the table, how it is prepared, the learner and the time."""
