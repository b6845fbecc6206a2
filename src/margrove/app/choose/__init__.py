"""Choose a learner and its settings: searches, and ``--model auto``."""
