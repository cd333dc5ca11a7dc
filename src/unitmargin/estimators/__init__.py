"""Estimators: the library behind the interface of scikit-learn."""

try:
    from unitmargin.estimators.ugnn_classifier import UGNNClassifier
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError(
        "scikit-learn must be installed to use the estimator, got none; run "
        "`pip install unitmargin[estimator]`"
    ) from None

__all__ = ["UGNNClassifier"]
