"""Skew orthogonal convolutions: the exponential, its truncation, and the scale of the filter."""

import math

import pytest
import torch
from jacobians import jacobian

from unitmargin.orthogonal.skew import (
    CORRECTION,
    SkewConv2d,
    SkewLinear,
    exponential,
    scaled_skew_filter,
    skew_filter,
    start_vectors,
    unrolled_norm,
)

EXACTNESS = 1e-12
"""Float64 products of a few matrices of size 1."""

FLOAT32 = 1e-5
"""The promise of the class on singular values in evaluation."""

CONVERGED = 2000
"""Power steps after which the singular vectors of a small random filter no longer move."""

TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]

MAPS = [(1, 1), (2, 2), (1, 4), (3, 5)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("norm", [0.0, 1e-3, 0.3, 0.57, 1.5, 2.1, 10.0])
def test_the_exponential_of_a_skew_matrix_is_unitary(dtype: torch.dtype, norm: float) -> None:
    raw = torch.randn(4, 6, 6, dtype=dtype)
    skew = raw - raw.mH
    skew = skew * (norm / torch.linalg.matrix_norm(skew, 2).max())
    result = exponential(skew)
    wide = torch.linalg.matrix_exp(skew.to(torch.complex128))
    tolerance = 5e-6 if dtype in (torch.float32, torch.complex64) else 1e-13
    assert (result @ result.mH - torch.eye(6)).abs().max() <= tolerance
    assert (result - wide).abs().max() <= tolerance
    assert result.dtype == dtype


def test_the_exponential_of_a_rotation_is_known() -> None:
    for angle in (0.1, 0.555, 2.0, 7.0):  # 0.555: where a short series would be 3e-5 off
        generator = torch.tensor([[0.0, -angle], [angle, 0.0]])
        c, s = math.cos(angle), math.sin(angle)
        assert (exponential(generator) - torch.tensor([[c, -s], [s, c]])).abs().max() <= 1e-6


def test_skew_filters_make_skew_operators() -> None:
    layer = SkewConv2d(3, 3, 3, (3, 4), bias=False).double()
    blocks = layer.skew_spectrum()
    assert (blocks.real + blocks.real.mT).abs().max() <= EXACTNESS
    pairs = blocks.complex_pairs()
    assert (pairs + pairs.mH).abs().max() <= EXACTNESS


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_the_four_unrollings_have_two_norms(kernel_size: int) -> None:
    skew = skew_filter(torch.randn(4, 4, kernel_size, kernel_size, dtype=torch.float64))
    wide = skew.permute(0, 2, 1, 3)
    norms = [
        float(torch.linalg.matrix_norm(matrix, 2))
        for matrix in (
            skew.flatten(1),
            skew.permute(0, 2, 3, 1).flatten(0, 2),
            wide.flatten(2).flatten(0, 1),
            skew.permute(0, 3, 1, 2).flatten(2).flatten(0, 1),
        )
    ]
    assert norms[0] == pytest.approx(norms[1], abs=EXACTNESS)
    assert norms[2] == pytest.approx(norms[3], abs=EXACTNESS)
    assert float(unrolled_norm(skew, CONVERGED)) == pytest.approx(min(norms), rel=1e-6)


@pytest.mark.parametrize("map_size", MAPS)
def test_the_operator_norm_obeys_its_bound(map_size: tuple[int, int]) -> None:
    layer = SkewConv2d(4, 4, 3, map_size).double()
    layer.power_steps = CONVERGED
    blocks = layer.skew_spectrum()
    norms = [torch.linalg.matrix_norm(m, 2) for m in (*blocks.real, *blocks.complex_pairs())]
    assert 0.0 < max(norms) <= 3 * CORRECTION * (1 + 1e-6)


def test_a_filter_of_zeros_is_the_identity() -> None:
    layer = SkewConv2d(2, 2, 3, (3, 3), bias=False)
    with torch.no_grad():
        layer.raw.zero_()
    x = torch.randn(1, 2, 3, 3)
    for mode in (layer.train(), layer.eval()):
        assert (mode(x) - x).abs().max() <= FLOAT32
    layer.train()(x).sum().backward()
    assert bool(torch.isfinite(layer.raw.grad).all())


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 5), (5, 2), (3, 3)])
@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("map_size", MAPS)
def test_the_explicit_jacobian_is_semi_orthogonal_in_evaluation(
    map_size: tuple[int, int], kernel_size: int, inputs: int, outputs: int
) -> None:
    layer = SkewConv2d(inputs, outputs, kernel_size, map_size).eval()
    matrix = jacobian(layer, torch.zeros(inputs, *map_size)).double()
    assert (torch.linalg.svdvals(matrix) - 1.0).abs().max() <= FLOAT32
    exact = jacobian(layer.freeze(), torch.zeros(inputs, *map_size, dtype=torch.float64))
    assert (torch.linalg.svdvals(exact) - 1.0).abs().max() <= EXACTNESS
    assert (exact - matrix).abs().max() <= FLOAT32


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_evaluation_is_orthogonal_after_weights_were_loaded_or_edited(scale: float) -> None:
    layer = SkewConv2d(3, 4, 3, (4, 4)).eval()
    state = {name: scale * value for name, value in layer.state_dict().items()}
    layer.load_state_dict(state)
    values = torch.linalg.svdvals(jacobian(layer, torch.zeros(3, 4, 4)).double())
    assert (values - 1.0).abs().max() <= FLOAT32


