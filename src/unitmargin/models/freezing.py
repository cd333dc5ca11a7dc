"""Freeze a trained classifier: a plain network with measured deviations."""

import copy
import math
from collections.abc import Sequence

import torch

from unitmargin.auditing.audit import Audit, audit
from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.full_precision import in_full_precision
from unitmargin.foundation.numbers import shown
from unitmargin.frozen import FixedNetwork, FrozenNetwork
from unitmargin.layers.contract import Layer
from unitmargin.layers.faithful import require_faithful
from unitmargin.layers.promises import GNP
from unitmargin.models.classifier import Classifier
from unitmargin.models.polishing import fixed, polished

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


@in_full_precision
def fixed_network(model: Classifier) -> FixedNetwork:
    """The network as it is evaluated, weights made once and stored in the parameters' dtype.

    Unlike in :func:`freeze` nothing is polished: deviations are those of the trained weights.

    Raises:
        TypeError: what is no classifier in training, or is not read as it is evaluated
            (:func:`unitmargin.layers.faithful.require_faithful`).
        ValueError: a weight that cannot be made, by the name of its layer.
    """
    _require_readable(model)
    layers = [fixed(name, layer) for name, layer in _all_layers(model)]
    network = FixedNetwork(layers, model.in_shape, model.head_promise)
    return copy.deepcopy(network)  # layers hand out their own parameters


@in_full_precision
def freeze(
    model: Classifier,
    dtype: torch.dtype = torch.float32,
    classes: Sequence[str] = (),
    domain: Sequence[float | int] | None = None,
    profile: str = "float64",
) -> FrozenNetwork:
    r"""Turn a trained classifier into a plain network: no parametrisation, no inner iteration.

    Every orthogonal weight is polished, or made, in float64 until :math:`W W^T = I` to 1e-13
    (:math:`W^T W` where it grows), a UPD head is projected on the UPD set, then all is rounded to
    ``dtype``; only then are the deviations measured and stored in ``facts``, beside the
    ``polishing_error``: the largest distance by which this moved a weight from where it was
    trained, bounded by each layer's ``polishing_tolerance``.

    Args:
        model: left untouched, mode and device included.
        dtype: float32 or float64.
        classes: names, one a class; default: the class numbers.
        domain: lowest and highest entry of an input, outside of which :func:`certify` refuses;
            default: that of the samples the model was trained on, any for an untrained one.
        profile: under which it is evaluated and certified; see :func:`certify`.

    Guarantee: in float32, singular values of every layer in 1 +- 3e-7 and the deviation of the head
    from its promise (pair distances, for UPD) at most 3e-7.

    Raises:
        TypeError: what is no classifier in training, or is not read as it is evaluated
            (:func:`unitmargin.layers.faithful.require_faithful`).
        ValueError: another dtype; by the name of its layer, a number that is not finite, a weight
            too far from orthogonal to polish, or one that breaks its promise.

    Cost: a few float64 products of each weight.

    Example:
        >>> from unitmargin.models import UGNN
        >>> freeze(UGNN(in_shape=(1, 8, 8), n_classes=10)).facts["upd_error"] < 3e-7
        True
    """
    _require_readable(model)
    if dtype not in DTYPES.values():
        raise ValueError(
            f"dtype must be torch.float32 or torch.float64, got {shown(dtype)}; pass one"
        )
    names, parts = zip(*_all_layers(model), strict=True)
    pairs = [
        polished(name, layer, dtype, head=layer is model.head)
        for name, layer in zip(names, parts, strict=True)
    ]
    layers, distances = zip(*pairs, strict=True)
    facts = {"head": model.head_promise.name}
    domain = _trained_domain(model) if domain is None else domain
    frozen = FrozenNetwork(layers, model.in_shape, classes, facts, domain, profile)
    figures = audit(frozen)
    _require_kept(names, figures)
    frozen.facts |= {
        "dtype": str(dtype).removeprefix("torch."),
        GNP.fact: figures.orthogonality_error,
        figures.head.fact: figures.head_error,
        "polishing_error": max(distances),
        "layers": [[row.kind, row.smallest, row.largest] for row in figures.layers],
    }
    return frozen


def _all_layers(model: Classifier) -> list[tuple[str, Layer]]:
    return [*model.named_layers(), ("head", model.head)]


def _require_readable(model: Classifier) -> None:
    """Raise unless it is a classifier in training, whose layers are all that it evaluates."""
    require_kind(
        "model", model, Classifier, "pass the model that was trained; what is frozen stays as it is"
    )
    require_faithful(model)
    if type(model).named_layers is not Classifier.named_layers:
        raise TypeError(
            f"{type(model).__name__}.named_layers must be that of Classifier, got one of its own: "
            "what is evaluated would not be what is deployed; put its layers into features"
        )


def _require_kept(names: Sequence[str], figures: Audit) -> None:
    """Raise unless every layer of a frozen network keeps its promise."""
    rows = [(_trained_name(names, row.name), row.promise, row.error) for row in figures.layers]
    for name, promise, error in [*rows, ("head", figures.head, figures.head_error)]:
        if not error <= promise.tolerance:
            raise ValueError(
                f"{name} must keep what it promises ({promise.name}) within "
                f"{promise.tolerance:.0e}, got a deviation of {error:.1e}; lower the learning "
                "rate, or go back to an earlier checkpoint"
            )


def _trained_name(names: Sequence[str], frozen: str) -> str:
    """The name in training of ``layers.INDEX``, or of a layer inside that one."""
    _, index, *inner = frozen.split(".")
    return ".".join([names[int(index)], *inner])


def _trained_domain(model: Classifier) -> tuple[float, float] | None:
    low, high = (float(end) for end in model.domain)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
