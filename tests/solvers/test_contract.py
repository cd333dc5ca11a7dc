"""One contract for every registered solver, on classifiers whose distance is known."""

import pytest
import torch
from solvers.cases import (
    ACCURATE,
    ITERATIVE,
    KINDS,
    ONE_RAY,
    QUICK,
    affine,
    boxed_affine_distance,
    exact,
    labelled,
    piecewise_linear,
    trained_ugnn,
)
from torch import Tensor, nn

from unitmargin.certificates.certify import certify
from unitmargin.solvers import SOLVERS, MapResult, Status, minimal_perturbation

DTYPES = (torch.float32, torch.float64)

SOUND = 1.0 - 1e-9
"""A confirmed distance may fall below the truth by float64 rounding alone."""

EXACTLY, FINELY, CLOSELY, ROUGHLY = 1e-5, 1e-2, 2e-2, 3e-2
"""Relative tolerances that the solvers document; the last one for absolute learning rates."""

DOCUMENTED: dict[str, dict[str, float]] = {
    "sphere_tracing": {"unit": EXACTLY, "general": EXACTLY, "corners": EXACTLY},
    "iterative_penalty": {"unit": ROUGHLY, "corners": ROUGHLY},
    "ddn": {"corners": CLOSELY},
    "margin_ddn": {"unit": EXACTLY, "general": EXACTLY, "corners": FINELY},
    "deepfool": {"unit": EXACTLY, "general": EXACTLY, "corners": CLOSELY},
    "closest_boundary": {"unit": EXACTLY, "general": EXACTLY},
    "fast_outer_boundary": {"unit": EXACTLY},
    "fmn": {"unit": EXACTLY, "general": EXACTLY, "corners": FINELY},
    "alma": {"unit": EXACTLY, "general": EXACTLY, "corners": FINELY},
    "carlini_wagner": {"unit": ROUGHLY, "corners": ROUGHLY},
    "closed_form": {"unit": EXACTLY},
}
"""Tolerance by kind of classifier; a kind that is missing promises an upper bound only."""

RATES = {"iterative_penalty": 3e-2, "carlini_wagner": 3e-2}
"""Learning rates, which are lengths: a distance of that size is not resolved."""


def run(
    solver: str, model: nn.Module, x: Tensor, labels: Tensor, box: tuple[float, float] | None = None
) -> MapResult:
    return minimal_perturbation(model, x, labels, solver, box, **QUICK.get(solver, {}))


def run_accurately(
    solver: str, model: nn.Module, x: Tensor, labels: Tensor, box: tuple[float, float] | None = None
) -> MapResult:
    return minimal_perturbation(model, x, labels, solver, box, **ACCURATE.get(solver, {}))


def check_result(
    found: MapResult, model: nn.Module, x: Tensor, labels: Tensor, box: tuple[float, float] | None
) -> None:
    """What every result owes: types, shapes, and found points that are what they claim to be."""
    assert found.point.shape == x.shape
    assert found.point.dtype == found.distance.dtype == torch.float64
    assert {int(status) for status in found.status} <= set(Status)
    assert not (found.point.requires_grad)
    assert not (found.distance.requires_grad)
    hit, missed = found.status == Status.FOUND, found.status == Status.FAILED
    assert bool(torch.isinf(found.distance[missed]).all())
    assert bool(torch.isnan(found.point[missed]).all())
    move = (found.point - x.double()).flatten(1)[hit]
    assert torch.allclose(move.norm(dim=1), found.distance[hit], rtol=1e-12, atol=0)
    with torch.no_grad():
        logits = model(found.point[hit])
    own = logits.gather(1, labels[hit, None])
    others = logits.scatter(1, labels[hit, None], -torch.inf)
    assert bool((others.max(1, keepdim=True).values > own).all())
    if box is not None:
        assert bool(((found.point[hit] >= box[0]) & (found.point[hit] <= box[1])).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=("float32", "float64"))
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_distance_is_within_the_documented_tolerance(
    solver: str, name: str, dtype: torch.dtype
) -> None:
    truth, x, labels = exact(name, dtype)
    found = run_accurately(solver, truth.network, x, labels)
    check_result(found, truth.network.in_float64(), x, labels, None)
    distance = truth.distance(x)
    assert bool((found.distance >= SOUND * distance).all())
    allowed = DOCUMENTED[solver].get(KINDS[name])
    if allowed is not None:
        limit = (1.0 + allowed) * distance + RATES.get(solver, 0.0)
        assert bool((found.distance <= limit).all())
    else:
        assert bool((found.status == Status.FOUND).any())


