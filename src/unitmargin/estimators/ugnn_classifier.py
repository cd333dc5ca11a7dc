"""A signed distance classifier as a scikit-learn estimator."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from unitmargin.certificates.certify import Certificate, certify
from unitmargin.estimators.given import (
    plain,
    refuse,
    require_classes,
    require_switch,
    unchanged_by_failure,
    widths,
    without_graph,
)
from unitmargin.foundation.choice import choose
from unitmargin.foundation.numbers import as_tensor
from unitmargin.frozen import FrozenNetwork
from unitmargin.heads import UPD_HEADS
from unitmargin.layers.margin import margins
from unitmargin.models import DenseUGNN, describe_network, freeze
from unitmargin.models.freezing import DTYPES
from unitmargin.training.options import SEEDS, TrainingOptions
from unitmargin.training.train import EpochRecord, train

FLOATS = (np.float64, np.float32)
"""Types in which X is kept; all others become the first."""

DEPTH = 3
"""Default layers: on three small tables, two left some seeds five points below the others."""

WIDEST = 64
"""Default width of layers behind wider X: a step costs the cube of the width."""

TRAINING = (
    "epochs", "batch_size", "learning_rate", "manifold_rate", "schedule", "weight_decay", "loss",
    "margin", "offset", "temperature",
)  # fmt: skip
"""Parameters that are training options of the same name."""

DRAWING = threading.Lock()
"""Held while torch's global generator is lent for the weights of a new network."""


class UGNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A fully connected Unitary-Gradient network for scikit-learn: margins are distances.

    Fitting trains a :class:`unitmargin.DenseUGNN` and freezes it. Every radius and distance is an
    l2 distance in the units of the X of this estimator: behind a scaler in a pipeline, those of
    the scaled X (docs/estimator.md has the example that goes wrong).

    Parameters are judged in ``fit``, and are those of :class:`unitmargin.DenseUGNN` and the options
    of :func:`unitmargin.train` of the same names, except for

    Args:
        hidden: widths, never growing, the first at most the number of features; default: three
            layers as wide as X, or 64 or the number of classes where X is wider.
        head: one of ``unitmargin.heads.UPD_HEADS``, which make margins distances.
        dtype: float32 or float64, of the frozen weights.
        warm_start: whether ``fit`` goes on from the weights of the last one.
        random_state: of weights and order: a whole number, a RandomState, or None for NumPy's
            global one. torch's global generator is left as it was.
        verbose: whether to print a progress bar and a line an epoch.

    Attributes:
        frozen_: the :class:`unitmargin.FrozenNetwork`; ``unitmargin.save`` writes it.
        model_: the network in training that a warm start goes on from.
        classes_: labels in order; class k of ``frozen_`` is ``classes_[k]``.
        n_features_in_, feature_names_in_: of X, the names where X is a data frame of such.
        n_iter_: epochs, all warm starts together.
        history_: one :class:`unitmargin.training.train.EpochRecord` an epoch of the last fit.

    Shapes: ``X (n, features)``, real and finite, a dense array, list, tensor or data frame.
    Guarantee: equal data, parameters and whole ``random_state`` give equal weights to the last bit,
    on one machine with one number of threads and one default type of torch; a pickled estimator
    predicts as before to the last bit.
    Needs: at least ``n_classes - 1`` features (``n_classes`` for the head ``bounded``), since
    so many dimensions hold ``n_classes`` regions at mutual distance 1.

    Raises:
        TypeError: in ``fit``, sample weights, which the losses do not know; sparse X.
        ValueError: in ``fit``, a parameter, X or y that breaks its rule, such as y of one class.
        sklearn.exceptions.NotFittedError: an answer before ``fit``.

    There is no ``predict_proba``: a margin is a distance and no probability. Behind a
    ``CalibratedClassifierCV`` there is one, made of ``decision_function``.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = UGNNClassifier(epochs=20, random_state=0).fit(X, y)
        >>> classifier.score(X, y) > 0.9, classifier.radius(X).shape
        (True, (150,))
    """

    frozen_: FrozenNetwork
    model_: DenseUGNN
    classes_: NDArray[Any]
    history_: tuple[EpochRecord, ...]
    n_iter_: int

    def __init__(
        self,
        hidden: Sequence[int] | Any = None,
        *,
        activation: str | Any = "maxmin",
        linear: str | Any = "manifold",
        head: str | Any = "simplex",
        dtype: str | Any = "float32",
        epochs: int | Any = 100,
        batch_size: int | Any = 32,
        learning_rate: float | Any = 1e-2,
        manifold_rate: float | Any = 2e-2,
        schedule: str | Any = "linear",
        weight_decay: float | Any = 0.0,
        loss: str | Any = "offset_cross_entropy",
        margin: float | Any = 0.5,
        offset: float | Any = 0.2,
        temperature: float | Any = 0.25,
        warm_start: bool | Any = False,
        random_state: int | np.random.RandomState | Any = None,
        verbose: bool | Any = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.linear = linear
        self.head = head
        self.dtype = dtype
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.manifold_rate = manifold_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.loss = loss
        self.margin = margin
        self.offset = offset
        self.temperature = temperature
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **refused: Any) -> "UGNNClassifier":
        """Train on X and y of any labels, and freeze.

        Where anything is raised, the estimator stays as it was.
        ``refused`` takes nothing: sample weights, which no loss knows, are refused by name.
        Cost: seconds for a thousand samples of thirty features.
        """
        refuse(refused)
        require_switch("warm_start", self.warm_start)
        require_switch("verbose", self.verbose)
        with unchanged_by_failure(self):
            again = bool(self.warm_start) and hasattr(self, "model_")
            given = without_graph(X), without_graph(y)
            X, y = validate_data(self, *given, dtype=FLOATS, reset=not again)
            check_classification_targets(y)
            encoder = LabelEncoder()
            labels = encoder.fit_transform(y).astype(np.int64)
            classes = encoder.classes_
            require_classes(classes, self.classes_ if again else classes)
            done = self.n_iter_ if again else 0
            seed = int(check_random_state(self.random_state).randint(SEEDS, dtype=np.int64))
            options = self._options((seed + done) % SEEDS)
            dtype = choose("dtype", self.dtype, DTYPES)
            model = self._build(X.shape[1], len(classes), seed)
            if again:
                _take_weights(model, self.model_)
            samples = (X, labels)
            history = train(model, samples, samples, options, quiet=not self.verbose).history
            domain = _domain(X, self.frozen_.domain if again else None)
            self.frozen_ = freeze(model, dtype, [str(name) for name in classes], domain)
            self.model_, self.classes_ = model, classes
            self.history_, self.n_iter_ = history, done + len(history)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels ``(n,)``, those that :meth:`certificate` certifies, of X in any domain."""
        logits = self._logits(X)
        return self.classes_[logits.numpy().argmax(1)]  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        r"""Signed distances to the boundary in float64, of X in any domain.

        Shapes: for two classes ``(n,)``, the distance to the other class, positive where
        ``classes_[1]`` is predicted; for C classes ``(n, C)``, that to the boundary of each class's
        region, :math:`f_k - \max_{j \ne k} f_j`: positive inside of the region alone.
        Guarantee: a lower bound of that distance in absolute value, but for rounding, which
        :meth:`radius` takes into account; for two classes, and for the predicted one of several,
        the distance itself where the network is affine up to the boundary. (From outside, a region
        may be further than each of the half-spaces that it is made of.)
        """
        logits = self._logits(X)
        columns = [
            margins(logits, torch.full((len(logits),), k)) for k in range(len(self.classes_))
        ]
        both = columns[1] if len(columns) == 2 else torch.stack(columns, 1)
        return both.numpy()

    def radius(self, X: Any, domain: str = "model") -> NDArray[np.float64]:
        """Certified radii ``(n,)`` in the units of X; see :meth:`certificate`."""
        return self.certificate(X, domain).radius.numpy()

    def certificate(self, X: Any, domain: str = "model") -> Certificate:
        """The certificate of each prediction; its labels are class numbers, of ``classes_``.

        A ``ValueError`` says that entries of X lie outside of the domain of the training samples
        (their range and its width on each side), where X is likely in other units than the radius
        would be; ``domain="any"`` takes them. See :func:`unitmargin.certify`.
        """
        inputs = self._inputs(X)
        return certify(self.frozen_, inputs, domain=domain)

    def _options(self, seed: int) -> TrainingOptions:
        values = {name: plain(getattr(self, name)) for name in TRAINING}
        options = TrainingOptions(**values, seed=seed)
        return options.changed(evaluate_every=options.epochs)

    def _build(self, features: int, classes: int, seed: int) -> DenseUGNN:
        """A network with weights of that seed."""
        needed = classes - choose("head", self.head, UPD_HEADS).spare_features
        if features < needed:
            raise ValueError(
                f"X must have at least {needed} features for {classes} classes, got {features} "
                "feature(s); append columns of zeros, which change no distance"
            )
        width = min(features, max(classes, WIDEST))
        hidden = [width] * DEPTH if self.hidden is None else widths(self.hidden)
        with DRAWING, torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            named = self.activation, self.linear, self.head
            return DenseUGNN((features,), classes, *named, hidden).float()

    def _inputs(self, X: Any) -> Tensor:
        check_is_fitted(self, "frozen_")
        return as_tensor("X", validate_data(self, without_graph(X), dtype=FLOATS, reset=False))

    def _logits(self, X: Any) -> Tensor:
        """The logits that are certified, of inputs in any domain."""
        inputs = self._inputs(X)
        with torch.no_grad():
            logits: Tensor = self.frozen_(inputs)
        lost = ~logits.isfinite().all(1)
        if bool(lost.any()):
            raise ValueError(
                f"X must be small enough to be evaluated, got a logit that is not finite in sample "
                f"{int(lost.nonzero()[0])}; scale X, as by a StandardScaler"
            )
        return logits


def _domain(X: NDArray[Any], before: tuple[float, float] | None) -> tuple[float, float]:
    """The range of X and its width on each side, and the domain of before. It is wider than [0, 1]
    for X within, since a table scaled to that has new rows that leave it."""
    low, high = float(X.min()), float(X.max())
    room = (high - low) or abs(high) or 1.0
    known = before or (high, low)
    return min(low - room, known[0]), max(high + room, known[1])


def _take_weights(model: DenseUGNN, trained: DenseUGNN) -> None:
    if describe_network(model) != describe_network(trained):
        raise ValueError(
            "hidden, activation, linear and head must be those of the fit before for a warm start, "
            "got others; set warm_start=False, or clone the estimator"
        )
    model.load_state_dict(trained.state_dict())
