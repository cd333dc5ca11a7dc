"""The deployed network: what it accepts, and constants that follow its weights."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from exact import affine, box, polyhedron, stretched_affine, unit_affine
from torch import nn

from unitmargin.auditing.audit import audit
from unitmargin.certificates.certify import certify
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.deployment.export import export_onnx
from unitmargin.frozen import Dense, FrozenNetwork, load, save
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.rounding import RoundingBounds
from unitmargin.layers.activations import Abs, GroupSort
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten
from unitmargin.models import UGNN, Classifier, MixingUGNN, freeze

EXACTNESS = 1e-10
"""Proved bounds of a few norms of size 1 exceed them by a few units of 2^-40."""


def test_constants_are_row_distances_times_layer_norms() -> None:
    network = stretched_affine(torch.float32).network
    rows = network.head.weight.double()
    stretch = network.layers[0].norm()
    assert stretch == pytest.approx(2.0, abs=1e-6)
    constants = network.pair_constants()
    for i in range(network.n_classes):
        for j in range(network.n_classes):
            expected = float((rows[i] - rows[j]).norm()) * stretch
            assert float(constants[i, j]) == pytest.approx(expected, abs=EXACTNESS)


def test_the_norms_of_all_layers_are_multiplied() -> None:
    head = unit_affine(in_shape=(3,), classes=3).network.head
    plain = FrozenNetwork([head], (3,)).pair_constants()
    zeros = torch.zeros(3, dtype=torch.float64)
    double = Dense(2.0 * torch.eye(3, dtype=torch.float64), zeros)
    half = Dense(0.5 * torch.eye(3, dtype=torch.float64), zeros)
    for layers, factor in (([double, double], 4.0), ([double, half], 1.0), ([half, half], 0.25)):
        network = FrozenNetwork([*layers, head], (3,))
        assert (network.pair_constants() - factor * plain).abs().max() <= EXACTNESS


def test_the_normalisation_enters_the_constants() -> None:
    head = unit_affine(in_shape=(3,), classes=3).network.head
    plain = FrozenNetwork([head], (3,))
    for std in ([0.25, 0.25, 0.25], [0.5, 0.25, 4.0]):
        deviation = torch.tensor(std, dtype=torch.float64)
        layer = Normalize(torch.zeros(3, dtype=torch.float64), deviation)
        network = FrozenNetwork([layer, head], (3,))
        assert network.input_scale == 4.0
        expected = 4.0 * plain.pair_constants()
        assert (network.pair_constants() - expected).abs().max() <= EXACTNESS
    assert plain.input_scale == 1.0


def scale_in_place(network: FrozenNetwork) -> None:
    network.head.weight.mul_(2.0)


def scale_data(network: FrozenNetwork) -> None:
    network.head.weight.data.mul_(2.0)


def scale_through_numpy(network: FrozenNetwork) -> None:
    network.head.weight.numpy()[:] *= 2.0


def replace_buffer(network: FrozenNetwork) -> None:
    network.head.weight = 2.0 * network.head.weight


def load_state(network: FrozenNetwork) -> None:
    state = network.state_dict()
    last = f"network.layers.{len(network.layers) - 1}.weight"
    network.load_state_dict({**state, last: 2.0 * state[last]})


def replace_layer(network: FrozenNetwork) -> None:
    network.layers[-1] = Dense(2.0 * network.head.weight, network.head.bias)


def replace_network(network: FrozenNetwork) -> None:
    other = copy.deepcopy(network.network)
    other.head.weight.mul_(2.0)
    network.network = other


def scale_a_parameter(network: FrozenNetwork) -> None:
    """A buffer that was made a parameter, certified, and then changed."""
    head = network.head
    head.load_state_dict({k: nn.Parameter(v) for k, v in head.state_dict().items()}, assign=True)
    assert not list(head.buffers())
    certify(network, torch.zeros(1, *network.in_shape, dtype=network.dtype))
    head.weight.data.mul_(2.0)


CHANGES: list[Callable[[FrozenNetwork], None]] = [
    scale_in_place, scale_data, scale_through_numpy, replace_buffer, load_state, replace_layer,
    replace_network, scale_a_parameter,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("change", CHANGES)
def test_constants_and_certificates_follow_every_change(
    change: Callable[[FrozenNetwork], None], dtype: torch.dtype
) -> None:
    truth = affine(dtype)
    network, x = truth.network, truth.inputs
    before = network.pair_constants().clone()
    certify(network, x)  # fills whatever is kept
    change(network)
    assert (network.pair_constants() - 2.0 * before).abs().max() <= EXACTNESS
    fresh = FrozenNetwork(list(network.layers), network.in_shape)
    assert torch.equal(certify(network, x).radius, certify(fresh, x).radius)
    assert torch.equal(network.in_float64()(x.double()), fresh.in_float64()(x.double()))


def test_a_replaced_layer_without_weights_is_noticed() -> None:
    truth = box(torch.float32)
    certify(truth.network, truth.inputs)
    truth.network.layers[3] = Abs()
    fresh = FrozenNetwork(list(truth.network.layers), (3,))
    assert torch.equal(
        certify(truth.network, truth.inputs).margin, certify(fresh, truth.inputs).margin
    )


def test_a_changed_configuration_is_noticed() -> None:
    truth = polyhedron(torch.float32)
    certify(truth.network, truth.inputs)
    before = truth.network(truth.inputs)
    sort = truth.network.layers[1]
    assert isinstance(sort, GroupSort)
    sort.group = 2
    fresh = FrozenNetwork(list(truth.network.layers), (4,))
    assert not torch.equal(truth.network(truth.inputs), before)
    assert torch.equal(
        certify(truth.network, truth.inputs).margin, certify(fresh, truth.inputs).margin
    )


def test_a_layer_that_stands_twice_is_two() -> None:
    twice = Dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]), torch.zeros(2))
    head = Dense(torch.tensor([[0.5, 0.0], [-0.5, 0.0]]), torch.zeros(2))
    network, x = FrozenNetwork([twice, twice, head], (2,)), torch.rand(5, 2)
    certify(network, x)
    del network.layers[0]
    fresh = FrozenNetwork([twice, head], (2,))
    assert torch.equal(certify(network, x).radius, certify(fresh, x).radius)


@pytest.mark.parametrize("kind", [UGNN, MixingUGNN])
def test_constants_are_proved_whatever_the_default_device(
    kind: type[Classifier], tmp_path: Path
) -> None:
    frozen = freeze(kind(in_shape=(1, 16, 16), n_classes=3))
    x, file = torch.rand(2, 1, 16, 16), tmp_path / "model.safetensors"
    expected = certify(copy.deepcopy(frozen), x)
    with torch.device("meta"):  # stands for a GPU: nothing can be computed on it
        save(frozen, file)
        export_onnx(frozen, tmp_path / "model.onnx")
        certify(load(file), x)
        found = certify(frozen, x)
        audit(frozen, x)
        closest_adversarial(frozen, x)
    assert torch.equal(found.radius, expected.radius)


def test_bounds_are_copied_for_those_who_ask_for_them_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A copy takes the square of the classes: seconds of a thousand small batches."""
    frozen, copied = unit_affine(torch.float64).network, []
    monkeypatch.setattr(RoundingBounds, "copied", lambda bounds: copied.append(bounds) or bounds)
    for _ in range(3):
        certify(frozen, torch.rand(1, *frozen.in_shape, dtype=torch.float64))
    assert copied == []
    frozen.proof(PROFILES["float64"])
    assert len(copied) == 1


