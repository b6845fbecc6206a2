"""The estimators of `margrove.linear_svm`, described for the registry."""

from margrove.learner import Learner, Offer, register

register(
    Learner(
        "margrove.linear_svm.svc:LinearSVC",
        called="a linear support vector machine",
        certify="margrove.linear_svm.certificate:certify_linear_svc",
        explain="margrove.linear_svm.explain:LinearSVMWeights",
        has_unit_margin=True,
        certify_chunks="margrove.linear_svm.certificate:certify_linear_stream",
        file="margrove.linear_svm.file:LINEAR_SVC_FILE",
        predict="margrove.linear.predictor:linear_classifier",
        onnx="margrove.onnx.prediction:linear_classifier",
        peers=("sklearn.svm:LinearSVC",),
        adopt="margrove.linear_svm.adopted:adopt_sklearn",
        to_peer="margrove.store.adoption:with_parameters_of",
        search="margrove.linear_svm.search:LinearSVCCV",
        # Sparse numbers as they are: on reuters (tf-idf) 97.4 % of the test rows at the best C, 97.0 with each column
        # divided by its root mean square, which blows up rare words; on a9a and w8a (zeros and ones) the same.
        offer=Offer("linear", "the widest margin, with a flat boundary", place=4, is_searched=True, keeps_sparse=True),
    ),
    Learner(
        "margrove.linear_svm.svr:LinearSVR",
        called="a linear support vector regression",
        certify="margrove.linear_svm.certificate:certify_linear_svr",
        explain="margrove.linear_svm.explain:LinearSVMWeights",
        certify_chunks="margrove.linear_svm.certificate:certify_linear_stream",
        file="margrove.linear_svm.file:LINEAR_SVR_FILE",
        predict="margrove.linear.predictor:linear_regression",
        onnx="margrove.onnx.prediction:linear_regression",
        peers=("sklearn.svm:LinearSVR",),
        adopt="margrove.linear_svm.adopted:adopt_sklearn",
        to_peer="margrove.store.adoption:with_parameters_of",
        search="margrove.linear_svm.search:LinearSVRCV",
        # A squared loss and a free intercept: the unit and the zero of the target do not matter.
        offer=Offer(
            "linear",
            "a weight for each column",
            task="regress",
            defaults={"loss": "squared_epsilon_insensitive", "regularize_intercept": False},
            is_searched=True,
            keeps_sparse=True,
            remark="Defaults: loss=squared_epsilon_insensitive, regularize_intercept=false. So the predictions do not "
            "depend on the unit of the target.",
        ),
    ),
)
