"""The estimators of `margrove.data`, and the transformers of scikit-learn that a model file may hold, described for the
registry."""

from margrove.learner import Learner, register

register(
    Learner(
        "margrove.data.encoder:TableEncoder",
        file="margrove.data.file:ENCODER_FILE",
        predict="margrove.data.predictor:encoder",
        onnx="margrove.data.onnx:encoded",
    ),
)

_OF_SKLEARN = {
    "sklearn.preprocessing:StandardScaler": "STANDARD_SCALER",
    "sklearn.preprocessing:MinMaxScaler": "MIN_MAX_SCALER",
    "sklearn.preprocessing:MaxAbsScaler": "MAX_ABS_SCALER",
    "sklearn.preprocessing:RobustScaler": "ROBUST_SCALER",
    "sklearn.preprocessing:OneHotEncoder": "ONE_HOT_ENCODER",
    "sklearn.preprocessing:OrdinalEncoder": "ORDINAL_ENCODER",
    "sklearn.impute:SimpleImputer": "SIMPLE_IMPUTER",
    "sklearn.decomposition:PCA": "PCA",
    "sklearn.feature_selection:VarianceThreshold": "VARIANCE_THRESHOLD",
    "sklearn.compose:ColumnTransformer": "COLUMN_TRANSFORMER",
}
_PREDICT = {"STANDARD_SCALER": "margrove.data.predictor:standard_scaler"}
register(
    *(
        Learner(key, file=f"margrove.store.transformers:{name}", predict=_PREDICT.get(name))
        for key, name in _OF_SKLEARN.items()
    )
)
