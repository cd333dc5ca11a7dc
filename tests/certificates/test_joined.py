"""Several searches as one: the closest points, and the order of the samples."""

from dataclasses import replace

import torch
from searches import made_search

from unitmargin.certificates.joined import closest_found, join_searches
from unitmargin.solvers import Status

FOUND, FAILED, ALREADY = Status.FOUND, Status.FAILED, Status.ALREADY_MISCLASSIFIED


def test_the_closest_point_of_several_solvers_is_kept() -> None:
    first = made_search([1.0, 1.0], [2.0, torch.inf])
    second = made_search([1.0, 1.0], [3.0, 4.0], "ddn")
    best = closest_found([first, second])
    assert best.distance.tolist() == [2.0, 4.0]
    assert best.found.all()
    assert best.n_backward.tolist() == [0, 2]
    assert best.solver == "fmn or ddn"


def test_solvers_may_have_searched_different_samples() -> None:
    """One solver searched samples 0 to 2, the other 2 and 3; sample 2 is wrong, sample 3 failed."""
    first = made_search([1.0, 2.0, 3.0], [2.0, 5.0, 0.0])
    second = made_search([3.0, 4.0], [0.0, torch.inf], "ddn")
    second = replace(second, index=second.index + 2, label=second.index % 2)
    best = closest_found([first, second])
    assert best.index.tolist() == [0, 1, 2, 3]
    assert best.label.tolist() == [0, 1, 0, 1]
    assert best.radius.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert best.distance.tolist() == [2.0, 5.0, 0.0, torch.inf]
    assert best.status.tolist() == [FOUND, FOUND, ALREADY, FAILED]


def test_parts_of_a_search_are_put_in_the_order_of_their_samples() -> None:
    whole = made_search([1.0, 2.0, 3.0, 4.0], [2.0, 5.0, torch.inf, 6.0])
    names = [name for name, value in vars(whole).items() if isinstance(value, torch.Tensor)]
    parts = [
        replace(whole, **{name: getattr(whole, name)[start::2] for name in names})
        for start in (1, 0)
    ]
    joined = join_searches(parts)
    for name in names:
        assert torch.equal(getattr(joined, name), getattr(whole, name)), name
