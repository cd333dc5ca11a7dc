"""The evaluation of reflections against dense matrices built from the definition."""

import pytest
import torch
from reflecting import parts, reflected
from slicing import ARRANGED
from torch import Tensor

from unitmargin.layers.mixing import mix
from unitmargin.layers.reflection import reflect
from unitmargin.layers.slices import Arrangement, Positions, Windows

ROUNDING = 2e-14
"""Two sums of up to twenty float64 products of numbers of size 1."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


@every
def test_every_slice_is_reflected_from_its_definition(
    arrangement: Arrangement, channels: int
) -> None:
    x, weight, bias = parts(arrangement, channels)
    found = reflect(x, weight, bias, arrangement)
    for one, image in zip(x, found, strict=True):
        expected, _ = reflected(one.flatten(), weight, bias, arrangement, channels)
        assert (image.flatten() - expected).abs().max() <= ROUNDING


@every
def test_the_jacobian_is_the_reflection_of_its_piece(
    arrangement: Arrangement, channels: int
) -> None:
    """Block by block I - 2 W^T D W, whose square is I; orthogonal as a whole."""
    x, weight, bias = parts(arrangement, channels)
    for one in (x[0], torch.zeros_like(x[0])):
        jacobian = torch.func.jacrev(
            lambda one: reflect(one[None], weight, bias, arrangement).flatten()
        )(one).flatten(1)
        _, expected = reflected(one.flatten(), weight, bias, arrangement, channels)
        assert (jacobian - expected).abs().max() <= ROUNDING
        assert (jacobian @ jacobian.mT - torch.eye(len(jacobian))).abs().max() <= ROUNDING


def test_it_is_a_partial_absolute_value_in_a_rotated_basis() -> None:
    """With all of the rows, x - 2 W^T relu(W x + b) = -W^T (|W x + b| + b)."""
    arrangement = Windows((4, 6), 2, 1)
    x = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    weight = torch.linalg.qr(torch.randn(1, 12, 12, dtype=torch.float64)).Q
    bias = torch.randn(1, 12, dtype=torch.float64)
    folded = mix(x, weight, bias, arrangement, 12)
    windows = arrangement.unplace(folded) + bias[:, None, :]
    expected = arrangement.place(-windows @ weight, 3)
    assert (reflect(x, weight, bias, arrangement) - expected).abs().max() <= ROUNDING


def test_a_kink_belongs_to_one_of_its_sides() -> None:
    """At exact zeros of a coordinate nothing is reflected: J = I, and so J J^T = I."""
    x = torch.zeros(1, 4, 1, 1, requires_grad=True)
    output = reflect(x, torch.eye(4)[None, :3], torch.zeros(1, 3), Positions((1, 1)))
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient.flatten().tolist() == [1.0] * 4


@every
def test_gradients_and_their_gradients_are_right(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = (one.requires_grad_(True) for one in parts(arrangement, channels))

    def evaluate(*inputs: Tensor) -> Tensor:
        return reflect(*inputs, arrangement)

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
    ]


@every
def test_the_layout_of_memory_changes_no_bit(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = (one.float() for one in parts(arrangement, channels))
    expected = reflect(x, weight, bias, arrangement)
    for other in layouts(x):
        assert torch.equal(other, x)
        assert torch.equal(reflect(other, weight, bias, arrangement), expected)
        with torch.no_grad():
            assert torch.equal(reflect(other, weight, bias, arrangement), expected)


@every
def test_a_batch_of_nothing_stays_one(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)
    expected = reflect(x, weight, bias, arrangement).shape[1:]
    weight.requires_grad_(True)
    output = reflect(x[:0], weight, bias, arrangement)
    assert output.shape == (0, *expected)
    output.sum().backward()
    assert weight.grad is not None
    assert not weight.grad.any()


@every
def test_vmap_over_samples_is_a_batch(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)

    def single(one: Tensor) -> Tensor:
        return reflect(one[None], weight, bias, arrangement)[0]

    assert (torch.vmap(single)(x) - reflect(x, weight, bias, arrangement)).abs().max() <= ROUNDING
    gradients = torch.vmap(torch.func.grad(lambda one: single(one).sin().sum()))(x)
    probe = x.clone().requires_grad_(True)
    total = reflect(probe, weight, bias, arrangement).sin().sum()
    (once,) = torch.autograd.grad(total, probe)
    assert (gradients - once).abs().max() <= ROUNDING


def test_the_input_is_left_alone() -> None:
    """A group of one pixel or one slice could be a view of it."""
    for arrangement in (Windows((1, 1), 1), Positions((1, 1))):
        x = torch.ones(1, 2, 1, 1)
        assert reflect(x, torch.eye(2)[None], torch.zeros(1, 2), arrangement).sum() == -2.0
        assert torch.equal(x, torch.ones(1, 2, 1, 1))


@pytest.mark.parametrize("shape", [(1, 2, 4, 2), (1, 3, 2, 4), (1, 2, 2, 2)])
def test_other_maps_are_refused(shape: tuple[int, ...]) -> None:
    message = r"x must be maps \(batch, 2, 2, 4\), got shape .*; build the layer for its maps"
    with pytest.raises(ValueError, match=message):
        reflect(torch.zeros(shape), torch.eye(8)[None], torch.zeros(1, 8), Windows((2, 4), 2))
