"""The 1-Lipschitz peers: their published sizes, their shapes, and that certificates hold."""

import math

import pytest
import torch

from unitmargin import audit, build_model, certify, freeze, minimal_perturbation, train
from unitmargin.data import load_dataset
from unitmargin.layers.activations import Abs, MaxMin
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.rearrangement import PixelUnshuffle
from unitmargin.models import ConvexResidual
from unitmargin.orthogonal.cholesky import CholeskyLinear
from unitmargin.orthogonal.skew import SkewConv2d

PARAMETERS = {
    "large_convnet": 2.64e6,
    "kw_large": 2.41e6,
    "resnet9": 7.62e6,
    "lip_convnet5": 17.7e6,
}
"""Published to three digits."""

SMALL = {
    "large_convnet": (1, 8, 8),
    "kw_large": (1, 8, 8),
    "resnet9": (1, 16, 16),
    "lip_convnet5": (1, 8, 8),
    "lip_convnet10": (1, 8, 8),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_number_of_parameters_is_the_published_one(name: str) -> None:
    model = build_model(name, (3, 32, 32), 10)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"{count:.2e}" == f"{PARAMETERS[name]:.2e}"


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("activation", "kind"), [("maxmin", MaxMin), ("abs", Abs)])
def test_the_activation_follows_every_weighted_layer(
    name: str, activation: str, kind: type
) -> None:
    model = build_model(name, SMALL[name], 4, activation=activation, width=4)
    layers = [layer for layer in model.features.modules() if not list(layer.children())]
    assert any(type(layer) is kind for layer in layers)
    assert not any(type(layer) is {Abs: MaxMin, MaxMin: Abs}[kind] for layer in layers)


def test_resnet9_follows_its_table() -> None:
    model = build_model("resnet9", (3, 32, 32), 10, width=4)
    x, shapes = torch.zeros(1, 3, 32, 32), []
    for layer in model.features:
        x = layer(x)
        if isinstance(layer, ScaledAveragePool | ConvexResidual):
            shapes.append((type(layer).__name__[0], *x.shape[1:]))
    assert shapes == [
        ("S", 8, 16, 16),
        ("C", 8, 16, 16),
        ("S", 16, 8, 8),
        ("S", 32, 4, 4),
        ("C", 32, 4, 4),
        ("S", 32, 2, 2),
    ]
    residual = next(layer for layer in model.features if isinstance(layer, ConvexResidual))
    assert float(residual.share.detach()) == pytest.approx(1 / (1 + math.exp(-0.5)))


@pytest.mark.parametrize(("name", "each"), [("lip_convnet5", 1), ("lip_convnet15", 3)])
def test_lip_convnets_have_their_number_of_convolutions(name: str, each: int) -> None:
    model = build_model(name, (3, 32, 32), 10, width=2)
    kinds = [type(layer).__name__ for layer in model.features]
    assert kinds.count("SkewConv2d") == 5 * each
    sides = [layer.kernel_size for layer in model.features if isinstance(layer, SkewConv2d)]
    assert sides == [3] * (5 * each - 1) + [1]
    assert sum(isinstance(layer, PixelUnshuffle) for layer in model.features) == 5
    assert model(torch.rand(1, 3, 32, 32)).shape == (1, 10)


@pytest.mark.parametrize(
    ("name", "factor"), [("large_convnet", 4), ("resnet9", 16), ("kw_large", 4)]
)
def test_sides_that_do_not_divide_are_refused(name: str, factor: int) -> None:
    with pytest.raises(ValueError, match=f"must be divisible by {factor}, got 6 x 16"):
        build_model(name, (3, 6, 16), 10)
    with pytest.raises(ValueError, match="in_shape must be .channels, height, width."):
        build_model(name, (12,), 10)


def test_an_odd_side_is_refused() -> None:
    with pytest.raises(ValueError, match="height and width must be even, got 8 x 7"):
        build_model("lip_convnet5", (3, 8, 7), 10)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("large_convnet", "width"),
        ("large_convnet", "strided_kernel"),
        ("resnet9", "width"),
        ("lip_convnet5", "width"),
        ("lip_convnet5", "convolutions"),
    ],
)
def test_sizes_count_from_one(name: str, option: str) -> None:
    for size in (0, -3):
        with pytest.raises(ValueError, match=f"{option} must be >= 1, got {size}; use "):
            build_model(name, SMALL[name], 3, **{option: size})


def test_a_residual_takes_no_branch_that_changes_its_shape() -> None:
    """A sum that broadcasts has a norm above 1."""
    residual = ConvexResidual(CholeskyLinear(16, 1))
    with pytest.raises(ValueError, match=r"must keep the shape \(16,\) of its input, got \(1,\)"):
        residual(torch.rand(3, 16))
    with pytest.raises(ValueError, match="must keep the shape"):
        residual.freeze()(torch.rand(3, 16, dtype=torch.float64))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("head", ["own", "lln"])
def test_certificates_of_random_networks_are_never_broken(name: str, head: str) -> None:
    options = {} if head == "own" else {"head": head}
    model = build_model(name, SMALL[name], 3, width=4, **options)
    frozen = freeze(model)
    x = torch.rand(12, *SMALL[name])
    certificate = certify(frozen, x)
    assert bool((certificate.radius > 0).all())
    for solver in ("sphere_tracing", "fast_outer_boundary"):
        found = minimal_perturbation(frozen, x, certificate.label, solver=solver)
        assert bool((found.distance >= certificate.radius).all())


@pytest.mark.parametrize("name", [name for name in SMALL if name != "resnet9"])
def test_one_epoch_on_digits(name: str) -> None:
    data = load_dataset("digits", limit=256)
    model = build_model(name, (1, 8, 8), 10, width=4)
    result = train(model, data.train, data.test, epochs=1, quiet=True, loss="multi_margin")
    assert math.isfinite(result.history[0].loss)
    assert result.history[0].orthogonality_error <= 1e-5
    figures = audit(freeze(model))
    assert figures.orthogonality_error <= 1e-5
    assert not figures.signed_distance


def test_one_epoch_of_resnet9() -> None:
    x, labels = torch.rand(64, 1, 16, 16), torch.arange(64) % 4
    model = build_model("resnet9", (1, 16, 16), 4, width=4)
    gate = next(m for m in model.features if isinstance(m, ConvexResidual)).gate
    before = float(gate.detach())
    result = train(model, (x, labels), (x, labels), epochs=1, quiet=True)
    assert math.isfinite(result.history[0].loss)
    assert float(gate.detach()) != before
    assert audit(freeze(model)).lipschitz_error <= 1e-6
