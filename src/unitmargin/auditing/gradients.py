"""Distances of the rows of a head and gradients between logits, measured."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.network import Network

UNIT_GRADIENT_TOLERANCE = 1e-5
"""On pairwise gradient norms in float64 evaluation of float32 weights."""

GRADIENT_NUMBERS = 2**25
"""Entries of the gradients that are held at once: a quarter of a gigabyte."""

MOST_CLASSES = 100
"""Classes whose pairs are measured; of more so many are drawn, the same ones at every call."""


def pair_distances(weight: Float[Tensor, "classes features"]) -> Float[Tensor, " pairs"]:
    """Distances of all row pairs h < k, in float64: the paper's figure on UPD matrices."""
    return nn.functional.pdist(weight.detach().double())


def pair_gradient_norms(
    network: Network, x: Float[Tensor, "batch *shape"]
) -> Float[Tensor, "batch pairs"]:
    r"""Norms :math:`\|\nabla(f_h - f_k)\|` for all pairs h < k at each input.

    Of more than ``MOST_CLASSES`` classes for all pairs of so many.

    Taken with respect to the normalised input, in which a UGNN promises 1 (the normalisation's
    own constant is accounted for in the certificate). Of the network as it is evaluated, whatever
    its mode, which stays; in the model's dtype.
    Cost: one forward pass, and one backward pass for each of these classes.
    Source: the paper's appendix, section "The Unitary Gradient Property".
    """
    held = max(1, GRADIENT_NUMBERS // (MOST_CLASSES * math.prod(network.in_shape)))
    with _evaluation(network):
        return torch.cat([_pair_gradient_norms(network, chunk) for chunk in x.split(held)])


@contextmanager
def _evaluation(network: nn.Module) -> Iterator[None]:
    """Within it, the network is in the mode of evaluation."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def measured_classes(count: int) -> list[int]:
    """The classes whose pairs are measured."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randperm(count, generator=generator, device="cpu")[:MOST_CLASSES]
    return sorted(drawn.tolist())


def _pair_gradient_norms(network: Network, x: Tensor) -> Tensor:
    with torch.no_grad():
        normalised = network.normalised(x)
    with torch.inference_mode(False), torch.enable_grad():
        probe = normalised.detach().clone().requires_grad_(True)
        output = network.logits(probe)
        classes = measured_classes(output.shape[1])
        rows = [
            torch.autograd.grad(output[:, index].sum(), probe, retain_graph=True)[0].flatten(1)
            for index in classes
        ]
    gradients = torch.stack(rows, dim=1).double()
    centred = gradients - gradients.mean(1, keepdim=True)
    gram = centred @ centred.mT
    squares = gram.diagonal(dim1=1, dim2=2)
    squared = squares[:, :, None] + squares[:, None, :] - 2.0 * gram
    count = len(classes)
    first, second = torch.triu_indices(count, count, offset=1, device=squared.device)
    return squared[:, first, second].clamp_min(0.0).sqrt()


def unit_gradient_error(network: Network, x: Float[Tensor, "batch *shape"]) -> float:
    """Largest deviation from 1 of a pairwise gradient norm at the given inputs.

    Source: the paper, section 3 (characterisation of signed distance classifiers).
    """
    return float((pair_gradient_norms(network, x) - 1.0).abs().max())
