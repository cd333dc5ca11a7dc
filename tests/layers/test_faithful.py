"""What is evaluated and not deployed is refused by name, wherever a network is read."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from unitmargin import audit, certify, save
from unitmargin.frozen import Dense
from unitmargin.layers.activations import Abs, MaxMin
from unitmargin.layers.contract import TrainableLayer
from unitmargin.layers.faithful import require_faithful
from unitmargin.layers.promises import GNP
from unitmargin.models import Classifier, DenseUGNN, ResNet9, fixed_network, freeze
from unitmargin.orthogonal.bjorck import BjorckLinear
from unitmargin.training.train import train

SAME_FUNCTION = 1e-5
"""A network before and after freezing, both evaluated in float32."""


class OwnForward(DenseUGNN):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(x)


class OwnLogits(DenseUGNN):
    def logits(self, normalised: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().logits(normalised)


class OwnNormalised(DenseUGNN):
    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().normalised(x)


class OwnCall(DenseUGNN):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().__call__(x)


class DoubledLinear(BjorckLinear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(x)


class DoubledAbs(Abs):
    def activate(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * x.abs()


class DoubledRow(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(x)


def dense() -> DenseUGNN:
    return DenseUGNN((6,), 3)


def peer() -> ResNet9:
    return ResNet9((1, 16, 16), 3, width=2)


def changed(
    change: Callable[[Classifier], object], make: Callable[[], Classifier] = dense
) -> Classifier:
    model = make()
    change(model)
    return model


def put(model: Classifier, index: int, layer: nn.Module) -> None:
    model.features[index] = layer


def forget(*_: object) -> None:
    """A hook that changes nothing; another one could."""


CASES: dict[str, tuple[Callable[[], Classifier], str]] = {
    "class forward": (lambda: OwnForward((6,), 3), "OwnForward.forward must not be overridden"),
    "class logits": (lambda: OwnLogits((6,), 3), "OwnLogits.logits must not be overridden"),
    "class normalised": (lambda: OwnNormalised((6,), 3), "normalised must not be overridden"),
    "class call": (lambda: OwnCall((6,), 3), "OwnCall.__call__ must be that of torch.nn.Module"),
    "object forward": (
        lambda: changed(lambda m: setattr(m, "forward", m.logits)),
        "DenseUGNN.forward must be the method of its class, got one of this object alone",
    ),
    "object logits": (
        lambda: changed(lambda m: setattr(m, "logits", m.normalised)), "DenseUGNN.logits must"
    ),
    "layer's forward": (
        lambda: changed(lambda m: setattr(m.features[1], "forward", torch.abs)),
        "features.1.forward must be the method of its class",
    ),
    "layer's weight": (
        lambda: changed(lambda m: setattr(m.features[1], "weight", lambda: torch.eye(6))),
        "features.1.weight must be the method of its class",
    ),
    "row's forward": (
        lambda: changed(lambda m: setattr(m.features, "forward", torch.abs)),
        "features.forward must be the method of its class",
    ),
    "head's forward": (
        lambda: changed(lambda m: setattr(m.head, "forward", torch.abs)), "head.forward must be"
    ),
    "heir of a layer": (
        lambda: changed(lambda m: put(m, 1, DoubledLinear(6, 6))),
        "features.1.forward must not be overridden without freeze, got one of DoubledLinear",
    ),
    "heir of a fixed layer": (
        lambda: changed(lambda m: put(m, 2, DoubledAbs())),
        "features.2.activate must not be overridden without kind, got one of DoubledAbs",
    ),
    "heir of a row": (
        lambda: changed(lambda m: setattr(m, "features", DoubledRow(*m.features))),
        "features.forward must be that of torch.nn.Sequential",
    ),
    "hook": (
        lambda: changed(lambda m: m.features[1].register_forward_hook(forget)),
        "features.1 must be read without hooks of its forward pass, got 1",
    ),
    "hook before": (
        lambda: changed(lambda m: m.head.register_forward_pre_hook(forget)),
        "head must be read without hooks",
    ),
    "hook of the model": (
        lambda: changed(lambda m: m.register_forward_hook(forget)), "DenseUGNN must be read without"
    ),
    "parametrisation": (
        lambda: changed(lambda m: parametrizations.weight_norm(m.features[1], "raw")),
        "features.1 must have plain parameters, got a parametrisation of raw",
    ),
    "spectral norm": (
        lambda: changed(lambda m: nn.utils.spectral_norm(m.features[1], "raw")),
        "features.1 must be read without hooks",
    ),
    "another layer": (
        lambda: changed(lambda m: put(m, 1, nn.Linear(6, 6))), "features.1 must be a layer that"
    ),
    "surplus part": (
        lambda: changed(lambda m: setattr(m, "extra", nn.Linear(6, 6))),
        "extra must be no part of a DenseUGNN, got a Linear",
    ),
    "another head": (
        lambda: changed(lambda m: setattr(m, "head", nn.Linear(6, 3))),
        "head must be a unitmargin.heads.Head, got Linear",
    ),
    "a layer as head": (
        lambda: changed(lambda m: setattr(m, "head", BjorckLinear(6, 3))),
        "head must be a unitmargin.heads.Head, got BjorckLinear",
    ),
    "a head's layer": (
        lambda: changed(
            lambda m: setattr(m.head, "linear", nn.Linear(6, 3)),
            lambda: DenseUGNN((6,), 3, head="bjorck"),
        ),
        "linear of an orthonormal head must be an OrthogonalLinear, got Linear",
    ),
    "no normalisation": (
        lambda: changed(lambda m: setattr(m, "normalize", nn.Identity())),
        "normalize must be a layer that",
    ),
    "a branch's layer": (
        lambda: changed(lambda m: m.features[5].branch.__setitem__(1, nn.ReLU()), peer),
        "features.5.branch.1 must be a layer that answers",
    ),
    "a branch": (
        lambda: changed(lambda m: setattr(m.features[5], "branch", nn.Identity()), peer),
        "features.5.branch must be a layer that answers",
    ),
    "a row in a branch": (
        lambda: changed(lambda m: m.features[5].branch.append(DoubledRow(Abs())), peer),
        "features.5.branch.4.forward must be that of torch.nn.Sequential",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("read", [freeze, audit, fixed_network])
def test_what_would_not_be_deployed_is_named(
    read: Callable[[Classifier], object], make: Callable[[], Classifier], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        read(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class Halved(TrainableLayer):
    """A layer that answers the contract by its own forward and its own freeze."""

    promise = GNP

    def __init__(self) -> None:
        super().__init__()
        self.sign = nn.Parameter(torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.sign.sign()

    def singular_values(self) -> torch.Tensor:
        return self.sign.detach().sign().abs().double()

    def fix(self) -> Dense:
        return Dense(torch.diag(self.sign.detach().sign()), torch.zeros(6))

    def freeze(self) -> Dense:
        return Dense(torch.diag(self.sign.detach().sign()).double(), torch.zeros(6).double())


class HeirOfHalved(Halved):
    """One that changes nothing of the evaluation."""

    def extra_repr(self) -> str:
        return "heir"


@pytest.mark.parametrize("layer", [Halved, HeirOfHalved])
def test_a_layer_with_its_own_forward_and_freeze_is_a_layer(layer: type[Halved]) -> None:
    model = changed(lambda m: put(m, 1, layer()))
    x = torch.randn(5, 6)
    difference = freeze(model)(x) - model(x)
    assert (difference - difference[:, :1]).abs().max() <= SAME_FUNCTION


def test_a_model_compiled_in_place_is_the_same_model() -> None:
    model = dense()
    before = freeze(model)
    model.compile()
    require_faithful(model)
    x = torch.randn(5, 6)
    assert torch.equal(freeze(model)(x), before(x))


def test_a_layer_that_stands_at_two_places_is_deployed_at_both() -> None:
    shared = MaxMin()
    model = dense()
    model.features[2] = model.features[4] = shared
    names = [name for name, _ in model.named_layers()]
    assert names == ["normalize", *(f"features.{index}" for index in range(5))]
    x = torch.randn(5, 6)
    difference = freeze(model)(x) - model(x)
    assert (difference - difference[:, :1]).abs().max() <= SAME_FUNCTION


def test_training_refuses_before_the_first_step() -> None:
    model = OwnForward((6,), 3)
    before = [parameter.clone() for parameter in model.parameters()]
    data = torch.randn(8, 6), torch.arange(8) % 3
    with pytest.raises(TypeError, match="OwnForward.forward must not be overridden"):
        train(model, data, data, epochs=1, quiet=True)
    assert all(map(torch.equal, before, model.parameters()))


def test_a_network_of_own_layers_and_own_evaluation_is_not_frozen() -> None:
    class Both(OwnLogits):
        def logits(self, normalised: torch.Tensor) -> torch.Tensor:
            return 3.0 * super().logits(normalised)

        def named_layers(self) -> list:  # type: ignore[type-arg]
            return super().named_layers()

    with pytest.raises(TypeError, match="Both.named_layers must be that of Classifier"):
        freeze(Both((6,), 3))


def test_frozen_networks_are_read_as_they_are_evaluated(tmp_path: object) -> None:
    x = torch.randn(2, 6)
    frozen = freeze(dense())
    certify(frozen, x)  # what is kept of a proof is no excuse
    handle = frozen.layers[1].register_forward_hook(forget)
    for read in (
        lambda: certify(frozen, x),
        lambda: save(frozen, f"{tmp_path}/m"),
        frozen.pair_constants,
    ):
        with pytest.raises(TypeError, match="network.layers.1 must be read without hooks"):
            read()
    handle.remove()
    frozen.forward = frozen.normalised
    with pytest.raises(TypeError, match="FrozenNetwork.forward must be the method of its class"):
        certify(frozen, x)


@pytest.mark.parametrize(
    "register",
    [nn.modules.module.register_module_forward_hook,
     nn.modules.module.register_module_forward_pre_hook],
)  # fmt: skip
def test_a_hook_of_all_modules_is_refused(register: Callable[[object], object]) -> None:
    frozen = freeze(dense())
    handle = register(forget)
    try:
        with pytest.raises(TypeError, match="without hooks of the forward pass of all modules"):
            certify(frozen, torch.rand(2, 6))
    finally:
        handle.remove()  # type: ignore[attr-defined]
    assert len(certify(frozen, torch.rand(2, 6)).radius) == 2
