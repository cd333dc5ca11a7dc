"""What the checker proves: equal logits, honest radii, and never more than the truth."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from claims import EXAMPLES, Example, certified
from exact import EXACT
from tables import read_rows

from unitmargin.checker import arithmetic
from unitmargin.checker.arithmetic import definitions
from unitmargin.checker.layers import KINDS
from unitmargin.checker.network import Network
from unitmargin.checker.reading import CheckError, read_inputs, read_model
from unitmargin.frozen import FROZEN_LAYERS, Dense, FrozenNetwork, save
from unitmargin.frozen.profiles import PROFILES

AGREEMENT = 1e-12
"""Two float64 evaluations of logits of size 1."""

TIGHT = 1e-9
"""Largest part of a margin that float64 rounding and proved norms may cost on small networks."""


def opened(path: Path, network: FrozenNetwork, profile: str = "float64") -> Network:
    save(network, path / "model.safetensors")
    return Network(read_model(path / "model.safetensors"), profile)


def test_every_kind_of_a_file_is_known_and_met() -> None:
    assert set(KINDS) == set(FROZEN_LAYERS)
    outside = [layer for name in EXAMPLES for layer in EXAMPLES[name]().network.layers]
    met = {layer.kind for outer in outside for layer in (outer, *outer.sublayers())}
    assert met == set(KINDS)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_logits_agree_with_those_of_torch(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    example = EXAMPLES[name]()
    network = example.network.to(dtype)
    logits = network.in_float64()(example.inputs.double())
    labels = logits.argmax(1)
    proof = opened(tmp_path, network).prove(example.inputs.double().numpy(), labels.numpy())
    differences = (logits.gather(1, labels[:, None]) - logits).numpy()
    others = np.isfinite(proof.differences)
    assert others.sum() == len(logits) * (network.n_classes - 1)
    assert np.abs(proof.differences - differences)[others].max() <= AGREEMENT
    assert (proof.label == labels.numpy()).all()
    # ... and within what the checker says of its own rounding and that of torch.
    assert (np.abs(proof.differences - differences).T[others.T] <= proof.tolerance.max()).all()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_honest_radii_are_proved(name: str, profile: str, tmp_path: Path) -> None:
    folder = certified(tmp_path, EXAMPLES[name](), profile)
    rows = read_rows(folder.certificates_file)
    labels = np.array([int(row["predicted"]) for row in rows])
    radii = np.array([float(row["radius"]) for row in rows])
    model = read_model(folder.model_file)
    proof = Network(model, profile).prove(read_inputs(folder.inputs_file, model.in_shape), labels)
    assert (radii > 0).sum() >= len(radii) // 2
    assert (radii <= proof.radius).all()
    if profile == "float64":
        assert (proof.radius <= radii * (1 + TIGHT) + TIGHT).all()


@pytest.mark.parametrize("name", EXACT)
def test_no_more_than_the_true_distance_is_proved(name: str, tmp_path: Path) -> None:
    truth = EXACT[name](torch.float64)
    if {layer.kind for layer in truth.network.layers} - set(KINDS):
        return  # a layer that no file may hold
    labels = truth.network(truth.inputs).argmax(1).numpy()
    proof = opened(tmp_path, truth.network).prove(truth.inputs.double().numpy(), labels)
    distances = truth.distance(truth.inputs).numpy()
    assert (proof.radius <= distances).all()
    if truth.tight:
        assert (proof.radius >= distances * (1 - TIGHT) - TIGHT).all()


def test_another_label_is_never_proved(tmp_path: Path) -> None:
    example = EXAMPLES["dense"]()
    network = opened(tmp_path, example.network)
    x = example.inputs.double().numpy()
    label = network.prove(x, np.zeros(len(x), dtype=np.int64)).label
    proofs = [network.prove(x, (label + k) % 4) for k in range(4)]
    assert (proofs[0].radius > 0).all()
    assert all((proof.radius == 0).all() for proof in proofs[1:])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_numbers_beyond_reason_prove_nothing(tmp_path: Path, value: float) -> None:
    network = opened(tmp_path, EXAMPLES["dense"]().network)
    x = np.full((2, 6), value)
    with np.errstate(all="ignore"):
        proof = network.prove(x, np.zeros(2, dtype=np.int64))
    assert (proof.radius == 0).all() or value == 1e200
    single = opened(tmp_path, EXAMPLES["dense"]().network, "float32")
    with np.errstate(all="ignore"):
        assert (single.prove(x, np.zeros(2, dtype=np.int64)).radius == 0).all()


@pytest.mark.parametrize("name", EXAMPLES)
def test_shorter_arithmetic_stays_within_the_tolerance(name: str, tmp_path: Path) -> None:
    example: Example = EXAMPLES[name]()
    network = opened(tmp_path, example.network, "float32")
    deployed = example.network.deployed("float32")
    x = torch.cat((example.inputs, 1e4 * example.inputs, 1e-4 * example.inputs))
    logits = torch.cat([deployed(x[i : i + 7]).double() for i in range(0, len(x), 7)])
    labels = logits.argmax(1)
    proof = network.prove(x.double().numpy(), labels.numpy())
    differences = (logits.gather(1, labels[:, None]) - logits).numpy()
    gap = np.abs(np.where(np.isfinite(proof.differences), proof.differences - differences, 0.0))
    ratio = gap.max(1) / proof.tolerance
    assert ratio.max() < 1.0
    assert ratio.max() > 1e-4  # a bound that no error comes near would prove nothing


def test_float32_profiles_need_float32_weights(tmp_path: Path) -> None:
    weights = Dense(torch.full((2, 3), 0.1, dtype=torch.float64), torch.zeros(2).double())
    save(FrozenNetwork([weights], (3,)), tmp_path / "model.safetensors")
    model = read_model(tmp_path / "model.safetensors")
    assert Network(model, "float64").profile.name == "float64"
    with pytest.raises(CheckError, match="float32 cannot hold the weights of a layer dense"):
        Network(model, "float32")


def test_unknown_profiles_and_layers_are_refused(tmp_path: Path) -> None:
    save(EXAMPLES["dense"]().network, tmp_path / "model.safetensors")
    model = read_model(tmp_path / "model.safetensors")
    with pytest.raises(CheckError, match="unknown profile 'float16', known: float64"):
        Network(model, "float16")
    first, *others = model.layers
    for layer, message in (
        (("relu", {}, {}), "unknown layer kind 'relu', known: dense"),
        ((["dense"], {}, {}), r"unknown layer kind \['dense'\]"),
        (("abs", {"size": 2}, {}), "configuration"),
        (("groupsort", {"size": 2.0}, {}), "size 2.0 of a layer groupsort"),
        (("groupsort", {"size": True}, {}), "size True of a layer groupsort"),
        (("dense", {}, {}), r"tensors \[\] of a layer dense"),
        (("normalize", {}, first[2] | {"std": -first[2]["std"]}), "std"),
        (("dense", {}, {"weight": np.ones((2, 3)), "bias": np.ones(3)}), "bias"),
        (("dense", {}, {"weight": np.ones((6, 7)), "bias": np.ones(6)}), "7 inputs behind"),
    ):
        with pytest.raises(CheckError, match=message):
            Network(model._replace(layers=[layer, *others]), "float64")
    with pytest.raises(CheckError, match="normalisation must be the first layer"):
        Network(model._replace(layers=[first, first, *others]), "float64")
    for layers in ([], [first]):
        with pytest.raises(CheckError, match="the last layer must be dense"):
            Network(model._replace(layers=layers), "float64")
    single = ("dense", {}, {"weight": np.ones((1, 6)), "bias": np.ones(1)})
    with pytest.raises(CheckError, match="one class has no boundary"):
        Network(model._replace(layers=[single], classes=["a"]), "float64")
    with pytest.raises(CheckError, match="4 class names for 1 classes"):
        Network(model._replace(layers=[single]), "float64")


def test_the_profiles_are_the_checker_s_own_and_those_of_the_library() -> None:
    assert definitions() == {name: profile.definition() for name, profile in PROFILES.items()}
    for name, profile in PROFILES.items():
        assert arithmetic.PROFILES[name].unit == profile.unit


@pytest.mark.parametrize("profile", ["float32", "float64"])
def test_a_radius_by_hand(profile: str, tmp_path: Path) -> None:
    """Two hidden layers with S = a = 2 and 4, |b| = 5 and 2: every term of (C9) to (C12)."""
    layers = [
        Dense(2.0 * torch.eye(2), torch.tensor([3.0, 4.0])),
        Dense(4.0 * torch.eye(2), torch.tensor([2.0, 0.0])),
    ]
    head = Dense(torch.tensor([[4.0, 0.0], [1.0, 0.0]]), torch.tensor([0.5, -0.25]))
    network = opened(tmp_path, FrozenNetwork([*layers, head], (2,)), profile)
    proof = network.prove(np.array([[30.0, 40.0]]), np.array([0]))
    wide, unit = 2.0**-53, PROFILES[profile].unit
    z = np.array([30.0, 40.0])
    own = far = growth = 0.0  # errors, and that of the deployed one with the radius
    reach, sizes = 1.0, [50.0]
    for norm, bias in ((2.0, np.array([3.0, 4.0])), (4.0, np.array([2.0, 0.0]))):
        offset = math.hypot(*bias)
        far, arriving = norm * far, sizes[-1] + own + far
        own = norm * own + 3 * wide * (norm * sizes[-1] + offset)
        far += 3 * unit * (norm * arriving + offset)
        growth = norm * growth + 3 * unit * norm * (reach + growth)
        reach *= norm
        z = norm * z + bias
        sizes.append(math.hypot(*z))
    margin = 3.0 * z[0] + 0.75
    doubt = 3.0 * own + 4 * wide * (5.0 * sizes[-1] + 0.75 + margin)
    doubt += 3.0 * far + 3 * unit * (5.0 * (sizes[-1] + own + far) + 0.75)
    steep = 3.0 * reach + 3.0 * growth + 3 * unit * 5.0 * (reach + growth)
    assert proof.margin[0] == margin
    assert proof.tolerance[0] == pytest.approx(doubt, rel=1e-5, abs=0.0)
    assert proof.radius[0] == pytest.approx((margin - doubt) / steep, rel=1e-11)


def test_nothing_is_proved_near_overflow(tmp_path: Path) -> None:
    """Between 2^100 and 2^900 float64 is safe and float32 is not."""
    network = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,))
    x, label = np.array([[2.0**110, 0.0]]), np.array([0])
    assert opened(tmp_path, network, "float32").prove(x, label).radius[0] == 0.0
    assert opened(tmp_path, network, "float64").prove(x, label).radius[0] > 2.0**109
    assert opened(tmp_path, network, "float32").prove(x * 2.0**-20, label).radius[0] > 2.0**89
