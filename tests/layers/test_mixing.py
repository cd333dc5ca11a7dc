"""The evaluation of mixing layers against one dense matrix built from the definition."""

import pytest
import torch
from slicing import ARRANGED, matrix_of, orthogonal
from torch import Tensor

from unitmargin.layers.mixing import mix, require_absolute
from unitmargin.layers.slices import Arrangement, Positions, Windows

ROUNDING = 1e-14
"""Sums of up to twenty float64 products of numbers of size 1."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def parts(arrangement: Arrangement, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, an orthogonal weight and a bias in float64."""
    count, side = arrangement.stack(channels)
    x = torch.randn(3, channels, *arrangement.map_size, dtype=torch.float64)
    return x, orthogonal(count, side), torch.randn(count, side, dtype=torch.float64)


def absolutes(arrangement: Arrangement, channels: int) -> set[int]:
    """None, some and all outputs of a slice."""
    side = arrangement.stack(channels)[1]
    return {0, side // 2, side}


@every
def test_a_layer_is_one_orthogonal_matrix_with_partial_absolute_values(
    arrangement: Arrangement, channels: int
) -> None:
    x, weight, bias = parts(arrangement, channels)
    dense, shift, places = matrix_of(arrangement, channels, weight, bias)
    assert (dense @ dense.mT - torch.eye(len(dense))).abs().max() <= ROUNDING
    plain = x.flatten(1) @ dense.mT + shift
    for absolute in absolutes(arrangement, channels):
        folded = torch.tensor([places[output] < absolute for output in range(len(dense))])
        expected = torch.where(folded, plain.abs(), plain)
        found = mix(x, weight, bias, arrangement, absolute)
        assert (found.flatten(1) - expected).abs().max() <= ROUNDING
        assert bool((found.flatten(1)[:, folded] >= 0).all())


@every
def test_the_jacobian_is_orthogonal(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)
    dense = matrix_of(arrangement, channels, weight, bias)[0]
    for absolute in absolutes(arrangement, channels):
        jacobian = torch.func.jacrev(
            lambda one, a=absolute: mix(one[None], weight, bias, arrangement, a).flatten()
        )(x[0]).flatten(1)
        assert (jacobian @ jacobian.mT - torch.eye(len(jacobian))).abs().max() <= ROUNDING
        signs = torch.where((jacobian * dense).sum(1) < 0, -1.0, 1.0)
        assert (jacobian - signs[:, None] * dense).abs().max() <= ROUNDING
        if absolute == 0:
            assert bool((signs > 0).all())


def test_slopes_at_zeros_are_signs_too() -> None:
    """Both zeros, where the derivative of an absolute value as torch has it is zero."""
    arrangement = Positions((1, 1))
    x = torch.tensor([0.0, -0.0, 0.0, -0.0]).view(1, 4, 1, 1).requires_grad_(True)
    bias = torch.tensor([[0.0, -0.0, 0.0, -0.0]])
    output = mix(x, torch.eye(4)[None], bias, arrangement, 2)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient.flatten().abs().tolist() == [1.0] * 4
    assert gradient.flatten()[2:].tolist() == [1.0, 1.0]


@every
def test_gradients_and_their_gradients_are_right(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = (one.requires_grad_(True) for one in parts(arrangement, channels))
    absolute = max(1, weight.shape[1] // 2)

    def evaluate(*inputs: Tensor) -> Tensor:
        return mix(*inputs, arrangement, absolute)

    assert torch.autograd.gradcheck(evaluate, (x, weight, bias), fast_mode=True)
    assert torch.autograd.gradgradcheck(evaluate, (x, weight, bias), fast_mode=True)


def layouts(x: Tensor) -> list[Tensor]:
    """The same maps, otherwise in memory."""
    apart = x.new_empty(*x.shape[:3], 2 * x.shape[3])[..., ::2]
    return [
        x.contiguous(memory_format=torch.channels_last),
        x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        x.permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3),
        apart.copy_(x),
        torch.cat((x, x))[len(x) :],
    ]


@pytest.mark.parametrize(
    ("arrangement", "channels"), [*ARRANGED.values(), (Positions((1, 1)), 300)]
)
@pytest.mark.parametrize("batch", [1, 2])
def test_the_layout_of_memory_changes_no_bit(
    arrangement: Arrangement, channels: int, batch: int
) -> None:
    """Products of 300 terms are summed in another order where their factors are turned."""
    x, weight, bias = (one.float() for one in parts(arrangement, channels))
    expected = mix(x[:batch], weight, bias, arrangement, 1)
    for other in layouts(x[:batch]):
        assert torch.equal(other, x[:batch])
        assert torch.equal(mix(other, weight, bias, arrangement, 1), expected)
        with torch.no_grad():
            assert torch.equal(mix(other, weight, bias, arrangement, 1), expected)


@every
def test_a_batch_of_nothing_stays_one(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)
    expected = mix(x, weight, bias, arrangement, 0).shape[1:]
    weight.requires_grad_(True)
    output = mix(x[:0], weight, bias, arrangement, 0)
    assert output.shape == (0, *expected)
    output.sum().backward()
    assert weight.grad is not None
    assert not weight.grad.any()


@every
def test_vmap_over_samples_is_a_batch(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)

    def single(one: Tensor) -> Tensor:
        return mix(one[None], weight, bias, arrangement, 1)[0]

    expected = mix(x, weight, bias, arrangement, 1)
    assert (torch.vmap(single)(x) - expected).abs().max() <= ROUNDING
    gradients = torch.vmap(torch.func.grad(lambda one: single(one).sin().sum()))(x)
    probe = x.clone().requires_grad_(True)
    (once,) = torch.autograd.grad(mix(probe, weight, bias, arrangement, 1).sin().sum(), probe)
    assert (gradients - once).abs().max() <= ROUNDING
    sums = torch.vmap(torch.func.grad(lambda one: single(one).sum()))(x)
    (once,) = torch.autograd.grad(mix(probe, weight, bias, arrangement, 1).sum(), probe)
    assert (sums - once).abs().max() <= ROUNDING


def test_the_input_is_left_alone() -> None:
    """A group of one pixel or one slice could be a view of it."""
    for arrangement in (Windows((1, 1), 1), Positions((1, 1))):
        x = -torch.ones(1, 2, 1, 1)
        mix(x, torch.eye(2)[None], torch.zeros(1, 2), arrangement, 2)
        assert torch.equal(x, -torch.ones(1, 2, 1, 1))


@pytest.mark.parametrize("shape", [(1, 2, 4, 2), (1, 3, 2, 4), (1, 2, 2, 2)])
def test_other_maps_are_refused(shape: tuple[int, ...]) -> None:
    message = r"x must be maps \(batch, 2, 2, 4\), got shape .*; build the layer for its maps"
    with pytest.raises(ValueError, match=message):
        mix(torch.zeros(shape), torch.eye(8)[None], torch.zeros(1, 8), Windows((2, 4), 2), 0)


def test_types_do_not_mix() -> None:
    x = torch.zeros(1, 2, 2, 4, dtype=torch.float64)
    for gradients in (torch.enable_grad(), torch.no_grad()):
        with gradients, pytest.raises(RuntimeError):
            mix(x, torch.eye(8)[None], torch.zeros(1, 8), Windows((2, 4), 2), 0)


def test_absolute_values_are_a_count_of_outputs() -> None:
    assert [require_absolute(count, 4) for count in (0, 4)] == [0, 4]
    with pytest.raises(ValueError, match="absolute must be at most the 4 entries"):
        require_absolute(5, 4)
    with pytest.raises(ValueError, match="absolute must be >= 0, got -1"):
        require_absolute(-1, 4)
