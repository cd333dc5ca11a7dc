"""Defects known from public attack implementations, each as a test that would catch it."""

from typing import Any

import pytest
import torch
from exact import EXACT
from solvers.cases import ACCURATE, QUICK, affine, exact, labelled, piecewise_linear, trained_ugnn
from torch import Tensor, nn

import unitmargin as um
from unitmargin.certificates.certify import certify
from unitmargin.solvers import SOLVERS, Status, best_of, minimal_perturbation
from unitmargin.solvers.problem import Problem, pair_margins


def test_a_search_from_inside_without_overshoot_fails_visibly() -> None:
    frozen, x, labels = trained_ugnn()
    silent = minimal_perturbation(frozen, x, labels, "fmn", (0.0, 1.0), overshoot=0.0)
    lost = silent.status == Status.FAILED
    assert bool(lost.any())
    assert bool(torch.isinf(silent.distance[lost]).all())
    assert bool(torch.isnan(silent.point[lost]).all())
    whole = minimal_perturbation(frozen, x, labels, "fmn", (0.0, 1.0))
    assert bool((whole.status == Status.FOUND).all())


@pytest.mark.parametrize("solver", ["sphere_tracing", "margin_ddn", "ddn", "fmn", "deepfool"])
def test_the_nearest_boundary_may_be_the_corner_of_the_box(solver: str) -> None:
    model = affine(torch.tensor([[-1.0, -1.0], [0.0, 0.0]]), torch.tensor([1.999, 0.0]))
    x = torch.tensor([[0.2, 0.6]])
    found = minimal_perturbation(model, x, torch.tensor([0]), solver, (0.0, 1.0))
    truth = (0.799**2 + 0.4**2) ** 0.5
    assert truth - 1e-6 <= float(found.distance) <= 1.001 * truth


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_input_is_neither_changed_nor_tied_to_the_graph(solver: str) -> None:
    truth, x, labels = exact("unit_affine", torch.float32, 4)
    base = torch.stack((x, x), dim=-1)
    view = base[..., 0]
    kept, kept_labels = base.clone(), labels.clone()
    minimal_perturbation(truth.network, view, labels, solver, **QUICK.get(solver, {}))
    assert torch.equal(base, kept)
    assert torch.equal(labels, kept_labels)
    assert not view.requires_grad


def test_carlini_wagner_grows_its_weight_until_it_crosses() -> None:
    weight = 1e-3 * torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    found = minimal_perturbation(
        affine(weight, torch.zeros(2)),
        torch.tensor([[0.5, 0.3]]),
        torch.tensor([0]),
        "carlini_wagner",
        steps=100,
    )
    assert float(found.distance) == pytest.approx(0.5, rel=1e-3)


def test_normalised_inputs_need_no_box_and_a_wrong_box_is_named() -> None:
    truth, x, labels = exact("affine", torch.float32)
    assert float(x.min()) < 0.0
    assert bool((minimal_perturbation(truth.network, x, labels).status == Status.FOUND).all())
    with pytest.raises(ValueError, match=rf"entries from {float(x.min())} to {float(x.max())}"):
        minimal_perturbation(truth.network, x, labels, box=(0.0, 1.0))


@pytest.mark.parametrize("solver", ["sphere_tracing", "margin_ddn", "deepfool", "alma"])
def test_over_confident_networks_have_margins_where_softmax_has_none(solver: str) -> None:
    model = piecewise_linear()
    x, labels = labelled(model)
    plain = minimal_perturbation(model, x, labels, solver)
    with torch.no_grad():
        model[-1].weight *= 1e4
        model[-1].bias *= 1e4
    steep = minimal_perturbation(model, x, labels, solver)
    assert bool((steep.status == Status.FOUND).all())
    assert torch.allclose(steep.distance, plain.distance, rtol=1e-4, atol=0)


def test_a_tiny_distance_is_not_rounded_to_a_pixel_grid() -> None:
    model = affine(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([-0.5, 0.5]))
    x = torch.tensor([[0.5001, 0.5]])
    for solver in ("sphere_tracing", "ddn", "margin_ddn", "deepfool"):
        found = minimal_perturbation(model, x, torch.tensor([0]), solver, (0.0, 1.0))
        assert float(found.distance) == pytest.approx(float(x[0, 0].double() - 0.5), rel=1e-3), (
            solver
        )


