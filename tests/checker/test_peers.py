"""Branches and average pools in the checker: by hand, refused, and in whole networks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims import Example, certified
from peers import SHAPES, inputs, peer
from tables import read_rows, write_rows

from unitmargin.checker import arithmetic, check
from unitmargin.checker.arithmetic import UNIT
from unitmargin.checker.layers import KINDS
from unitmargin.checker.network import Network
from unitmargin.checker.reading import CheckError, read_model
from unitmargin.frozen.profiles import PROFILES

CLOSE = 1e-9

SINGLE = arithmetic.PROFILES["float32"]

RAISED = 1e-6
"""Relative increase of a provable radius that must not pass."""


def g(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def test_scaled_average_pool() -> None:
    step = KINDS["scaled_average_pool"].make(SINGLE, size=2)
    assert step.norm == 1.0
    assert step.deployed.slope == pytest.approx(g(5, SINGLE.unit), rel=CLOSE, abs=0.0)
    assert step.own.slope == pytest.approx(g(5, UNIT), rel=CLOSE, abs=0.0)
    assert step.growth[0] == 2.0
    assert step.evaluate(np.arange(8.0).reshape(1, 1, 2, 4)).tolist() == [[[[5.0, 9.0]]]]


@pytest.mark.parametrize(("size", "half"), [(1, 1), (2, 2), (3, 5)])
def test_l2_pool(size: int, half: int) -> None:
    step = KINDS["l2_pool"].make(SINGLE, size=size)
    assert step.norm == 1.0
    assert step.deployed.slope == pytest.approx(g(half + 5, SINGLE.unit), rel=CLOSE, abs=0.0)
    assert step.own.slope == pytest.approx(g(half + 2, UNIT), rel=CLOSE, abs=0.0)
    assert step.growth == (1.0, size**2)
    assert step.deployed.constant >= SINGLE.smallest
    assert step.own.constant >= 2.0**-1022
    assert step.shapes((2, 2 * size, size)) == [(2, 2, 1)]
    for shape in ((4,), (1, 2 * size + 1, 3 * size + 1)):
        if shape == (4,) or size > 1:
            with pytest.raises(ValueError, match="map"):
                step.shapes(shape)


@pytest.mark.parametrize("scale", [2.0**-1074, 2.0**-1000, 1.0, 2.0**1000])
def test_norms_of_windows_of_every_magnitude(scale: float) -> None:
    x = np.array([[3.0, 0.0, 0.0, 0.0, 8.0, -8.0], [0.0, -4.0, 0.0, 0.0, 8.0, 8.0]])
    found = KINDS["l2_pool"].make(SINGLE, size=2).evaluate(scale * x[None, None])
    assert (found / scale).tolist() == [[[[5.0, 0.0, 16.0]]]]


def layer(kind: str, **configuration: Any) -> dict[str, Any]:
    return {"kind": kind, "configuration": configuration}


TENSORS = {
    "share": np.array(0.25),
    "branch.0.weight": np.array([[2.0]]),
    "branch.0.bias": np.array([3.0]),
    "branch.1.weight": np.array([[4.0]]),
    "branch.1.bias": np.array([5.0]),
}
"""0.25 x + 0.75 (4 (2 x + 3) + 5)"""


def by_hand(first: tuple[float, float], unit: float, own: float) -> tuple[float, float]:
    """Slope and constant, if each dense layer rounds its terms and its output by these shares."""
    inside, outside = first

    def made(size: float, shift: float, weight: float, bias: float) -> tuple[float, float]:
        slope, constant = inside * weight * size, inside * (weight * shift + bias)
        return (
            slope + outside * (weight * size + slope),
            constant + outside * (weight * shift + bias + constant),
        )

    one = made(1.0, 0.0, 2.0, 3.0)
    two = made(2.0 + one[0], 3.0 + one[1], 4.0, 5.0)
    slope, constant = 4.0 * one[0] + two[0], 4.0 * one[1] + two[1]
    both = g(3, own)
    return (
        0.75 * slope + both * (0.25 + 0.75 * (8.0 + slope)),
        0.75 * constant + both * 0.75 * (17.0 + constant),
    )


def test_convex_combination() -> None:
    step = KINDS["convex_combination"].make(SINGLE, branch=[layer("dense")] * 2, **TENSORS)
    assert step.norm == pytest.approx(0.25 + 0.75 * 8.0, rel=CLOSE, abs=0.0)
    assert step.shift == pytest.approx(0.75 * 17.0, rel=CLOSE, abs=0.0)
    assert step.evaluate(np.array([[1.0]])).tolist() == [[0.25 + 0.75 * 25.0]]
    expected = by_hand((g(2, SINGLE.unit), 0.0), SINGLE.unit, SINGLE.unit)
    assert step.deployed[:2] == pytest.approx(expected, rel=CLOSE, abs=0.0)
    assert step.own[:2] == pytest.approx(by_hand((g(2, UNIT), 0.0), UNIT, UNIT), rel=CLOSE, abs=0.0)
    assert step.growth >= (8.0, 17.0)


@pytest.mark.parametrize(
    ("branch", "change", "message"),
    [
        ([layer("relu")], {}, "unknown layer kind 'relu'"),
        ([layer("normalize")], {}, "cannot hold a layer 'normalize'"),
        ([{"kind": "abs"}], {}, "configuration"),
        ([layer("abs", size=2)], {}, "size"),
        ([layer("dense")], {}, "surplus tensors"),
        ([layer("dense")] * 3, {}, "tensors"),
        ([layer("dense")] * 2, {"share": np.array(1.5)}, "share"),
        ([layer("dense")] * 2, {"share": np.array(np.nan)}, "share"),
        ([layer("dense")] * 2, {"share": np.array([0.5])}, "share"),
        (3, {}, "list"),
    ],
)
def test_an_inconsistent_branch_is_refused(
    branch: Any, change: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    model = read_model(certified(tmp_path, small()).model_file)
    combination = ("convex_combination", {"branch": branch}, TENSORS | change)
    with pytest.raises(CheckError, match=f"layers of the model are.*{message}"):
        Network(model._replace(layers=[combination, model.layers[-1]]), "float64")


def small() -> Example:
    network = peer("large_convnet")
    return Example(network, inputs(network, 2))


def test_a_branch_that_changes_the_shape_is_refused() -> None:
    """A sum that broadcasts has another norm."""
    tensors = {
        "share": np.array(0.5),
        "branch.0.weight": np.ones((1, 3)),
        "branch.0.bias": np.zeros(1),
    }
    step = KINDS["convex_combination"].make(SINGLE, branch=[layer("dense")], **tensors)
    with pytest.raises(ValueError, match=r"turns shape \(3,\) into \(1,\)"):
        step.shapes((3,))


def test_a_dense_layer_takes_vectors_alone() -> None:
    step = KINDS["dense"].make(SINGLE, weight=np.eye(3), bias=np.zeros(3))
    assert step.shapes((3,)) == [(3,)]
    for shape in ((2, 3), (4,)):
        with pytest.raises(ValueError, match=r"3 inputs behind activations \("):
            step.shapes(shape)


CASES = [(name, None, False) for name in SHAPES] + [
    ("resnet9", "lln", False),
    ("resnet9", None, True),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("name", "head", "poisoned"), CASES)
def test_certificates_of_peers_are_confirmed_and_raised_ones_are_not(
    name: str, head: str | None, poisoned: bool, profile: str, tmp_path: Path
) -> None:
    network = peer(name, head, poisoned)
    run = certified(tmp_path, Example(network, inputs(network, 12)), profile)
    files = (run.certificates_file, run.certificate_facts_file, run.model_file, run.inputs_file)
    verdicts = check(*files)[0]
    assert [verdict.reason for verdict in verdicts] == [""] * 12
    positive = [verdict for verdict in verdicts if verdict.certificate.radius > 0]
    if poisoned and profile != "float64":
        return  # the slack is larger than every margin
    assert len(positive) >= 10
    rows = read_rows(run.certificates_file)
    row = positive[0].certificate.row
    rows[row]["radius"] = repr(positive[0].provable * (1 + RAISED))
    write_rows(run.certificates_file, rows)
    failed = [verdict for verdict in check(*files)[0] if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [row]
    assert failed[0].reason.startswith("radius ")
