"""The estimators of `margrove.tree`, described for the registry."""

from margrove.learner import Learner, Offer, register

register(
    Learner(
        "margrove.tree.classifier:DecisionTreeClassifier",
        called="a decision tree",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeExplanation",
        file="margrove.tree.file:CLASSIFIER_FILE",
        predict="margrove.tree.predictor:tree",
        onnx="margrove.tree.onnx:tree_classifier",
        peers=("sklearn.tree:DecisionTreeClassifier",),
        adopt="margrove.tree.adopted:adopt_sklearn",
        to_peer="margrove.tree.adopted:to_sklearn",
        # Of the complexities 0, 0.2, 0.5, 0.7, 1 and six pruning rules this has the best mean, 10-fold cross-validated
        # on 22 real tables (docs/guide/trees.md): 90.9 % with 22 leaves; with complexity 0, 90.8 % with 38. And a
        # column of very many levels, such as titanic's tickets, cannot win by chance: its tests take many bits to name.
        offer=Offer(
            "tree",
            "a sequence of tests",
            place=6,
            defaults={"criterion": "entropy", "complexity": 0.7, "prune": "pessimistic"},
            takes_tables=True,
            remark="Defaults: criterion=entropy, complexity=0.7, prune=pessimistic, the most accurate settings on 22 "
            "benchmark tables.",
        ),
    ),
    Learner(
        "margrove.tree.regressor:DecisionTreeRegressor",
        called="a regression tree",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeExplanation",
        file="margrove.tree.file:REGRESSOR_FILE",
        predict="margrove.tree.predictor:tree",
        onnx="margrove.tree.onnx:tree_regression",
        peers=("sklearn.tree:DecisionTreeRegressor",),
        adopt="margrove.tree.adopted:adopt_sklearn",
        to_peer="margrove.tree.adopted:to_sklearn",
        # 5-fold on eight real tables the mean R² is 0.32, as good as by cost complexity at a thirtieth of its time;
        # unpruned it is below 0, by description length 0.28.
        offer=Offer(
            "tree",
            "a sequence of tests that ends at a mean",
            task="regress",
            defaults={"significance": 0.05},
            takes_tables=True,
            remark="Default: significance=0.05, so a split must be unlikely to arise by chance.",
        ),
    ),
    Learner(
        "margrove.tree.stump:DecisionStump",
        called="a tree with a single test",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeExplanation",
        file="margrove.tree.file:CLASSIFIER_FILE",
        predict="margrove.tree.predictor:tree",
        onnx="margrove.tree.onnx:tree_classifier",
        to_peer="margrove.tree.adopted:to_sklearn",
    ),
)