def test_rounding_to_another_dtype_is_measured_again() -> None:
    network = unit_affine(torch.float64).network
    exact = network.pair_constants().clone()
    network.float()
    rounded = network.pair_constants()
    assert network.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    network.double()
    assert torch.equal(network.pair_constants(), rounded)


def test_in_float64_evaluates_the_stored_weights() -> None:
    truth = unit_affine(torch.float32)
    wide = truth.network.in_float64()
    assert wide.dtype == torch.float64
    assert torch.equal(wide.head.weight, truth.network.head.weight.double())
    assert truth.network.dtype == torch.float32
    double = unit_affine(torch.float64).network
    assert torch.equal(double.in_float64().head.weight, double.head.weight)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_plain_call_gives_the_logits_that_are_certified(profile: str) -> None:
    """In float32 the two largest logits of the first input are equal, in float64 they are not."""
    weight = torch.tensor([[1.0, 0.0], [1.0, 2.0**-30], [0.0, 0.0]])
    layers = [Dense(weight, torch.zeros(3))]
    frozen = FrozenNetwork(layers, (2,), profile=profile)
    x = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    logits, certificate = frozen(x), certify(frozen, x)
    assert logits.dtype == PROFILES[profile].dtype
    assert certificate.label.tolist() == logits.argmax(1).tolist()
    assert certificate.label.tolist() == ([1, 1] if profile == "float64" else [0, 1])
    assert torch.equal(certificate.label, certify(frozen, x, profile).label)
    assert torch.equal(frozen(x, "float32"), frozen.network(x))
    probe = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(frozen(probe)[:, 1].sum(), probe)
    assert torch.equal(gradient, weight[1].expand(2, 2))


