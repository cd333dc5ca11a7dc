"""Pair distances of UPD matrices: closed forms are exact, the listing is what torch makes it."""

import pytest
import torch

from unitmargin.auditing.gradients import pair_distances
from unitmargin.heads import BoundedUPD
from unitmargin.heads.upd import simplex
from unitmargin.paper.upd import listing, ours, pair_errors, weights


@pytest.mark.parametrize("name", weights())
def test_errors_of_all_ways(name: str) -> None:
    errors = pair_errors(10, weights()[name])
    assert len(errors) == 10 * 45
    assert float(errors.max()) <= (5e-5 if name.startswith("listing") else 1e-7)


def test_a_upd_matrix_stays_where_it_is() -> None:
    frame = torch.nn.init.orthogonal_(torch.empty(4, 16))
    start = simplex(5) @ frame
    torch.testing.assert_close(listing(start, 2), start, rtol=0, atol=1e-6)


def test_starts_are_not_upd() -> None:
    """Otherwise the figure would show nothing."""
    errors = pair_errors(10, lambda start: start)
    assert float(errors.min()) > 1e-2


def test_ours_is_the_head() -> None:
    weight = ours(torch.randn(3, 8), BoundedUPD)
    assert float((pair_distances(weight) - 1.0).abs().max()) <= 1e-6