@pytest.mark.parametrize("solver", ["sphere_tracing", "ddn"])
def test_a_tie_counts_as_misclassified_whatever_the_order_of_the_labels(solver: str) -> None:
    model = affine(torch.eye(3), torch.zeros(3))
    x = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    found = minimal_perturbation(model, x, torch.tensor([0, 1]), solver)
    assert bool((found.status == Status.ALREADY_MISCLASSIFIED).all())
    assert found.distance.tolist() == [0.0, 0.0]


def test_of_repeated_rows_the_closest_point_is_kept() -> None:
    truth, x, labels = exact("unit_affine", torch.float64, 2)
    network, start = truth.network, x.flatten(1)

    def build(shape: tuple[int, ...] = x.shape[1:]) -> Problem:
        from unitmargin.solvers.evaluation import prepare

        logits = network(x)
        return Problem(prepare(network, x), start, labels, logits, None, lambda _: None)

    move = (truth.closest(x) - x).flatten(1)
    factors = torch.tensor([3.0, 1.2, 2.0, 1.4, 1.1, 5.0], dtype=torch.float64)
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    problem = build()
    problem.margin(start[rows] + factors[:, None] * move[rows], rows)
    wanted = torch.tensor([1.2, 1.1]) * truth.distance(x)
    assert torch.allclose(problem.best_distance, wanted.double(), rtol=1e-6)
    assert problem.n_forward.tolist() == [3, 3]
    lengths = (problem.best_point - start).norm(dim=1)
    assert torch.allclose(lengths, problem.best_distance, rtol=1e-12)