def test_the_plain_call_judges_its_inputs() -> None:
    frozen = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,), profile="float32")
    with pytest.raises(ValueError, match=r"shape \(batch, 2\), got \(1, 3\)"):
        frozen(torch.zeros(1, 3))
    third = torch.full((1, 2), 1 / 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="numbers for the profile float32, got torch.float64 ones"):
        frozen(third)
    assert frozen(third, "float64").dtype == torch.float64
    with pytest.raises(ValueError, match="profile must be one of float64"):
        frozen(third, "float16")
    with pytest.raises(ValueError, match="profile must be one of float64"):
        FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,), profile="float16")


def test_who_edits_a_copy_edits_nothing_that_is_certified() -> None:
    frozen = unit_affine(torch.float32).network
    x = torch.rand(3, 2, 2, 3)
    before = certify(frozen, x)
    for copied in (frozen.deployed(), frozen.in_float64()):
        copied.head.weight.mul_(100.0)
    frozen.pair_constants().mul_(0.01)
    bounds = frozen.proof(PROFILES["float64"]).bounds
    for handed_out in (bounds.lipschitz, bounds.alpha, bounds.beta):
        handed_out.mul_(0.0)
    after = certify(frozen, x)
    assert torch.equal(before.radius, after.radius)
    assert torch.equal(before.margin, after.margin)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))]
)
def test_a_copy_of_what_has_certified_proves_its_own_weights(
    copied: Callable[[FrozenNetwork], FrozenNetwork],
) -> None:
    network, x = stretched_affine(torch.float32).network, torch.rand(5, 6)
    radius = certify(network, x).radius
    other = copied(network)
    assert torch.equal(certify(other, x).radius, radius)
    with torch.no_grad():
        other.head.weight.mul_(2.0)
    torch.testing.assert_close(other.pair_constants(), 2.0 * network.pair_constants())
    assert torch.equal(certify(network, x).radius, radius)


def test_nothing_is_trainable() -> None:
    network = unit_affine().network
    assert not list(network.parameters())
    assert not any(buffer.requires_grad for buffer in network.buffers())


def test_the_last_layer_must_be_dense() -> None:
    with pytest.raises(ValueError, match="last layer must be a Dense head, got Flatten"):
        FrozenNetwork([Flatten()], (4,))
    with pytest.raises(ValueError, match="got NoneType"):
        FrozenNetwork([], (4,))


def test_class_names_default_to_numbers() -> None:
    network = affine(classes=3).network
    assert network.classes == ("0", "1", "2")
    named = FrozenNetwork(list(network.layers), (7,), ("a", "b", "c"), {"note": 1})
    assert (named.classes, named.facts) == (("a", "b", "c"), {"note": 1})


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 2, 2, 3, dtype=torch.uint8), "floating point .*, got torch.uint8"),
        (torch.zeros(2, 2, 3), r"shape \(batch, 2, 2, 3\), got \(2, 2, 3\)"),
        (torch.zeros(2, 2, 2, 4), r"got \(2, 2, 2, 4\)"),
    ],
)
def test_other_inputs_are_refused(x: torch.Tensor, message: str) -> None:
    network = unit_affine(torch.float32).network
    with pytest.raises(ValueError, match=message):
        network.require_input(x)
    if x.is_floating_point():
        with pytest.raises(ValueError, match=message):
            certify(network, x)


@pytest.mark.parametrize("classes", [("a",), ("a", "b", "c", "d")])
def test_every_class_has_a_name(classes: tuple[str, ...]) -> None:
    layers = list(affine(classes=3).network.layers)
    with pytest.raises(ValueError, match=f"classes must be 3 names, .* got {len(classes)}"):
        FrozenNetwork(layers, (7,), classes)


def test_inference_mode_leaves_nothing_behind() -> None:
    network = unit_affine(torch.float32).network
    x = torch.rand(4, 2, 2, 3)
    with torch.inference_mode():
        certify(network, x)
        within = closest_adversarial(network, torch.ones_like(x) * x)
        error = audit(network, torch.ones_like(x) * x).unit_gradient_error
    without = closest_adversarial(network, x)
    assert torch.equal(within.point, without.point)
    assert error == audit(network, x).unit_gradient_error
    probe = x.double().requires_grad_(True)
    (gradient,) = torch.autograd.grad(network.in_float64()(probe).sum(), probe)
    assert bool(gradient.isfinite().all())
