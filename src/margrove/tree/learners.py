"""The estimators of `margrove.tree`, described for the registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.tree.classifier:DecisionTreeClassifier",
        called="a decision tree",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeQuestions",
        file="margrove.tree.file:CLASSIFIER_FILE",
        onnx="margrove.tree.onnx:tree_classifier",
        peers=("sklearn.tree:DecisionTreeClassifier",),
        adopt="margrove.tree.adopted:adopt_classifier",
    ),
    Learner(
        "margrove.tree.regressor:DecisionTreeRegressor",
        called="a regression tree",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeQuestions",
        file="margrove.tree.file:REGRESSOR_FILE",
        onnx="margrove.tree.onnx:tree_regression",
        peers=("sklearn.tree:DecisionTreeRegressor",),
        adopt="margrove.tree.adopted:adopt_regressor",
    ),
    Learner(
        "margrove.tree.stump:DecisionStump",
        called="a tree of one question",
        certify="margrove.tree.certificate:certify_tree",
        explain="margrove.tree.explain:TreeQuestions",
        file="margrove.tree.file:CLASSIFIER_FILE",
        onnx="margrove.tree.onnx:tree_classifier",
    ),
)