@pytest.mark.parametrize("solver", ["sphere_tracing", "margin_ddn", "deepfool"])
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost_without_certified_distances(solver: str, name: str) -> None:
    truth, x, labels = exact(name, torch.float32)
    found = run_accurately(solver, nn.Sequential(truth.network), x, labels)
    limit = (1.0 + DOCUMENTED[solver][KINDS[name]]) * truth.distance(x)
    assert bool((found.distance <= limit).all())


BOXED = {"sphere_tracing": EXACTLY, "margin_ddn": 2e-2, "fmn": 2e-2, "alma": 2e-2}


@pytest.mark.parametrize("dtype", DTYPES, ids=("float32", "float64"))
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_box_is_a_constraint(solver: str, dtype: torch.dtype) -> None:
    weight = torch.randn(3, 4, generator=torch.Generator().manual_seed(7), dtype=dtype)
    model = affine(weight, torch.tensor([1.2, 0.0, -0.4], dtype=dtype))
    x = torch.rand(16, 4, generator=torch.Generator().manual_seed(8)).to(dtype)
    x[:, 0], x[:, 1] = 0.0, 1.0
    labels = model(x).argmax(1)
    options = ACCURATE.get(solver, {}) | ({"rate": 0.1} if solver == "carlini_wagner" else {})
    found = minimal_perturbation(model, x, labels, solver, (0.0, 1.0), **options)
    check_result(found, model.double(), x, labels, (0.0, 1.0))
    truth = boxed_affine_distance(model.weight.data, model.bias.data, x, labels, 0.0, 1.0)
    free = minimal_perturbation(model, x.double(), labels).distance
    assert bool((truth > 1.1 * free).any())
    assert bool((found.distance >= SOUND * truth).all())
    if solver in BOXED:
        assert bool((found.distance <= (1 + BOXED[solver]) * truth).all())
    else:
        assert bool((found.status == Status.FOUND).any())


