"""Small frozen networks of the 1-Lipschitz models, with biases that rounding has to be paid for."""

import torch

from unitmargin import build_model, freeze
from unitmargin.frozen import ConvexCombination, FrozenNetwork
from unitmargin.frozen.weighted import WeightedLayer
from unitmargin.layers.normalize import Normalize

SHAPES = {
    "large_convnet": (2, 8, 8),
    "kw_large": (2, 8, 8),
    "resnet9": (2, 16, 16),
    "lip_convnet5": (2, 8, 8),
}

POISON = 2.0**16
"""Biases of this size in a branch cost float32 all but eight bits of a logit."""


def peer(name: str, head: str | None = None, poisoned: bool = False) -> FrozenNetwork:
    """A network of random weights and biases behind unequal deviations; ``poisoned``: with huge
    biases in its branches, of both signs."""
    torch.manual_seed(7)
    normalize = Normalize(torch.tensor([0.4, 0.6]), torch.tensor([0.3, 0.5]))
    options = {"head": head} if head else {}
    model = build_model(name, SHAPES[name], 4, width=4, normalize=normalize, **options)
    network = freeze(model)
    for layer in network.modules():
        if isinstance(layer, WeightedLayer):
            layer.bias.normal_(std=0.3)
    for layer in network.modules():
        if poisoned and isinstance(layer, ConvexCombination):
            first = layer.branch[0].bias
            first.copy_(POISON * torch.where(first < 0, -1.0, 1.0))
    return network


def inputs(network: FrozenNetwork, count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, *network.in_shape, generator=generator)
