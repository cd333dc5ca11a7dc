"""Mixing layers in the checker: by hand, by their definitions, and claims of whole networks."""

from pathlib import Path

import numpy as np
import pytest
import torch
from claims import EXAMPLES, Example, certified
from slicing import ARRANGED, matrix_of, mixing, slices
from tables import read_rows, write_rows

from unitmargin.checker import CheckError, arithmetic, check
from unitmargin.checker.arithmetic import UNIT
from unitmargin.checker.layers import KINDS, build
from unitmargin.checker.mixing import MIXING_KINDS
from unitmargin.checker.step import Step
from unitmargin.frozen.mixing import MIXINGS, Mixing
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.slices import Arrangement
from unitmargin.models import build_model, freeze
from unitmargin.steps.check import check_files

CLOSE = 1e-9

ROUNDING = 1e-13
"""Sums of up to twenty float64 products of numbers of size 1."""

SINGLE = arithmetic.PROFILES["float32"]

RAISED = 1e-6
"""Relative increase of a provable radius that must not pass."""

HADAMARD = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
"""Twice an orthogonal matrix; that of its absolute values has norm 4."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def g(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def opened(layer: Mixing) -> Step:
    tensors = {name: tensor.double().numpy() for name, tensor in layer.state_dict().items()}
    return build(SINGLE, layer.kind, layer.configuration(), tensors)


def test_every_kind_is_known() -> None:
    assert set(MIXING_KINDS) == {layer.kind for layer in MIXINGS.values()}


@every
def test_a_layer_is_that_of_its_definition(arrangement: Arrangement, channels: int) -> None:
    layer = mixing(arrangement, channels)
    step, x = opened(layer), torch.randn(3, channels, *arrangement.map_size, dtype=torch.float64)
    dense, shift, places = matrix_of(arrangement, channels, layer.weight, layer.bias)
    plain = x.flatten(1) @ dense.mT + shift
    folded = torch.tensor([places[output] < layer.absolute for output in range(len(dense))])
    expected = torch.where(folded, plain.abs(), plain)
    found = step.evaluate(x.numpy())
    assert np.abs(found.reshape(3, -1) - expected.numpy()).max() <= ROUNDING
    assert step.shapes(tuple(x.shape[1:])) == [found.shape[1:]]
    assert found.shape == layer(x).shape
    assert step.evaluate(x[:0].numpy()).shape == (0, *found.shape[1:])


@every
def test_places_are_permutations(arrangement: Arrangement, channels: int) -> None:
    """Seen through matrices that number their outputs."""
    layer = mixing(arrangement, channels, absolute=0)
    layer.weight.copy_(torch.eye(layer.weight.shape[1]))
    layer.bias.zero_()
    count = channels * arrangement.pixels
    x = np.arange(float(count)).reshape(1, channels, *arrangement.map_size)
    found = opened(layer).evaluate(x).ravel()
    for _, inside, outside in slices(arrangement, channels):
        assert found[outside].tolist() == [float(entry) for entry in inside]


def test_errors_by_hand() -> None:
    """(C15): four terms and a bias an output; the bias is that of both windows."""
    step = KINDS["window_mixing"].make(
        SINGLE, absolute=1, map_size=[2, 4], size=2, shift=0,
        weight=HADAMARD[None], bias=np.array([[3.0, 4.0, 0.0, 0.0]]),
    )  # fmt: skip
    bias = 5.0 * 2.0**0.5
    assert step.norm == pytest.approx(2.0, rel=CLOSE, abs=0.0)
    assert step.shift == pytest.approx(bias, rel=CLOSE, abs=0.0)
    assert step.growth == pytest.approx((4.0, bias), rel=CLOSE, abs=0.0)
    for error, unit in ((step.deployed, SINGLE.unit), (step.own, UNIT)):
        assert tuple(error) == pytest.approx(
            (g(5, unit) * 4.0, g(5, unit) * bias, 0.0), rel=CLOSE, abs=0.0
        )


def test_own_sums_are_shorter() -> None:
    """Of 100 products in two sums of 64 and 36: at most 65 roundings a product, and the bias."""
    step = KINDS["position_mixing"].make(
        SINGLE, absolute=0, map_size=[1, 1], weight=np.eye(100)[None], bias=np.zeros((1, 100))
    )
    assert step.own.slope == pytest.approx(g(66, UNIT), rel=1e-6, abs=0.0)
    assert step.deployed.slope == pytest.approx(g(101, SINGLE.unit), rel=1e-6, abs=0.0)


def test_underflow_is_paid_for() -> None:
    step = KINDS["window_mixing"].make(
        SINGLE, absolute=0, map_size=[2, 4], size=2, shift=0, weight=HADAMARD[None],
        bias=np.zeros((1, 4)),
    )  # fmt: skip
    least = 4.0 * (4 + 4) * SINGLE.smallest * 8.0**0.5  # (19)
    assert least <= step.deployed.constant <= 1e4 * least


def test_norms_are_those_of_the_largest_matrix() -> None:
    weight = np.array([1.0, 4.0, 0.5])[:, None, None] * HADAMARD
    step = KINDS["group_mixing"].make(
        SINGLE, absolute=0, map_size=[2, 2], size=1, weight=weight, bias=np.ones((3, 4))
    )
    assert step.norm == pytest.approx(8.0, rel=CLOSE, abs=0.0)
    assert step.growth[0] == pytest.approx(16.0, rel=CLOSE, abs=0.0)
    assert step.shift == pytest.approx(12.0**0.5, rel=CLOSE, abs=0.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_claims_of_a_mixing_network_are_confirmed_and_raised_ones_are_not(
    profile: str, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    network = freeze(build_model("mixing_ugnn", (3, 8, 8), 4))
    for layer in network.modules():
        if isinstance(layer, Mixing):
            layer.bias.normal_(std=0.05)
    run = certified(tmp_path, Example(network, torch.rand(12, 3, 8, 8)), profile)
    line, confirmed = check_files(run.path)
    assert confirmed
    assert line.startswith("check: 12 certificates confirmed, 0 not")
    files = (run.certificates_file, run.certificate_facts_file, run.model_file, run.inputs_file)
    verdicts = check(*files)[0]
    assert [verdict.reason for verdict in verdicts] == [""] * 12
    positive = [verdict for verdict in verdicts if verdict.certificate.radius > 0]
    assert len(positive) >= 10
    rows = read_rows(run.certificates_file)
    row = positive[0].certificate.row
    rows[row]["radius"] = repr(positive[0].provable * (1 + RAISED))
    write_rows(run.certificates_file, rows)
    failed = [verdict for verdict in check(*files)[0] if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [row]
    assert failed[0].reason.startswith("radius ")


def test_a_flipped_bit_of_a_weight_is_found_by_the_hash(tmp_path: Path) -> None:
    run = certified(tmp_path, EXAMPLES["mixed"]())
    assert check_files(run.path)[1]
    content = bytearray(run.model_file.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    for place in range(begin, len(content), (len(content) - begin) // 20):
        flipped = content.copy()
        flipped[place] ^= 1
        run.model_file.write_bytes(flipped)
        with pytest.raises(CheckError, match="is not the one|SHA-256|hash"):
            check_files(run.path)
