"""Tightness: distances that are decided by the points, and ratios of known truth."""

import pytest
import torch
from exact import unit_affine
from searches import made_search

from unitmargin.certificates.spaces import input_space
from unitmargin.certificates.tightness import (
    box_name,
    confirm,
    describe_settings,
    search_boundary,
    tightness,
)
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.solvers import SOLVERS, MapResult, Status

RATIO_TOLERANCE = 1e-7
"""The solver lands behind the boundary by 1e-10, and float32 weights are no exact simplex."""


FOUND, FAILED, ALREADY = Status.FOUND, Status.FAILED, Status.ALREADY_MISCLASSIFIED


@pytest.mark.parametrize("solver", ["sphere_tracing", "closed_form"])
def test_an_affine_network_with_exact_certificates_has_ratio_one(solver: str) -> None:
    truth = unit_affine(torch.float32)
    labels = truth.network.in_float64()(truth.inputs.double()).argmax(1)
    index = torch.arange(len(labels))
    search = search_boundary(input_space(truth.network), truth.inputs, labels, index, solver, None)
    figures = tightness(search)
    assert torch.allclose(search.distance, truth.distance(truth.inputs), atol=1e-6)
    assert figures.n == figures.right == len(labels)
    assert figures.success == 1.0
    assert figures.mean == pytest.approx(1.0, abs=RATIO_TOLERANCE)
    assert figures.spread <= RATIO_TOLERANCE
    assert 1.0 - RATIO_TOLERANCE <= figures.smallest <= 1.0
    assert not bool(search.inside().any())


def test_a_box_makes_points_farther() -> None:
    """The boundary x + y = 0.4 seen from (0.9, 0.1): the free step leaves [0, 1] at y = -0.2."""
    weight = torch.tensor([[0.5, 0.5], [-0.5, -0.5]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.tensor([-0.2, 0.2]).double())], (2,))
    inputs, label = torch.tensor([[0.9, 0.1]], dtype=torch.float64), torch.tensor([0])
    for box, truth in ((None, 0.6 / 2**0.5), ((0.0, 1.0), 0.26**0.5)):
        search = search_boundary(
            input_space(network), inputs, label, torch.tensor([0]), "sphere_tracing", box
        )
        assert float(search.distance) == pytest.approx(truth, rel=1e-5)
        assert search.box == box


def test_statistics_count_right_samples_with_a_point_only() -> None:
    search = made_search([1.0, 0.5, 3.0, 9.0], [2.0, 2.0, torch.inf, 0.0])
    figures = tightness(search)
    assert (figures.n, figures.right) == (2, 3)
    assert figures.success == pytest.approx(2 / 3)
    assert figures.mean == pytest.approx(0.375)
    assert figures.spread == pytest.approx(0.125)
    assert figures.smallest == 0.25
    assert (figures.mean_radius, figures.mean_distance) == (0.75, 2.0)
    assert (figures.n_forward, figures.n_backward) == (2.0, 1.0)


def test_statistics_of_nothing_are_nan_and_not_zero() -> None:
    for search in (made_search([1.0], [0.0]), made_search([1.0], [torch.inf])):
        figures = tightness(search)
        assert figures.n == 0
        assert figures.mean != figures.mean
        assert figures.spread != figures.spread
        assert figures.smallest != figures.smallest


def test_a_point_on_the_sphere_is_not_inside() -> None:
    below = 1.0 - 2.0**-53
    search = made_search([1.0, 1.0, 1.0], [1.0, below, 0.0])
    assert search.inside().tolist() == [False, True, False]


def test_a_search_in_parts_is_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = unit_affine(torch.float64)
    labels = truth.network(truth.inputs).argmax(1)
    arguments = truth.inputs, labels, torch.arange(len(labels)), "sphere_tracing", (-9.0, 9.0)
    whole = search_boundary(input_space(truth.network), *arguments)
    monkeypatch.setattr("unitmargin.certificates.tightness.SEARCHED", 3)
    parts = search_boundary(input_space(truth.network), *arguments)
    assert len(labels) > 3
    assert torch.equal(parts.index, whole.index)
    assert torch.allclose(parts.distance, whole.distance, rtol=RATIO_TOLERANCE)


def test_points_are_judged_again_and_a_wrong_claim_counts_as_failure() -> None:
    """A point that keeps the label, one outside the box, and one with a wrong distance."""
    weight = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(2).double())], (1,))
    inputs, labels = torch.full((3, 1), 0.5).double(), torch.zeros(3, dtype=torch.int64)
    claims = MapResult(
        point=torch.tensor([[0.25], [-0.5], [-0.125]], dtype=torch.float64),
        distance=torch.full((3,), 0.1, dtype=torch.float64),
        status=torch.full((3,), int(FOUND)),
        n_forward=torch.ones(3, dtype=torch.int64),
        n_backward=torch.ones(3, dtype=torch.int64),
    )
    box = input_space(network).bounds((-0.25, 1.0))
    distance, status = confirm(network, inputs, labels, box, claims)
    assert status.tolist() == [FAILED, FAILED, FOUND]
    assert distance.tolist() == [torch.inf, torch.inf, 0.625]


@pytest.mark.parametrize("solver", SOLVERS)
def test_settings_fit_into_one_cell(solver: str) -> None:
    text = describe_settings(solver)
    assert text.endswith("refinements=20")
    assert not {",", '"', "\n", ";"} & set(text)


def test_a_search_takes_options_and_names_what_they_change() -> None:
    truth = unit_affine(torch.float32)
    labels = truth.network(truth.inputs).argmax(1)
    index = torch.arange(len(labels))
    long, short = (
        search_boundary(
            input_space(truth.network), truth.inputs, labels, index, "alma", None, **options
        )
        for options in ({}, {"steps": 7})
    )
    assert int(short.n_backward.max()) <= 7 < int(long.n_backward.max())
    assert short.settings == long.settings.replace("steps=100", "steps=7")
    assert str(long) == "alma without box"
    assert str(short) == "alma without box with steps=7"


def test_boxes_have_names() -> None:
    assert (box_name(None), box_name((0.0, 1.0))) == ("none", "[0, 1]")
