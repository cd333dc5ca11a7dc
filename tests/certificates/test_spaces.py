"""Spaces: where distances are measured, against a boundary that is known in both."""

import pytest
import torch

from unitmargin.certificates.certify import certify
from unitmargin.certificates.spaces import input_space, normalised_space
from unitmargin.certificates.tightness import search_boundary, tightness
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.layers.normalize import Normalize

MEAN, STD = torch.tensor([0.5, 0.25]), torch.tensor([0.25, 0.5])

UNIT = torch.tensor([0.6, 0.8], dtype=torch.float64)
"""Normal of the boundary behind the normalisation."""

EXACTLY = 1e-6
"""Relative; the statistics are float32, and a solver lands behind the boundary by 1e-10."""


def network(std: torch.Tensor = STD) -> FrozenNetwork:
    """Behind the normalisation the logits differ by the signed distance to a line through 0."""
    head = Dense(torch.stack((0.5 * UNIT, -0.5 * UNIT)), torch.zeros(2).double())
    return FrozenNetwork([Normalize(MEAN, std), head], (2,))


def inputs() -> torch.Tensor:
    points = torch.rand(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return points[((points - MEAN) / STD @ UNIT).abs() > 0.05]


def test_behind_the_normalisation_the_certificate_is_the_distance() -> None:
    """In input units it is not: the line has the normal UNIT / STD there."""
    frozen, x = network(), inputs()
    labels, index = certify(frozen, x).label, torch.arange(len(x))
    behind = normalised_space(frozen)
    assert behind is not None
    margin = ((x - MEAN) / STD @ UNIT).abs()
    truth = {"input": margin / (UNIT / STD).norm(), "normalised": margin}
    for space in (input_space(frozen), behind):
        search = search_boundary(space, x, labels, index, "sphere_tracing", None)
        assert search.space == space.name
        assert torch.allclose(search.distance, truth[space.name], rtol=EXACTLY)
        assert not bool(search.inside().any())
        ratio = {"input": 0.25 * float((UNIT / STD).norm()), "normalised": 1.0}[space.name]
        assert tightness(search).mean == pytest.approx(ratio, rel=EXACTLY)


def test_the_box_of_inputs_holds_behind_the_normalisation() -> None:
    """From (1, 0), which is (2, -0.5) there, the free step leaves [0, 1]; along the edge the
    boundary 0.6 x + 0.8 y = 0 is met at (2/3, -0.5)."""
    frozen, x = network(), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    behind = normalised_space(frozen)
    assert behind is not None
    label, index = certify(frozen, x).label, torch.zeros(1, dtype=torch.int64)
    for box, truth in ((None, 0.8), ((0.0, 1.0), 4 / 3)):
        search = search_boundary(behind, x, label, index, "sphere_tracing", box)
        assert search.box == box
        assert float(search.distance) == pytest.approx(truth, rel=EXACTLY)


@pytest.mark.parametrize("std", [torch.ones(2), torch.full((2,), 0.25)], ids=("centre", "scalar"))
def test_where_channels_are_stretched_alike_there_is_one_space(std: torch.Tensor) -> None:
    assert normalised_space(network(std)) is None
    plain = FrozenNetwork([Dense(torch.eye(2).double(), torch.zeros(2).double())], (2,))
    assert normalised_space(plain) is None
