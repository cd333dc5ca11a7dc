"""The network in JavaScript: labels and radii are those of ``certify``, gradients of torch."""

from collections.abc import Iterable
from pathlib import Path

import draws
import pytest
import torch
from javascript import ask, find_node, question, vector
from peers import peer
from torch import Tensor

import unitmargin as um
from unitmargin.certificates.certify import Certificate
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.frozen.mixing import MIXINGS
from unitmargin.frozen.reflection import REFLECTIONS
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize

pytestmark = pytest.mark.skipif(find_node() is None, reason="node is not installed")

OTHERS = {
    "abs", "circular_convolution", "convex_combination", "dense", "flatten", "groupsort", "l2_pool",
    "max_pool", "maxmin", "normalize", "oplu", "partial_abs", "pixel_unshuffle",
    "scaled_average_pool", "widen",
}  # fmt: skip
"""Kinds of layers beside mixings and reflections, as in the table of docs/soundness.md."""

APART = 1e-9
"""What two radii may differ by, relative to radii above 1."""


def require_agreement(frozen: FrozenNetwork, x: Tensor, answers: list[dict[str, str]]) -> int:
    """All claims are those of ``certify``; how many there are."""
    true: Certificate = um.certify(frozen, x, "float64", domain="any")
    radius = torch.tensor([float(answer["radius"]) for answer in answers], dtype=torch.float64)
    label = torch.tensor([int(answer["label"]) for answer in answers])
    claimed = true.radius > 0
    assert torch.equal(label[claimed], true.label[claimed])
    apart = (radius - true.radius).abs() / true.radius.clamp(min=1.0)
    assert bool((apart <= APART).all()), apart
    return int(claimed.sum())


def agreements(networks: list[tuple[FrozenNetwork, Tensor]], folder: Path) -> int:
    cases = [(frozen, [question("certify", row) for row in x]) for frozen, x in networks]
    found = ask(cases, folder)
    pairs = zip(networks, found, strict=True)
    return sum(require_agreement(frozen, x, answers) for (frozen, x), answers in pairs)


def mixed() -> FrozenNetwork:
    torch.manual_seed(2)
    plan = [
        "unshuffle 2", "window 2", "reflect window 2 1", "shift", "fold 2", "position",
        "reflect group 4", "pool 2",
    ]  # fmt: skip
    return um.freeze(um.MixingUGNN(in_shape=(3, 16, 16), n_classes=10, plan=plan))


def paper(activation: str) -> FrozenNetwork:
    torch.manual_seed(1)
    return um.freeze(um.UGNN(in_shape=(1, 16, 16), n_classes=5, activation=activation))


Case = tuple[FrozenNetwork, Tensor]


def drawn(seed: int) -> Case:
    """A network of any magnitude, with inputs of any magnitude."""
    frozen = draws.network(seed, (torch.float32, torch.float64)[seed % 2])
    inputs = draws.Draw(seed, torch.float32).inputs(3, frozen.in_shape)
    return frozen, inputs.double()


def kinds(layers: Iterable[FixedLayer]) -> set[str]:
    found: set[str] = set()
    for layer in layers:
        found |= {layer.kind} | kinds(layer.sublayers())
    return found


def of_all_kinds() -> list[Case]:
    """The first drawn networks of which each has a kind of layer that no earlier one has."""
    chosen, known = [], set[str]()
    for seed in range(150):
        case = drawn(seed)
        if not (own := kinds(case[0].features())) <= known:
            known |= own
            chosen.append(case)
    sliced = {layer.kind for layer in (*MIXINGS.values(), *REFLECTIONS.values())}
    assert known >= sliced | OTHERS
    return chosen


def test_drawn_networks_of_all_layers(tmp_path: Path) -> None:
    cases = of_all_kinds()
    assert agreements(cases, tmp_path) > len(cases)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_more_drawn_networks(first: int, tmp_path: Path) -> None:
    assert agreements([drawn(seed) for seed in range(first, first + 50)], tmp_path) > 40


def test_networks_of_every_family(tmp_path: Path) -> None:
    """Transforms of small and of large maps, mixing, reflections, pools, branches and groups."""
    networks = [mixed(), *map(paper, ("abs", "maxmin", "oplu", "groupsort4"))]
    networks += [peer(name) for name in ("large_convnet", "lip_convnet5", "resnet9")]
    torch.manual_seed(0)
    pairs = [(frozen, torch.rand(2, *frozen.in_shape)) for frozen in networks]
    assert agreements(pairs, tmp_path) >= 2 * len(networks) - 4


def test_no_claim_is_made_of_what_is_not_finite(tmp_path: Path) -> None:
    frozen = um.freeze(um.DenseUGNN((3,), 2))
    rows = torch.tensor([[torch.nan, 0, 0], [0, torch.inf, 0], [1e300, 0, 0], [0.5, 0, 1]])
    (answers,) = ask([(frozen, [question("certify", row) for row in rows.double()])], tmp_path)
    assert [answer["label"] for answer in answers][:2] == ["-1", "-1"]
    assert [answer["radius"] for answer in answers][:3] == ["0", "0", "0"]
    assert float(answers[3]["radius"]) > 0


def gradient_of(frozen: FrozenNetwork, x: Tensor, first: int, second: int) -> Tensor:
    given = x.double()[None].requires_grad_()
    logits = frozen.in_float64()(given)
    (logits[0, first] - logits[0, second]).backward()
    assert given.grad is not None
    return given.grad.flatten()


