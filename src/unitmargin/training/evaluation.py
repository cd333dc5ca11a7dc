"""How a network does in training: its accuracy, and the share that it certifies."""

import math

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from unitmargin.certificates.accuracy import HEADLINE_EPSILON, certified_share
from unitmargin.certificates.certify import certificate_from_logits
from unitmargin.data import Samples
from unitmargin.frozen import FixedNetwork
from unitmargin.layers.margin import margins
from unitmargin.training.processes import Processes

ALONE = Processes()

EVALUATION_BATCH = 2048
"""Most samples of a forward pass without gradient."""

NUMBERS = EVALUATION_BATCH * 3 * 32 * 32
"""Numbers of a batch, 25 MB: larger inputs come fewer at a time, as maps grow with them."""


def evaluate(
    network: FixedNetwork,
    samples: Samples,
    processes: Processes = ALONE,
    device: torch.device | None = None,
) -> tuple[float, float]:
    """Clean accuracy, and the share of samples right with a radius above 36/255; see
    :func:`right_and_radius`."""
    right, radius = right_and_radius(network, samples, processes, device)
    return int(right.sum()) / len(samples), certified_share(right, radius, HEADLINE_EPSILON)


@torch.no_grad()
def right_and_radius(
    network: FixedNetwork,
    samples: Samples,
    processes: Processes = ALONE,
    device: torch.device | None = None,
) -> tuple[Bool[Tensor, " samples"], Float64[Tensor, " samples"]]:
    """Which samples are predicted right, and the radius of each.

    Radii here divide by the row distances of the head and the constant of the input normalisation
    and take all other layers to be 1-Lipschitz; the certificates of the frozen network use
    measured constants for every layer. Of several processes each evaluates some of the batches,
    and the samples are in the order of the processes.
    """
    rows = network.head.weight.double()
    constants = torch.cdist(rows, rows) * network.input_scale
    found = []
    size = max(1, min(EVALUATION_BATCH, NUMBERS // math.prod(samples.in_shape)))
    for start in processes.own(range(0, len(samples), size)):
        inputs, labels = samples.batch(slice(start, start + size), device=device)
        logits = network(inputs)
        radius = certificate_from_logits(logits, constants).radius
        found.append(((margins(logits, labels) > 0).cpu(), radius.cpu()))
    right, radius = map(torch.cat, zip(*processes.gather(found), strict=True))
    return right, radius
