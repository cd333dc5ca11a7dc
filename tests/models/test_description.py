"""A network in words: two of equal words compute the same function of the same tensors."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from unitmargin.heads.upd import LbfgsUPD
from unitmargin.layers.activations import Abs
from unitmargin.layers.rearrangement import Flatten
from unitmargin.models import (
    UGNN,
    Classifier,
    ConvexResidual,
    DenseUGNN,
    MixingUGNN,
    ResNet9,
    build_model,
    describe_network,
    without_settings,
)
from unitmargin.models.description import _describe_layer
from unitmargin.orthogonal import ORTHOGONAL_CONVS
from unitmargin.orthogonal.cholesky import CholeskyLinear


def test_every_layer_has_its_kind_its_settings_and_its_shapes() -> None:
    model = UGNN((4, 4, 4), 3, activation="groupsort4", depth=1, hidden=(5,))
    assert describe_network(model) == {
        "input": "4x4x4",
        "normalize": "Normalize mean 4 std 4",
        "features.0": "CayleyConv2d [channels 4 to 4] bias 4 raw 4x4x3x3",
        "features.1": "GroupSort size 4",
        "features.2": "CayleyConv2d [channels 4 to 4] bias 4 raw 4x4x3x3",
        "features.3": "GroupSort size 4",
        "features.4": "MaxPool size 2",
        "features.5": "PixelUnshuffle factor 2",
        "features.6": "Flatten",
        "features.7": "CholeskyLinear raw 5x16 bias 5",
        "features.8": "Abs",
        "head": "SimplexUPD raw 3x5 bias 3",
    }


def test_layers_on_slices_say_how_they_cut_maps() -> None:
    plan = ["fold 4", "window 2 1", "reflect group 8"]
    words = describe_network(MixingUGNN((1, 8, 8), 4, plan=plan))
    assert words["features.1"] == (
        "OrthogonalMixing [arrangement Windows(map_size=(2, 2), size=2, shift=1), absolute 16] "
        "raw 1x64x64 bias 1x64"
    )
    assert words["features.2"] == (
        "OrthogonalReflection [arrangement Groups(map_size=(2, 2), size=8)] raw 2x8x32 bias 2x8"
    )
    assert without_settings(words["features.1"]) == "OrthogonalMixing raw 1x64x64 bias 1x64"


def without_biases(kind: str, *channels: int) -> Callable[[], Classifier]:
    """A network whose tensors do not tell how many channels its layers hand on."""
    build = ORTHOGONAL_CONVS[kind]

    def make() -> Classifier:
        layers = [build(a, b, 3, (4, 4), bias=False) for a, b in pairwise(channels)]
        return Classifier((4, 4, 4), 3, [*layers, Flatten()], 64, "simplex", None)

    return make


def lbfgs(steps: int) -> Callable[[], Classifier]:
    def make() -> Classifier:
        model = DenseUGNN((6,), 3, head="lbfgs")
        model.head = LbfgsUPD(6, 3, steps)
        return model

    return make


def mixing(*plan: str, absolute: float = 0.25) -> Callable[[], Classifier]:
    return lambda: MixingUGNN((1, 8, 8), 4, plan=["fold 4", *plan], absolute=absolute)


PAIRS: dict[str, tuple[Callable[[], Classifier], Callable[[], Classifier], str]] = {
    "linear": (
        lambda: DenseUGNN((6,), 3, linear="bjorck"),
        lambda: DenseUGNN((6,), 3, linear="cholesky"),
        "features.1",
    ),
    "activation": (
        lambda: DenseUGNN((6,), 3, activation="oplu"),
        lambda: DenseUGNN((6,), 3, activation="maxmin"),
        "features.2",
    ),
    "settings of an activation": (
        lambda: DenseUGNN((6,), 3, activation="groupsort3"),
        lambda: DenseUGNN((6,), 3, activation="groupsort6"),
        "features.2",
    ),
    "head": (
        lambda: DenseUGNN((6,), 3, head="lbfgs"),
        lambda: DenseUGNN((6,), 3, head="simplex"),
        "head",
    ),
    "the layer inside a head": (
        lambda: DenseUGNN((6,), 3, head="bjorck"),
        lambda: DenseUGNN((6,), 3, head="cayley"),
        "head",
    ),
    "a layer inside a residual": (
        lambda: ResNet9((1, 16, 16), 3, width=2, activation="maxmin"),
        lambda: ResNet9((1, 16, 16), 3, width=2, activation="oplu"),
        "features.5",
    ),
    "the shift of windows": (mixing("window 2 0"), mixing("window 2 1"), "features.1"),
    "the kind of an arrangement": (mixing("shift"), mixing("window 1"), "features.1"),
    "absolute values": (mixing("shift"), mixing("shift", absolute=0.75), "features.1"),
    "the shift of reflected windows": (
        mixing("reflect window 2 0"),
        mixing("reflect window 2 1"),
        "features.1",
    ),
    "channels between convolutions": (
        without_biases("bcop", 4, 4, 4),
        without_biases("bcop", 4, 2, 4),
        "features.0",
    ),
    "channels of skew convolutions": (
        without_biases("skew", 4, 4, 4),
        without_biases("skew", 4, 2, 4),
        "features.0",
    ),
    "steps of a head": (lbfgs(1), lbfgs(3), "head"),
    "the map under kernels of one shape": (
        lambda: build_model("ugnn", (1, 8, 8), 3, depth=1, hidden=(3,)),
        lambda: build_model("ugnn", (1, 16, 4), 3, depth=1, hidden=(3,)),
        "input",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_networks_that_differ_have_other_words(name: str) -> None:
    first, second, layer = PAIRS[name]
    mine, other = describe_network(first()), describe_network(second())
    assert mine[layer] != other[layer]
    assert describe_network(first()) == mine


def test_a_layer_that_occurs_twice_is_told_twice() -> None:
    shared = Abs()
    first, last = CholeskyLinear(4, 4), CholeskyLinear(4, 4)
    words = [_describe_layer(ConvexResidual(first, shared, last, *more)) for more in ([], [shared])]
    assert words[1].split().count("Abs") == words[0].split().count("Abs") + 1 == 2
