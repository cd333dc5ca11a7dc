"""The closest of several results."""

import pytest
import torch
from solvers.cases import trained_ugnn

from unitmargin.solvers import Status, best_of, minimal_perturbation


def test_it_is_the_minimum_and_adds_the_calls() -> None:
    frozen, x, labels = trained_ugnn()
    names = ("closed_form", "ddn", "sphere_tracing")
    results = [minimal_perturbation(frozen, x, labels, name, (0.0, 1.0)) for name in names]
    best = best_of(*results)
    distances = torch.stack([result.distance for result in results])
    assert torch.equal(best.distance, distances.min(0).values)
    assert torch.equal(best.n_backward, torch.stack([r.n_backward for r in results]).sum(0))
    lengths = (best.point - x.double()).flatten(1).norm(dim=1)
    assert torch.allclose(lengths, best.distance, rtol=1e-12)


def test_a_failure_never_wins() -> None:
    frozen, x, labels = trained_ugnn()
    lost = minimal_perturbation(frozen, x, labels, "fmn", (0.0, 1.0), overshoot=0.0, steps=2)
    assert bool((lost.status == Status.FAILED).all())
    found = minimal_perturbation(frozen, x, labels, box=(0.0, 1.0))
    for best in (best_of(lost, found), best_of(found, lost)):
        assert torch.equal(best.distance, found.distance)
        assert torch.equal(best.status, found.status)


def test_wrong_results_are_refused() -> None:
    frozen, x, labels = trained_ugnn()
    one = minimal_perturbation(frozen, x[:1], labels[:1], "closed_form")
    two = minimal_perturbation(frozen, x[:2], labels[:2], "closed_form")
    with pytest.raises(ValueError, match="at least one MapResult"):
        best_of()
    with pytest.raises(ValueError, match="same samples"):
        best_of(one, two)
