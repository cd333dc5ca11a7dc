"""The networks that are timed against each other: two architectures, built in several ways.

The UGNN's is built in six ways, and that of the mixing layers by its recipe and with free weights.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

import unitmargin as um
from unitmargin.layers.activations import build_activation
from unitmargin.orthogonal.manifold import ManifoldConv2d
from unitmargin.runs.opening import recipe_model
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.precision import training_precision

IN_SHAPE = (3, 32, 32)
HIDDEN = (1024, 512)
CLASSES = 10
DEPTH = 5


@dataclass(frozen=True)
class Contender:
    """A network with its optimisers, ready for training steps."""

    model: nn.Module
    optimizers: list[torch.optim.Optimizer]

    def step(self, x: torch.Tensor, labels: torch.Tensor, precision: str) -> None:
        """One whole training step: forward, backward, every optimiser."""
        with training_precision(precision, x.device):
            loss = nn.functional.cross_entropy(self.model(x).float() / 0.25, labels)
            loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def by_adam(model: nn.Module) -> Contender:
    parameters = [p for p in model.parameters() if p.requires_grad]
    return Contender(model, [torch.optim.Adam(parameters, lr=1e-3)])


def on_manifold(device: torch.device) -> Contender:
    """Our UGNN with its large weights on the manifold."""
    model = um.UGNN(IN_SHAPE, CLASSES, conv="manifold", linear="manifold").to(device)
    return Contender(model, build_optimizers(model, 1e-3, 2e-2, interval=2))


def parametrised(device: torch.device) -> Contender:
    """Our UGNN with every weight computed from a free one: Cayley and Cholesky."""
    return by_adam(um.UGNN(IN_SHAPE, CLASSES, conv="cayley", linear="cholesky").to(device))


def unconstrained(device: torch.device) -> Contender:
    """Our operators with free weights: what orthogonality costs is the ratio to this one."""
    model = um.UGNN(IN_SHAPE, CLASSES, conv="manifold", linear="manifold")
    layers = [
        ManifoldConv2d(layer.in_channels, layer.out_channels, layer.transform.map_size)
        if hasattr(layer, "transform")
        else layer
        for layer in model.features
    ]
    free = nn.Sequential(*layers, nn.Linear(HIDDEN[-1], CLASSES))
    return by_adam(free.to(device))


def mixing(device: torch.device) -> Contender:
    """The network of mixing layers, as the recipe cifar10-fast trains it."""
    recipe = read_recipe(embedded_recipe("cifar10-fast"))
    model, options = recipe_model(recipe, IN_SHAPE, CLASSES).to(device), recipe.training
    rates = options.learning_rate, options.manifold_rate
    return Contender(model, build_optimizers(model, *rates, interval=options.interval))


def mixing_free(device: torch.device) -> Contender:
    """The same network with free weights under Adam."""
    return by_adam(mixing(device).model)


def sequential(
    conv: Callable[[int], nn.Module], linear: Callable[[int, int], nn.Module]
) -> nn.Sequential:
    """The UGNN's architecture from any convolution (by channels) and dense layer."""
    layers: list[nn.Module] = []
    channels = IN_SHAPE[0]
    for _ in range(DEPTH):
        for _ in range(2):
            layers += [conv(channels), build_activation("maxmin", channels)]
        layers.append(nn.PixelUnshuffle(2))
        channels *= 4
    layers.append(nn.Flatten())
    for width in HIDDEN:
        layers += [linear(channels, width), build_activation("maxmin", width)]
        channels = width
    return nn.Sequential(*layers, linear(channels, CLASSES))


def twin(device: torch.device) -> Contender:
    """The plain twin: 3 x 3 circular convolutions and dense layers of torch."""
    return by_adam(
        sequential(lambda c: nn.Conv2d(c, c, 3, padding=1, padding_mode="circular"), nn.Linear).to(
            device
        )
    )


def orthogonium(device: torch.device) -> Contender:
    """The same architecture from orthogonium: AOC convolutions and its dense layer."""
    from orthogonium.layers.conv.AOC import AdaptiveOrthoConv2d
    from orthogonium.layers.linear import OrthoLinear

    return by_adam(
        sequential(
            lambda c: AdaptiveOrthoConv2d(c, c, 3, padding="same", padding_mode="circular"),
            OrthoLinear,
        ).to(device)
    )


def torchlip(device: torch.device) -> Contender:
    """The same architecture from deel-torchlip: spectral normalisation with Björck."""
    from deel import torchlip as layers

    return by_adam(
        sequential(
            lambda c: layers.SpectralConv2d(c, c, 3, padding=1, padding_mode="circular"),
            layers.SpectralLinear,
        ).to(device)
    )


CONTENDERS: dict[str, Callable[[torch.device], Contender]] = {
    "on_manifold": on_manifold,
    "parametrised": parametrised,
    "unconstrained": unconstrained,
    "mixing": mixing,
    "mixing_free": mixing_free,
    "twin": twin,
    "orthogonium": orthogonium,
    "torchlip": torchlip,
}
