"""How a network does in training: its accuracy, and the share that it certifies."""

import torch

from unitmargin.certificates.accuracy import HEADLINE_EPSILON, certified_share
from unitmargin.certificates.certify import certificate_from_logits
from unitmargin.data import Samples
from unitmargin.frozen import FixedNetwork
from unitmargin.layers.margin import margins
from unitmargin.training.processes import Processes

ALONE = Processes()

EVALUATION_BATCH = 2048
"""Samples a forward pass without gradient: maps of 3 x 32 x 32 numbers take 25 MB."""


@torch.no_grad()
def evaluate(
    network: FixedNetwork,
    samples: Samples,
    processes: Processes = ALONE,
    device: torch.device | None = None,
) -> tuple[float, float]:
    """Clean accuracy, and the share of samples right with a radius above 36/255.

    Radii here divide by the row distances of the head and the constant of the input normalisation
    and take all other layers to be 1-Lipschitz; the certificates of the frozen network use
    measured constants for every layer. Of several processes each evaluates some of the batches.
    """
    rows = network.head.weight.double()
    constants = torch.cdist(rows, rows) * network.input_scale
    found = []
    for start in processes.own(range(0, len(samples), EVALUATION_BATCH)):
        inputs, labels = samples.batch(slice(start, start + EVALUATION_BATCH), device=device)
        logits = network(inputs)
        radius = certificate_from_logits(logits, constants).radius
        found.append(((margins(logits, labels) > 0).cpu(), radius.cpu()))
    right, radius = map(torch.cat, zip(*processes.gather(found), strict=True))
    return int(right.sum()) / len(samples), certified_share(right, radius, HEADLINE_EPSILON)
