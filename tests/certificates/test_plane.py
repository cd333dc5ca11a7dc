"""The plane: a grid around points and discs, and the logits on it."""

import pytest
import torch

from unitmargin.certificates.exhibits import Exhibit
from unitmargin.certificates.plane import GRID, MOST_POINTS, sample_plane
from unitmargin.data import Samples
from unitmargin.frozen import Dense, FrozenNetwork


@pytest.mark.parametrize(
    ("place", "extent"), [(0.0, 1e-9), (1e9, 0.0), (1e6, 2.0), (0.0, 0.0), (-1e-30, 0.0)]
)
def test_the_grid_is_as_large_as_what_it_shows(place: float, extent: float) -> None:
    network = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,))
    points = place + extent * torch.rand(9, 2)
    plane = sample_plane(network, Samples(points, torch.arange(9) % 2), [])
    for axis, line in enumerate((plane.horizontal, plane.vertical)):
        assert float(line[0]) < float(points[:, axis].min())
        assert float(line[-1]) > float(points[:, axis].max())
        assert len(line.unique()) == GRID
        if extent:
            assert float(line[-1] - line[0]) < 3 * extent


def test_the_grid_holds_points_and_discs_and_its_logits() -> None:
    network = FrozenNetwork([Dense(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.zeros(2))], (2,))
    points = torch.rand(MOST_POINTS + 1, 2)
    samples = Samples(points, torch.arange(len(points)) % 2)
    disc = Exhibit(
        index=0,
        why="wrong",
        label="0",
        predicted="1",
        other="0",
        radius=3.0,
        distance=None,
        original=points[0].double(),
        adversarial=points[1].double(),
    )
    plane = sample_plane(network, samples, [disc])
    assert torch.equal(plane.points, points[:MOST_POINTS].double())
    assert torch.equal(plane.labels, samples.labels[:MOST_POINTS])
    for axis, line in enumerate((plane.horizontal, plane.vertical)):
        assert float(line[0]) < float(points[0, axis]) - 3.0
        assert float(line[-1]) > float(points[0, axis]) + 3.0
    cells = plane.logits.view(GRID, GRID, 2)  # the weight is the identity: logits are coordinates
    assert torch.equal(cells[:, :, 0], plane.horizontal.expand(GRID, GRID))
    assert torch.equal(cells[:, :, 1], plane.vertical[:, None].expand(GRID, GRID))
