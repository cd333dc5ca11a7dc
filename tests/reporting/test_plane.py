"""The plane: regions of every class, discs of the exhibits."""

import xml.etree.ElementTree as ElementTree

import torch

from unitmargin.certificates.exhibits import Exhibit
from unitmargin.certificates.plane import sample_plane
from unitmargin.data import Samples
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.reporting.plane import decision_regions

POINTS = torch.tensor([[-1.0, 0.0], [1.0, 0.5], [0.25, 0.0]])
LABELS = torch.tensor([0, 1, 0])


def half_planes(classes: tuple[str, str]) -> FrozenNetwork:
    weight = torch.tensor([[-0.5, 0.0], [0.5, 0.0]])
    return FrozenNetwork([Dense(weight, torch.zeros(2))], (2,), classes)


def exhibit(row: int, predicted: str) -> Exhibit:
    point = POINTS[row].double()
    boundary = point * torch.tensor([0.0, 1.0])
    distance = float(point[0].abs())
    return Exhibit(
        index=row,
        why="typical radius",
        label="a",
        predicted=predicted,
        other="b",
        radius=distance,
        distance=distance,
        original=point,
        adversarial=boundary,
    )


def test_regions_and_names_are_drawn_and_named() -> None:
    exhibits = [exhibit(0, "a"), exhibit(2, "b")]
    classes = ("a", "$b$ < c")
    plane = sample_plane(half_planes(classes), Samples(POINTS, LABELS), exhibits)
    figure = decision_regions(plane, classes, exhibits)
    root = ElementTree.fromstring(figure)
    assert "2 certified discs, 2 of them with" in root.attrib["aria-label"]
    assert "$b$ &lt; c" in figure
    assert "var(--wrong)" in figure
    assert "http" not in figure


def test_a_ray_that_met_no_other_class_has_no_end() -> None:
    met = exhibit(0, "a")
    missed = met.model_copy(update={"distance": None})
    plane = sample_plane(half_planes(("a", "b")), Samples(POINTS, LABELS), [met])
    with_end, without = (decision_regions(plane, ("a", "b"), [one]) for one in (met, missed))
    assert len(without) < len(with_end)
    assert "1 certified disc, 0 of them with" in without


def test_long_names_stand_below_each_other_in_the_figure() -> None:
    classes = ("building windows, float processed", "x" * 81)
    plane = sample_plane(half_planes(classes), Samples(POINTS, LABELS), [])
    root = ElementTree.fromstring(decision_regions(plane, classes, []))
    texts = {
        "".join(text.itertext()).strip(): text.attrib
        for text in root.iter()
        if text.tag.endswith("text")
    }
    assert classes[0] in texts
    assert "x" * 39 + "…" in texts
    heights = [texts[name] for name in (classes[0], "x" * 39 + "…")]
    assert heights[0] != heights[1]


def test_a_class_that_is_never_predicted_has_no_region() -> None:
    network = FrozenNetwork(
        [Dense(torch.zeros(2, 2), torch.tensor([1.0, 0.0]))], (2,), ("always", "never")
    )
    plane = sample_plane(network, Samples(POINTS, LABELS), [])
    assert ElementTree.fromstring(decision_regions(plane, network.classes, [])).tag == "svg"


def test_a_key_says_that_colours_come_again() -> None:
    classes = tuple(f"class {number}" for number in range(13))
    angles = torch.arange(13) * (2.0 * torch.pi / 13)
    head = Dense(torch.stack((angles.cos(), angles.sin()), dim=1), torch.zeros(13))
    plane = sample_plane(FrozenNetwork([head], (2,), classes), Samples(POINTS, LABELS), [])
    figure = decision_regions(plane, classes, [])
    assert "class 9" in figure
    assert "class 10" not in figure
    assert "3 more: colours repeat" in figure