class Undecided(nn.Module):
    """Another label everywhere in float32, the same label everywhere in float64."""

    def forward(self, x: Tensor) -> Tensor:
        sign = 1.0 if x.dtype == torch.float64 else -1.0
        ones = torch.ones_like(x[:, 0]) + 0.0 * x[:, 0]
        return torch.stack((sign * ones, -sign * ones), dim=1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_float64_does_not_confirm_is_not_found(solver: str) -> None:
    labels = torch.zeros(3, dtype=torch.int64)
    options = QUICK.get(solver, {})
    found = minimal_perturbation(Undecided(), torch.rand(3, 2), labels, solver, **options)
    assert bool((found.status == Status.FAILED).all())
    assert bool(torch.isinf(found.distance).all())


def test_cross_entropy_is_biased_and_the_margin_is_not() -> None:
    frozen, x, labels = trained_ugnn()
    results = {
        "tracing": minimal_perturbation(frozen, x, labels),
        "margin": minimal_perturbation(frozen, x, labels, "margin_ddn"),
        "entropy": minimal_perturbation(frozen, x, labels, "ddn"),
        "hot": minimal_perturbation(frozen, x, labels, "ddn", temperature=30.0),
    }
    best = best_of(*results.values()).distance.mean()
    ratio = {name: float(found.distance.mean() / best) for name, found in results.items()}
    assert ratio["tracing"] < 1.001
    assert ratio["margin"] < 1.01
    assert 1.15 < ratio["entropy"] < (2 * 9 / 10) ** 0.5 + 0.05
    assert ratio["hot"] < 1.05


def test_the_certificate_is_nearly_reached() -> None:
    frozen, x, labels = trained_ugnn()
    found = minimal_perturbation(frozen, x, labels)
    ratio = certify(frozen, x).radius / found.distance
    assert float(ratio.max()) <= 1.0 + 1e-9
    assert float(ratio.mean()) > 0.9


def test_ten_steps_equal_a_thousand_penalty_steps() -> None:
    frozen, x, labels = trained_ugnn()
    x, labels = x[:8], labels[:8]
    penalty = minimal_perturbation(
        frozen, x, labels, "iterative_penalty", steps=150, searches=4, rate=1e-2
    )
    tracing = minimal_perturbation(frozen, x, labels, steps=10)
    assert float(tracing.distance.mean()) <= 1.001 * float(penalty.distance.mean())
    assert int(tracing.n_backward.sum()) <= int(penalty.n_backward.sum()) / 20


@pytest.mark.parametrize("change", ["permutation", "rotation", "scale"])
@pytest.mark.parametrize("solver", ["sphere_tracing", "margin_ddn", "deepfool", "closed_form"])
def test_distances_follow_the_symmetries_of_the_problem(solver: str, change: str) -> None:
    truth = EXACT["box"](torch.float64)
    network, x = truth.network, truth.inputs[::2]
    labels = network(x).argmax(1)
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q
    factor = 10.0 if change == "scale" else 1.0

    class Changed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.network((x @ turn if change == "rotation" else x) / factor)
            return logits.flip(1) if change == "permutation" else logits

    plain = minimal_perturbation(nn.Sequential(network), x, labels, solver)
    moved = factor * (x @ turn.mT if change == "rotation" else x)
    other = minimal_perturbation(
        Changed(), moved, 1 - labels if change == "permutation" else labels, solver
    )
    assert torch.equal(plain.status, other.status)
    hit = plain.status == Status.FOUND
    assert bool(hit.any())
    assert torch.allclose(other.distance[hit], factor * plain.distance[hit], rtol=1e-5, atol=0)


def test_margins_of_negative_logits_are_margins() -> None:
    margins = pair_margins(torch.tensor([[-1.0, -2.0, -3.0]]).double(), torch.tensor([0]))
    assert margins[0, 1:].tolist() == [1.0, 2.0]


class NeverEmpty(nn.Module):
    """Refuses an empty batch, as the Fourier transforms of some convolutions do."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        assert len(x) > 0
        logits: Tensor = self.model(x)
        return logits


@pytest.mark.parametrize("name", ["unit_affine", "sphere"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_model_never_meets_an_empty_batch(solver: str, name: str) -> None:
    truth, x, labels = exact(name, torch.float64)
    model = NeverEmpty(truth.network)
    found = minimal_perturbation(model, x[:2], labels[:2], solver, **QUICK.get(solver, {}))
    assert bool((found.status == Status.FOUND).all())


@pytest.mark.parametrize("box", [(0.0, torch.inf), (-torch.inf, 3.0)])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_box_may_be_open_on_one_side(solver: str, box: tuple[float, float]) -> None:
    x = torch.tensor([[2.0, 0.5]])
    options = ACCURATE.get(solver, {})
    found = minimal_perturbation(nn.Identity(), x, torch.tensor([0]), solver, box, **options)
    assert float(found.distance) == pytest.approx(1.5 / 2**0.5, rel=1e-2)


class Spectral(nn.Module):
    """Filters by complex weights of single precision, which ``double`` leaves as they are."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        parts = torch.randn(4, 2, generator=generator)
        self.spectrum = nn.Parameter(torch.view_as_complex(parts))
        self.dense = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x).to(self.spectrum.dtype) * self.spectrum
        logits: Tensor = self.dense(torch.fft.irfft(spectrum, 6).to(x.dtype))
        return logits


def test_points_of_complex_weights_are_confirmed_in_float64() -> None:
    torch.manual_seed(0)
    model, x = Spectral(), torch.randn(50, 6)
    labels = model(x).argmax(1)
    found = minimal_perturbation(model, x, labels, "ddn")
    exact = model.double()
    exact.spectrum.data = exact.spectrum.data.to(torch.complex128)
    logits = exact(found.point).detach()
    own = logits.gather(1, labels[:, None]).squeeze(1)
    others = logits.scatter(1, labels[:, None], -torch.inf).amax(1)
    done = found.status == Status.FOUND
    assert bool(done.any())
    assert bool((own - others)[done].lt(0.0).all())


def test_a_ray_is_not_evaluated_twice_at_one_point() -> None:
    """From a certified distance on, shorter lengths of the ladder are the same point."""
    torch.manual_seed(0)
    frozen = um.freeze(um.DenseUGNN((20,), 10, hidden=(20, 20, 20)))
    x = torch.randn(20, 20, dtype=torch.float64)
    seen: list[tuple[float, ...]] = []
    original = Problem.margin

    def noted(problem: Problem, points: Tensor, *rest: Any, **options: Any) -> Tensor:
        seen.extend(tuple(point) for point in points.tolist())
        return original(problem, points, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Problem, "margin", noted)
        labels = frozen(x).argmax(1)
        minimal_perturbation(frozen, x, labels, "closest_boundary", refinements=0)
    assert len(seen) > 20
    assert len(set(seen)) > 0.9 * len(seen)
