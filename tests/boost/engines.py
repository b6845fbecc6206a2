"""The engines that boost trees: every test of boosting that takes `engine` runs on each."""

ENGINES = ("reference", "native")
