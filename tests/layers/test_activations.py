"""Activations: which channels meet, and that nothing else changes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jacobians import gnp_error, jacobian

from unitmargin.layers.activations import (
    ACTIVATIONS,
    OPLU,
    Abs,
    GroupSort,
    MaxMin,
    PartialAbs,
    build_activation,
)


def test_maxmin_pairs_the_halves() -> None:
    x = torch.randn(3, 6, 2, 2)
    y = MaxMin()(x)
    for i in range(3):
        assert torch.equal(y[:, i], torch.maximum(x[:, i], x[:, i + 3]))
        assert torch.equal(y[:, i + 3], torch.minimum(x[:, i], x[:, i + 3]))


def test_oplu_pairs_neighbours() -> None:
    x = torch.randn(3, 6, 2, 2)
    y = OPLU()(x)
    for i in (0, 2, 4):
        assert torch.equal(y[:, i], torch.maximum(x[:, i], x[:, i + 1]))
        assert torch.equal(y[:, i + 1], torch.minimum(x[:, i], x[:, i + 1]))


@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 99))
def test_groupsort_sorts_neighbouring_groups_downwards(size: int, groups: int, seed: int) -> None:
    x = torch.randn(2, size * groups, generator=torch.Generator().manual_seed(seed))
    y = GroupSort(size)(x)
    for start in range(0, size * groups, size):
        for row in range(2):
            expected = sorted(x[row, start : start + size].tolist(), reverse=True)
            assert y[row, start : start + size].tolist() == expected


def test_groupsort_of_two_is_oplu() -> None:
    x = torch.randn(4, 8, 3, 3)
    assert torch.equal(GroupSort(2)(x), OPLU()(x))


@pytest.mark.parametrize("layer", [MaxMin(), OPLU(), GroupSort(2), GroupSort(4)], ids=str)
def test_sorting_keeps_the_multiset(layer: torch.nn.Module) -> None:
    x = torch.randn(5, 8, 2, 3)
    assert torch.equal(layer(x).sort(1).values, x.sort(1).values)


@pytest.mark.parametrize("layer", [MaxMin(), OPLU(), GroupSort(2), GroupSort(4)], ids=str)
def test_sorting_is_gnp_at_ties_too(layer: torch.nn.Module) -> None:
    assert gnp_error(layer, torch.zeros(8)) == 0.0


def test_abs_has_no_unit_slope_at_its_kink() -> None:
    assert gnp_error(Abs(), torch.tensor([0.0])) == 1.0


@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 99))
def test_partial_abs_folds_the_first_channels_alone(parts: int, folded: int, seed: int) -> None:
    x = torch.randn(2, parts * folded, 3, 2, generator=torch.Generator().manual_seed(seed))
    y = PartialAbs(parts)(x)
    assert torch.equal(y[:, :folded], x[:, :folded].abs())
    assert torch.equal(y[:, folded:], x[:, folded:])


def test_partial_abs_has_unit_slopes_at_zeros_of_both_signs() -> None:
    """Slopes follow the sign bit, and so does the value: of -0 it is 0."""
    x = torch.tensor([0.0, -0.0, 2.0, -3.0, 0.0, -0.0, 1.0, -1.0])
    assert gnp_error(PartialAbs(2), x) == 0.0
    slopes = jacobian(PartialAbs(2), x).diagonal()
    assert slopes.tolist() == [1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    assert not bool(PartialAbs(2)(x[None])[0, :4].signbit().any())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_partial_abs_keeps_short_types(dtype: torch.dtype) -> None:
    x = torch.randn(3, 8, dtype=dtype, requires_grad=True)
    y = PartialAbs()(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype
    assert bool((x.grad.abs() == 1).all())


@pytest.mark.parametrize("shape", [(0, 8), (0, 4, 3, 5), (2, 4, 0, 3)])
def test_partial_abs_takes_batches_and_maps_of_nothing(shape: tuple[int, ...]) -> None:
    assert PartialAbs()(torch.zeros(shape)).shape == shape


def test_partial_abs_is_exported_with_a_dynamic_batch() -> None:
    x = torch.randn(2, 8, 3, 5)
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(PartialAbs(), (x,), dynamic_shapes={"x": {0: batch}})
    other = torch.randn(7, 8, 3, 5)
    assert torch.equal(exported.module()(other), PartialAbs()(other))


def test_parts_of_less_than_two_are_refused() -> None:
    with pytest.raises(ValueError, match="parts must be >= 2, got 1; use Abs for all channels"):
        PartialAbs(1)


@pytest.mark.parametrize("kind", ["maxmin", "oplu", "groupsort"])
def test_odd_channels_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} needs a channel count that 2 divides, got 3"):
        ACTIVATIONS[kind]()(torch.zeros(1, 3))


def test_groups_of_less_than_two_are_refused() -> None:
    with pytest.raises(ValueError, match="size must be >= 2, got 1; use Abs"):
        GroupSort(1)


@pytest.mark.parametrize(
    ("name", "channels", "kind", "group"),
    [
        ("abs", 3, "abs", 1),
        ("maxmin", 4, "maxmin", 2),
        ("maxmin", 3, "abs", 1),
        ("oplu", 5, "abs", 1),
        ("groupsort", 6, "groupsort", 2),
        ("groupsort4", 8, "groupsort", 4),
        ("groupsort4", 6, "abs", 1),
        ("partial_abs", 8, "partial_abs", 4),
        ("partial_abs2", 6, "partial_abs", 2),
        ("partial_abs16", 32, "partial_abs", 16),
        ("partial_abs4", 6, "abs", 1),
    ],
)
def test_build_falls_back_to_abs(name: str, channels: int, kind: str, group: int) -> None:
    layer = build_activation(name, channels)
    assert (layer.kind, layer.group) == (kind, group)


@pytest.mark.parametrize("name", [
    "relu", "maxmin2", "", "4", "group sort", "partial_abs1", "partial_abs04", "partial_abs-2",
    "partial_abs" + "9" * 5000,
])  # fmt: skip
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="abs, maxmin, oplu, groupsort, .*got"):
        build_activation(name, 4)
