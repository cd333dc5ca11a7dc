"""Exhibits: which samples are shown, their closest points, and the reach of the closed form."""

import pytest
import torch
from exact import unit_affine

from unitmargin.certificates.certify import certify
from unitmargin.certificates.exhibits import (
    choose_exhibits,
    closed_form_reach,
    is_image,
    make_exhibits,
)
from unitmargin.data import Samples
from unitmargin.frozen import Dense, FrozenNetwork


def test_choice_falls_from_largest_radius_and_ends_with_the_surest_mistake() -> None:
    radius = torch.linspace(0.0, 1.0, 101)
    right = torch.ones(101, dtype=torch.bool)
    right[[10, 90]] = False
    chosen = choose_exhibits(radius, right)
    assert [index for index, _ in chosen[:-1]] == sorted(
        (index for index, _ in chosen[:-1]), reverse=True
    )
    assert chosen[0] == (100, "large radius")
    assert chosen[-2] == (0, "small radius")
    assert chosen[-1] == (90, "wrong")
    assert len(chosen) == 8


@pytest.mark.parametrize(
    ("right", "expected"),
    [([True], [(0, "large radius")]), ([False], [(0, "wrong")])],
)
def test_choice_of_one_sample(right: list[bool], expected: list[tuple[int, str]]) -> None:
    assert choose_exhibits(torch.tensor([0.5]), torch.tensor(right)) == expected


def test_a_prediction_without_a_claim_is_no_exhibit() -> None:
    assert choose_exhibits(torch.tensor([0.0]), torch.tensor([False])) == []


def test_exhibits_lie_on_the_boundary_of_half_planes() -> None:
    weight = torch.tensor([[-0.5, 0.0], [0.5, 0.0]])
    network = FrozenNetwork([Dense(weight, torch.zeros(2))], (2,), ("left", "right"))
    samples = Samples(torch.tensor([[-1.0, 0.5], [0.25, 0.0]]), torch.tensor([0, 0]))
    first, second = make_exhibits(
        network, samples, torch.tensor([1.0, 0.25]), torch.tensor([True, False])
    )
    assert (first.label, first.predicted, first.other) == ("left", "left", "right")
    assert (second.label, second.predicted, second.other) == ("left", "right", "left")
    assert first.distance == pytest.approx(1.0)
    assert second.distance == pytest.approx(0.25)
    torch.testing.assert_close(first.adversarial, torch.tensor([0.0, 0.5]).double())


def test_only_grey_and_colour_maps_are_images() -> None:
    assert is_image((1, 8, 8))
    assert is_image((3, 32, 32))
    assert not is_image((12, 16, 16))
    assert not is_image((2,))


def test_the_closed_form_reaches_the_boundary_of_affine_networks() -> None:
    truth = unit_affine()
    reach = closed_form_reach(
        truth.network, truth.inputs, certify(truth.network, truth.inputs).radius
    )
    assert (reach.samples, reach.flipped_share) == (len(truth.inputs), 1.0)
    assert reach.median_ratio == pytest.approx(1.0, abs=1e-6)


def test_without_a_certified_sample_there_is_no_ratio() -> None:
    truth = unit_affine()
    assert (
        closed_form_reach(truth.network, truth.inputs, torch.zeros(len(truth.inputs))).median_ratio
        is None
    )
