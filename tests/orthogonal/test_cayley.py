"""The Cayley transform, and convolutions made of it."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from jacobians import gnp_error, jacobian

from unitmargin.layers.contract import TrainableLayer
from unitmargin.models.polishing import polished
from unitmargin.orthogonal.cayley import (
    THREADED_ROWS,
    CayleyConv2d,
    CayleyLinear,
    ScaledCayleyConv2d,
    cayley,
)

EXACTNESS = 1e-13
"""The promise of the docstring in float64."""

FLOAT32_PROMISE = 5e-6
"""The promise of the docstring in float32."""

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]

MAPS = [(1, 1), (2, 2), (1, 7), (3, 5), (4, 6), (3, 3)]


def residual(q: torch.Tensor) -> float:
    return float((q @ q.mH - torch.eye(q.shape[-2], dtype=q.dtype)).abs().max())


@given(st.integers(1, 8), st.integers(0, 6), st.floats(1e-3, 3.0), st.integers(0, 99))
@example(1, 0, 1.0, 0)
@example(8, 1, 3.0, 1)
def test_rows_are_orthonormal(rows: int, extra: int, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for dtype in DTYPES:
        raw = scale * torch.randn(3, rows, rows + extra, generator=generator, dtype=dtype)
        q = cayley(raw)
        narrow = dtype in (torch.float32, torch.complex64)
        assert (q.shape, q.dtype) == (raw.shape, dtype)
        assert residual(q) <= (FLOAT32_PROMISE if narrow else EXACTNESS)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_square_matrices_follow_the_formula(dtype: torch.dtype) -> None:
    raw = torch.randn(4, 4, dtype=dtype)
    skew = raw.mH - raw
    eye = torch.eye(4, dtype=dtype)
    expected = (torch.linalg.inv(eye + skew) @ (eye - skew)).mH
    assert (cayley(raw[None])[0] - expected).abs().max() <= EXACTNESS


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("rows", [THREADED_ROWS - 1, THREADED_ROWS, 150, 192])
def test_stacks_of_large_blocks_are_orthogonal_in_several_threads(
    rows: int, dtype: torch.dtype
) -> None:
    """Where torch factors several matrices at once, from 150 rows on it is wrong or never ends."""
    raw = 0.1 * torch.randn(3, rows, rows, dtype=dtype, requires_grad=True)
    alone = cayley(raw)
    (expected,) = torch.autograd.grad(alone.abs().sum(), raw)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        q = cayley(raw)
        (gradient,) = torch.autograd.grad(q.abs().sum(), raw)
    finally:
        torch.set_num_threads(before)
    assert residual(q.detach()) <= FLOAT32_PROMISE
    assert torch.allclose(q, alone, atol=1e-5)
    assert torch.allclose(gradient, expected, rtol=1e-3, atol=1e-3)


def test_an_empty_stack_of_large_blocks_is_empty() -> None:
    assert cayley(torch.zeros(0, 200, 200)).shape == (0, 200, 200)


def test_zero_gives_the_identity() -> None:
    assert torch.equal(cayley(torch.zeros(1, 2, 3))[0], torch.eye(2, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", [(2, 3, 3), (1, 2, 4)])
def test_gradients(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    raw = torch.randn(shape, dtype=dtype, requires_grad=True)
    assert torch.autograd.gradcheck(cayley, raw)


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 5])
@pytest.mark.parametrize("map_size", MAPS)
def test_the_explicit_jacobian_is_orthogonal(map_size: tuple[int, int], kernel_size: int) -> None:
    layer = CayleyConv2d(3, 2, kernel_size, map_size).double()
    assert gnp_error(layer, torch.randn(3, *map_size, dtype=torch.float64)) <= EXACTNESS


@pytest.mark.parametrize("map_size", [*MAPS, (9, 8)])
def test_the_jacobian_is_orthogonal_in_float32(map_size: tuple[int, int]) -> None:
    layer = CayleyConv2d(2, 2, 3, map_size)
    assert gnp_error(layer, torch.randn(2, *map_size)) <= FLOAT32_PROMISE


@pytest.mark.parametrize("map_size", [(2, 2), (3, 5), (9, 8)])
def test_it_is_a_convolution(map_size: tuple[int, int]) -> None:
    """Shifting the input on the torus shifts the output."""
    layer = CayleyConv2d(3, 3, 3, map_size).double()
    x = torch.randn(2, 3, *map_size, dtype=torch.float64)
    moved = layer(x.roll((1, 2), (2, 3)))
    assert (moved - layer(x).roll((1, 2), (2, 3))).abs().max() <= EXACTNESS * 10


@pytest.mark.parametrize("map_size", MAPS)
def test_singular_values_by_frequency_are_those_of_the_jacobian(map_size: tuple[int, int]) -> None:
    layer = CayleyConv2d(3, 2, 3, map_size).double()
    frozen = layer.freeze()
    frozen.real.mul_(0.9)
    frozen.pairs.mul_(1.2)
    matrix = jacobian(frozen, torch.zeros(3, *map_size, dtype=torch.float64))
    expected = torch.linalg.svdvals(matrix).sort().values
    values = frozen.singular_values()
    assert values is not None
    assert values.shape == expected.shape
    assert (values - expected).abs().max() <= 1e-12


def test_the_map_is_fixed_at_construction() -> None:
    with pytest.raises(ValueError, match="map size 4 x 6 .* got 6 x 4"):
        CayleyConv2d(2, 2, 3, (4, 6))(torch.zeros(1, 2, 6, 4))


@pytest.mark.parametrize(
    "make", [lambda: CayleyLinear(4, 3), lambda: ScaledCayleyConv2d(3, 3, 3, (4, 4))]
)
def test_the_transform_of_zeros_is_the_identity(make: Callable[[], TrainableLayer]) -> None:
    layer = make()
    with torch.no_grad():
        layer.raw.zero_()  # type: ignore[union-attr, operator]
    assert float((layer.singular_values() - 1).abs().max()) < 1e-6
    x = torch.rand(2, 4) if isinstance(layer, CayleyLinear) else torch.rand(2, 3, 4, 4)
    layer(x).sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in layer.parameters() if p.grad is not None)


def test_layers_are_made_by_vmap_over_their_weights() -> None:
    layer, x = CayleyConv2d(3, 2, 3, (4, 4)), torch.rand(2, 3, 4, 4)
    stacked = {
        name: torch.stack([p.detach(), 0.5 * p.detach()]) for name, p in layer.named_parameters()
    }
    found = torch.func.vmap(lambda own: torch.func.functional_call(layer, own, (x,)))(stacked)
    torch.testing.assert_close(found[0], layer(x), atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e3, 1e4])
def test_a_convolution_is_frozen_as_it_was_evaluated(scale: float) -> None:
    """A solve of a large free spectrum is far from that in float64, and as orthogonal: the blocks
    that were trained are polished, not made anew."""
    layer = ScaledCayleyConv2d(16, 16, 3, (4, 4))
    with torch.no_grad():
        layer.raw.mul_(0.01).add_(1.0)
        layer.scale.fill_(scale)
    assert polished("it", layer, torch.float32)[1] <= FLOAT32_PROMISE
