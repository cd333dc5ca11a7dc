"""Estimators: the library behind the interface of scikit-learn."""

from unitmargin.estimators.ugnn_classifier import UGNNClassifier

__all__ = ["UGNNClassifier"]