@pytest.mark.parametrize("solver", ["sphere_tracing", "margin_ddn", "ddn", "iterative_penalty"])
def test_a_box_may_have_other_sides_for_every_entry(solver: str) -> None:
    weight = torch.randn(3, 4, generator=torch.Generator().manual_seed(7)).double()
    model = affine(weight, torch.tensor([1.2, 0.0, -0.4]).double())
    low = torch.tensor([-0.5, 0.0, 0.2, -2.0], dtype=torch.float64)
    high = torch.tensor([0.5, 0.1, 1.0, 3.0], dtype=torch.float64)
    share = torch.rand(16, 4, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    x = (low + share * (high - low)).requires_grad_(False)
    labels = model(x).argmax(1)
    found = minimal_perturbation(model, x, labels, solver, (low, high), **ACCURATE.get(solver, {}))
    hit = found.status == Status.FOUND
    assert bool(hit.any())
    assert bool(((found.point[hit] >= low) & (found.point[hit] <= high)).all())
    truth = boxed_affine_distance(model.weight.data, model.bias.data, x, labels, low, high)
    assert bool((found.distance >= SOUND * truth).all())
    if solver in BOXED:
        assert bool((found.distance <= (1 + BOXED[solver]) * truth).all())


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_is_found_where_the_whole_box_has_one_label(solver: str) -> None:
    weight = 0.5 * torch.randn(3, 4, generator=torch.Generator().manual_seed(7))
    model = affine(weight, torch.tensor([2.5, 0.0, -0.4]))
    x, labels = torch.rand(4, 4), torch.zeros(4, dtype=torch.int64)
    found = run(solver, model, x, labels, (0.0, 1.0))
    assert bool((found.status == Status.FAILED).all())
    assert bool(torch.isinf(found.distance).all())
    assert bool(torch.isnan(found.point).all())
    beyond = run(solver, model, x, labels)
    assert bool((beyond.status == Status.FOUND).any())


@pytest.mark.parametrize("box", [None, (0.0, 1.0)], ids=("free", "boxed"))
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_distance_is_below_the_certificate(solver: str, box: tuple[float, float] | None) -> None:
    frozen, x, labels = trained_ugnn()
    found = run(solver, frozen, x, labels, box)
    check_result(found, frozen.in_float64(), x, labels, box)
    assert bool((found.distance >= SOUND * certify(frozen, x).radius).all())
    if solver in ITERATIVE and (solver, box) != ("carlini_wagner", (0.0, 1.0)):
        assert bool((found.status == Status.FOUND).all())


@pytest.mark.parametrize("solver", SOLVERS)
def test_results_do_not_depend_on_the_batch(solver: str) -> None:
    frozen, x, labels = trained_ugnn()
    x, labels = x[:3], labels[:3]
    options = QUICK.get(solver, {})
    whole = minimal_perturbation(frozen, x, labels, solver, **options)
    split = minimal_perturbation(frozen, x, labels, solver, batch_size=2, **options)
    assert torch.equal(whole.status, split.status)
    assert torch.allclose(whole.distance, split.distance, rtol=1e-5, atol=0)
    alone = minimal_perturbation(frozen, x[1:2], labels[1:2], solver, **options)
    assert torch.allclose(whole.distance[1:2], alone.distance, rtol=1e-5, atol=0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_misclassified_samples_cost_nothing_and_stay_where_they_are(solver: str) -> None:
    truth, x, labels = exact("affine", torch.float32)
    wrong = (labels + 1) % 5
    found = run(solver, truth.network, x, wrong)
    assert bool((found.status == Status.ALREADY_MISCLASSIFIED).all())
    assert torch.equal(found.distance, torch.zeros(len(x), dtype=torch.float64))
    assert torch.equal(found.point, x.double())
    assert int(found.n_backward.sum()) == 0
    assert found.n_forward.tolist() == [1] * len(x)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constant_classifier_fails_without_an_error(solver: str) -> None:
    model = affine(torch.zeros(3, 3), torch.tensor([3.0, 1.0, 2.0]))
    for box in (None, (0.0, 1.0)):
        found = run(solver, model, torch.rand(4, 3), torch.zeros(4, dtype=torch.int64), box)
        assert bool((found.status == Status.FAILED).all())
        assert bool(torch.isinf(found.distance).all())


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_empty_batch_gives_an_empty_result(solver: str) -> None:
    found = run(solver, nn.Linear(3, 2), torch.rand(0, 3), torch.zeros(0, dtype=torch.int64))
    assert found.point.shape == (0, 3)
    assert found.distance.shape == found.status.shape == found.n_forward.shape == (0,)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_two_and_three_classes_and_the_last_label(solver: str, classes: int) -> None:
    network = piecewise_linear(classes=classes)
    x, labels = labelled(network, count=40)
    last = labels == classes - 1
    assert bool(last.any())
    found = run(solver, network, x, labels)
    hit = (found.status == Status.FOUND)[last]
    assert bool(hit.all() if solver in ITERATIVE else hit.any())


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in ONE_RAY])
def test_success_on_a_piecewise_linear_network(solver: str) -> None:
    model = piecewise_linear()
    x, labels = labelled(model)
    found = run(solver, model, x, labels)
    assert bool((found.status == Status.FOUND).all())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_shift_of_all_logits_changes_nothing(solver: str) -> None:
    truth, x, labels = exact("unit_affine", torch.float64, 6)

    class Shifted(nn.Module):
        def __init__(self, shift: float) -> None:
            super().__init__()
            self.network, self.shift = truth.network, shift

        def forward(self, x: Tensor) -> Tensor:
            return self.network(x) + self.shift

    options = QUICK.get(solver, {})
    plain = minimal_perturbation(Shifted(0.0), x, labels, solver, **options)
    moved = minimal_perturbation(Shifted(-100.0), x, labels, solver, **options)
    assert torch.equal(plain.status, moved.status)
    assert torch.allclose(plain.distance, moved.distance, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_runs_are_equal(solver: str) -> None:
    frozen, x, labels = trained_ugnn()
    options = QUICK.get(solver, {})
    runs = [minimal_perturbation(frozen, x[:3], labels[:3], solver, **options) for _ in range(2)]
    assert torch.equal(runs[0].point, runs[1].point)
    assert torch.equal(runs[0].n_forward, runs[1].n_forward)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_graph_survives_the_search(solver: str) -> None:
    truth, x, labels = exact("unit_affine", torch.float32, 4)
    options = QUICK.get(solver, {})
    x = x.clone().requires_grad_(True)
    found = minimal_perturbation(truth.network, x, labels, solver, **options)
    for tensor in vars(found).values():
        assert tensor.grad_fn is None
    assert x.grad is None


SEEN: list[int] = []
"""Batch sizes of the calls of :class:`Counted`, whose copies share them."""


class Counted(nn.Module):
    """A linear model of five classes that notes how many inputs it is given at once."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        SEEN.append(len(x))
        logits: Tensor = self.layer(x)
        return logits


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_more_inputs_are_evaluated_at_once_than_the_batch_has(solver: str) -> None:
    torch.manual_seed(0)
    model, x = Counted(), torch.rand(24, 6)
    labels = model(x).argmax(1)
    SEEN.clear()
    minimal_perturbation(model, x, labels, solver, batch_size=8, **QUICK.get(solver, {}))
    assert max(SEEN) == 8
