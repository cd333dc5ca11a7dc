"""Freeze a trained classifier: a plain network with measured deviations."""

import copy
import math
from collections.abc import Sequence

import torch

from unitmargin.auditing.audit import audit
from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.numbers import shown
from unitmargin.frozen import FixedNetwork, FrozenNetwork
from unitmargin.layers.promises import GNP
from unitmargin.models.classifier import Classifier

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


def fixed_network(model: Classifier) -> FixedNetwork:
    """The network as it is evaluated, weights made once and stored in the parameters' dtype.

    Unlike in :func:`freeze` nothing is polished: deviations are those of the trained weights.
    """
    with torch.no_grad():
        layers = [layer.fix() for _, layer in model.named_layers()]
        network = FixedNetwork([*layers, model.head.fix()], model.in_shape, model.head_promise)
    return copy.deepcopy(network)  # layers hand out their own parameters


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
    ``dtype``; only then are the deviations measured and stored in ``facts``.

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
        TypeError: what is no classifier in training.
        ValueError: another dtype, or a weight too far from orthogonal to polish.

    Cost: a few float64 products of each weight.

    Example:
        >>> from unitmargin.models import UGNN
        >>> freeze(UGNN(in_shape=(1, 8, 8), n_classes=10)).facts["upd_error"] < 3e-7
        True
    """
    require_kind(
        "model", model, Classifier, "pass the model that was trained; what is frozen stays as it is"
    )
    if dtype not in DTYPES.values():
        raise ValueError(
            f"dtype must be torch.float32 or torch.float64, got {shown(dtype)}; pass one"
        )
    layers = [layer.freeze() for _, layer in model.named_layers()]
    facts = {"head": model.head_promise.name}
    domain = _trained_domain(model) if domain is None else domain
    network = [*layers, model.head.freeze()]
    frozen = FrozenNetwork(network, model.in_shape, classes, facts, domain, profile)
    frozen = copy.deepcopy(frozen).to(dtype)  # layers hand out their own parameters
    figures = audit(frozen)
    frozen.facts |= {
        "dtype": str(dtype).removeprefix("torch."),
        GNP.fact: figures.orthogonality_error,
        figures.head.fact: figures.head_error,
        "layers": [[row.kind, row.smallest, row.largest] for row in figures.layers],
    }
    return frozen


def _trained_domain(model: Classifier) -> tuple[float, float] | None:
    low, high = (float(end) for end in model.domain)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