def test_gradients_are_those_of_torch(tmp_path: Path) -> None:
    torch.manual_seed(5)
    networks = [mixed(), *map(paper, ("maxmin", "groupsort4")), peer("resnet9")]
    inputs = [torch.rand(frozen.in_shape) for frozen in networks]
    cases = [
        (frozen, [question("gradient", x, first=0, second=1)])
        for frozen, x in zip(networks, inputs, strict=True)
    ]
    for frozen, x, (found,) in zip(networks, inputs, ask(cases, tmp_path), strict=True):
        true = gradient_of(frozen, x, 0, 1)
        assert float((vector(found) - true).norm()) < 1e-9 * float(true.norm())


def test_the_closest_point_has_another_label_and_lies_beyond_the_radius(tmp_path: Path) -> None:
    """On a UGNN it is as close as that of the solver, to a few per cent."""
    torch.manual_seed(6)
    frozen = um.freeze(um.DenseUGNN((8,), 4, hidden=[8, 8]))
    x = torch.rand(8, 8)
    (answers,) = ask([(frozen, [question("closest", row) for row in x])], tmp_path)
    certificate = um.certify(frozen, x, "float64")
    solved = um.minimal_perturbation(frozen, x.double(), certificate.label, "sphere_tracing")
    for row, answer in enumerate(answers):
        point = vector(answer["point"])
        label = int(frozen.in_float64()(point[None]).argmax())
        distance = float((point - x[row].double()).norm())
        assert label == int(answer["label"]) != int(certificate.label[row])
        assert distance == pytest.approx(float(answer["distance"]), rel=1e-12)
        assert distance >= float(certificate.radius[row])
        assert distance <= 1.05 * float(solved.distance[row])


def test_a_search_counts_and_finds_nothing_inside_the_radius_and_something_far_out(
    tmp_path: Path,
) -> None:
    torch.manual_seed(7)
    frozen = um.freeze(um.DenseUGNN((8,), 4, hidden=[8, 8]))
    x = torch.rand(8)
    certificate = um.certify(frozen, x[None], "float64")
    radius, label = float(certificate.radius[0]), int(certificate.label[0])
    balls = [{"label": label, "norm": norm} for norm in (radius, 3.0 * radius)]
    questions = [question("tries", x, ball=ball, wanted=400, seconds=60) for ball in balls]
    ((inside, outside),) = ask([(frozen, questions)], tmp_path)
    assert (inside["random"], inside["gradient"], inside["found"]) == ("200", "200", None)
    assert inside["done"]
    found = outside["found"]
    assert float(found["distance"]) < 3.0 * radius
    point = vector(found["point"])
    assert int(frozen.in_float64()(point[None]).argmax()) == int(found["label"]) != label


def test_the_map_has_labels_and_radii_of_the_plane(tmp_path: Path) -> None:
    torch.manual_seed(8)
    frozen = um.freeze(um.DenseUGNN((2,), 3, hidden=[2, 2]))
    area, side = [-1.0, 2.0, -1.5, 1.5], 7
    asked = {"kind": "field", "turn": 1, "area": area, "side": side}
    (((found,)),) = ask([(frozen, [asked])], tmp_path)
    across, down = torch.linspace(-1.0, 2.0, side), torch.linspace(1.5, -1.5, side)
    points = torch.stack((across.repeat(side), down.repeat_interleave(side)), dim=1)
    logits = frozen.in_float64()(points.double())
    true = um.certify(frozen, points.double(), "float64", domain="any")
    assert torch.equal(vector(found["labels"]).long(), logits.argmax(1))
    assert torch.allclose(vector(found["radii"]), true.radius, atol=1e-6)


@pytest.mark.parametrize("std", [0.1, 1.0, 100.0])
def test_the_map_is_in_the_units_of_the_inputs(std: float, tmp_path: Path) -> None:
    """The answer of this network changes where the first coordinate is 0."""
    layers = [
        Normalize(torch.zeros(2), torch.full((2,), std)),
        Dense(torch.tensor([[0.5, 0.0], [-0.5, 0.0]]), torch.zeros(2)),
    ]
    asked = {"kind": "field", "turn": 1, "area": [-1.0, 1.0, -1.0, 1.0], "side": 9}
    (((found,)),) = ask([(FrozenNetwork(layers, (2,)), [asked])], tmp_path)
    across = torch.linspace(-1.0, 1.0, 9).double().repeat(9)
    assert torch.equal(vector(found["labels"]).long(), (across < 0).long())
    assert torch.allclose(vector(found["radii"]), across.abs(), rtol=1e-6, atol=1e-6)


def test_the_map_tells_hundreds_of_classes_apart(tmp_path: Path) -> None:
    angles = 0.003 + torch.arange(300) * (2.0 * torch.pi / 300)
    rows = torch.stack((angles.cos(), angles.sin()), dim=1)
    head = Dense(rows, torch.zeros(300))
    frozen = FrozenNetwork([head], (2,), facts={"head": "unit_rows"})
    asked = {"kind": "field", "turn": 1, "area": [-1.0, 1.0, -1.0, 1.0], "side": 8}
    (((found,)),) = ask([(frozen, [asked])], tmp_path)
    across, down = torch.linspace(-1.0, 1.0, 8), torch.linspace(1.0, -1.0, 8)
    points = torch.stack((across.repeat(8), down.repeat_interleave(8)), dim=1)
    labels = frozen.in_float64()(points.double()).argmax(1)
    assert int(labels.max()) > 255
    assert torch.equal(vector(found["labels"]).long(), labels)
