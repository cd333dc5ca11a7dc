"""Weighted layers of the deployed network: exact norms, autocast, configuration."""

from collections.abc import Callable

import pytest
import torch
from jacobians import jacobian
from reflecting import reflection
from slicing import mixing

from unitmargin.frozen import FROZEN_LAYERS, CircularConvolution, ConvexCombination, Dense
from unitmargin.frozen.mixing import MIXINGS
from unitmargin.frozen.reflection import REFLECTIONS
from unitmargin.layers.activations import Abs
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import MaxPool, PixelUnshuffle, Widen
from unitmargin.layers.singular_values import singular_values

EXACTNESS = 1e-12
"""Eigenvalues of small float64 matrices of size 1."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_singular_values_of_a_stack(dtype: torch.dtype) -> None:
    stack = torch.randn(4, 2, 5, dtype=dtype)
    wide = stack.to(torch.complex128)
    expected = torch.linalg.svdvals(wide).flatten().sort().values
    values = singular_values(stack)
    assert values.dtype == torch.float64
    assert (values - expected).abs().max() <= EXACTNESS


def test_singular_values_of_a_tall_matrix_are_those_of_its_transpose() -> None:
    matrix = torch.randn(5, 2, dtype=torch.complex128)
    assert (singular_values(matrix) - singular_values(matrix.mH)).abs().max() <= EXACTNESS


@pytest.mark.parametrize("size", [3e-8, 3e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_singular_values_near_one(dtype: torch.dtype, size: float) -> None:
    """Known deviations from 1, on both sides of where single precision serves."""
    left, right = (torch.linalg.qr(torch.randn(3, 9, 9, dtype=dtype)).Q for _ in range(2))
    deviations = size * (2.0 * torch.rand(3, 9, dtype=torch.float64) - 1.0)
    values = singular_values((left * (1.0 + deviations)[:, None]) @ right)
    error = (values - (1.0 + deviations).flatten().sort().values).abs().max()
    assert error <= 1e-6 * size + EXACTNESS


def test_singular_values_of_nothing() -> None:
    assert singular_values(torch.empty(0, 2, 3)).shape == (0,)


def test_the_norm_of_a_dense_layer() -> None:
    weight = torch.tensor([[3.0, 0.0], [0.0, -4.0]])
    layer = Dense(weight, torch.zeros(2))
    assert layer.norm() == 4.0
    assert layer.singular_values().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 4)])
def test_the_norm_of_a_convolution_is_that_of_its_jacobian(size: tuple[int, int]) -> None:
    layer = random_convolution(size)
    matrix = jacobian(layer, torch.zeros(3, *size, dtype=torch.float64))
    assert abs(layer.norm() - float(torch.linalg.matrix_norm(matrix, 2))) <= EXACTNESS


def random_convolution(size: tuple[int, int]) -> CircularConvolution:
    height, width = size
    self_conjugate = (2 - height % 2) * (2 - width % 2)
    pairs = (height * width - self_conjugate) // 2
    return CircularConvolution(
        torch.randn(self_conjugate, 2, 3, dtype=torch.float64),
        torch.randn(pairs, 2, 2, 3, dtype=torch.float64),
        torch.randn(2, dtype=torch.float64),
        map_size=size,
    )


def test_a_spectrum_of_another_map_is_refused() -> None:
    with pytest.raises(ValueError, match="3 x 5 map has 1 real and 7 paired.*got 4 and 0 blocks"):
        CircularConvolution(
            torch.zeros(4, 2, 2), torch.zeros(0, 2, 2, 2), torch.zeros(2), map_size=(3, 5)
        )


def test_autocast_does_not_round_a_certified_layer() -> None:
    layer, x = Dense(torch.randn(3, 4), torch.randn(3)), torch.randn(2, 4)
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), expected)


EXAMPLES: dict[str, Callable[[], FixedLayer]] = {
    "pixel_unshuffle": lambda: PixelUnshuffle(3),
    "widen": lambda: Widen(3),
    "max_pool": lambda: MaxPool(3),
    "normalize": lambda: Normalize(torch.rand(2), torch.rand(2) + 0.5),
    "dense": lambda: Dense(torch.randn(2, 3), torch.randn(2)),
    "circular_convolution": lambda: random_convolution((3, 4)),
    "convex_combination": lambda: ConvexCombination(
        torch.tensor(0.7), [Dense(torch.randn(3, 3), torch.randn(3)), Abs()]
    ),
} | {
    kind.kind: lambda m=make, a=arrangement: m(a((2, 4)), 16)  # type: ignore[misc]
    for make, kinds in ((mixing, MIXINGS), (reflection, REFLECTIONS))
    for arrangement, kind in kinds.items()
}


@pytest.mark.parametrize("kind", FROZEN_LAYERS)
def test_every_layer_is_rebuilt_from_its_configuration_and_tensors(kind: str) -> None:
    layer = EXAMPLES.get(kind, FROZEN_LAYERS[kind])()
    again = FROZEN_LAYERS[kind].rebuild(layer.configuration(), dict(layer.state_dict()))
    assert layer.kind == kind
    assert type(again) is type(layer)
    assert again.configuration() == layer.configuration()
    assert again.norm() == layer.norm()
    for name, tensor in layer.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)