def test_training_applies_the_series_of_degree_five() -> None:
    layer = SkewConv2d(3, 3, 3, (3, 4), bias=False).double()
    x = torch.zeros(3, 3, 4, dtype=torch.float64)
    blocks = layer.skew_spectrum()
    operator = jacobian(layer, x)
    angles = torch.cat(
        [torch.linalg.eigvalsh(1j * m.to(torch.complex128)) for m in blocks.real]
        + [torch.linalg.eigvalsh(1j * m).repeat(2) for m in blocks.complex_pairs()]
    ).detach()
    series = sum((1j * angles) ** i / math.factorial(i) for i in range(6))
    gains = torch.as_tensor(series).abs().sort().values
    assert (torch.linalg.svdvals(operator).sort().values - gains).abs().max() <= 1e-10


def test_the_gradient_through_the_scale_is_right_where_it_has_converged() -> None:
    raw = torch.randn(3, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda r: scaled_skew_filter(r, CONVERGED), raw, fast_mode=True)


def test_dense_weights_are_rows_of_an_exponential() -> None:
    layer = SkewLinear(6, 4).double().eval()
    whole = torch.linalg.matrix_exp(layer.skew())
    assert (whole @ whole.mT - torch.eye(6)).abs().max() <= EXACTNESS
    assert (layer.weight() - whole[:4]).abs().max() <= EXACTNESS


def test_even_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="kernel_size of a skew convolution must be odd, got 2"):
        SkewConv2d(2, 2, 2, (4, 4))


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 3e-7, 1e-6, 1e9, 1e15, 1e20])
def test_a_weight_is_that_of_every_multiple(scale: float) -> None:
    """Squares of its entries would over- or underflow."""
    dense, conv = SkewLinear(6, 4), SkewConv2d(3, 3, 3, (4, 4))
    x, maps = torch.rand(5, 6), torch.rand(5, 3, 4, 4)
    truth = dense.weight(), conv.eval()(maps), dense.train()(x), conv.train()(maps)
    with torch.no_grad():
        dense.raw *= scale
        conv.raw *= scale
    found = dense.weight(), conv.eval()(maps), dense.train()(x), conv.train()(maps)
    for mine, other in zip(found, truth, strict=True):
        torch.testing.assert_close(mine, other, atol=2e-6, rtol=0)
    assert float((dense.singular_values() - 1).abs().max()) < 1e-6


def test_starts_do_not_follow_the_default_type() -> None:
    shape = (3, 3, 3, 3)
    torch.set_default_dtype(torch.float64)
    try:
        wide = start_vectors(shape)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(map(torch.equal, wide, start_vectors(shape)))
