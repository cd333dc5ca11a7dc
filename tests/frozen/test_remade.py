"""What a profile evaluates and bounds is made of what a file would hold, and of nothing else."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest
import slicing
import torch
from torch import Tensor

from unitmargin import certify
from unitmargin.frozen import CircularConvolution, Dense, FrozenNetwork
from unitmargin.frozen.mixing import Mixing
from unitmargin.layers.activations import MaxMin
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import CircularTransform, circular_matrix, count_frequencies
from unitmargin.layers.rearrangement import Flatten
from unitmargin.layers.slices import Windows


class Twice(CircularTransform):
    def synthesise(self, real: Tensor, pairs: Tensor) -> Tensor:
        return 2.0 * super().synthesise(real, pairs)


class Still(Windows):
    def cut(self, x: Tensor) -> Tensor:
        return 2.0 * super().cut(x)


def convolution(frozen: FrozenNetwork) -> CircularConvolution:
    return next(layer for layer in frozen.features() if isinstance(layer, CircularConvolution))


def mixing(frozen: FrozenNetwork) -> Mixing:
    layers = (layer for layer in frozen.features() if isinstance(layer, Mixing))
    return next(layer for layer in layers if type(layer.arrangement) is Windows)


def change_tables(frozen: FrozenNetwork) -> None:
    transform = convolution(frozen).transform
    for table in transform.buffers():
        table.zero_()


def change_sizes(frozen: FrozenNetwork) -> None:
    convolution(frozen).transform.n_pixels = 1


def replace_transform(frozen: FrozenNetwork) -> None:
    layer = convolution(frozen)
    layer.transform = Twice(layer.transform.map_size).to(layer.real)


def replace_arrangement(frozen: FrozenNetwork) -> None:
    layer = mixing(frozen)
    cut = layer.arrangement.configuration()
    layer.arrangement = Still((cut["map_size"][0], cut["map_size"][1]), cut["size"], cut["shift"])


def change_channels(frozen: FrozenNetwork) -> None:
    mixing(frozen).channels //= 2


def convolutional(height: int, width: int) -> FrozenNetwork:
    real, pairs = count_frequencies((height, width))
    blocks = torch.randn(real, 2, 1), torch.randn(pairs, 2, 2, 1)
    layer = CircularConvolution(*blocks, torch.randn(2), (height, width))
    return deployed(layer, (1, height, width))


def sliced() -> FrozenNetwork:
    return deployed(slicing.mixing(Windows((4, 4), 2, 1), 2), (2, 4, 4))


def deployed(layer: FixedLayer, in_shape: tuple[int, int, int]) -> FrozenNetwork:
    features = layer(torch.zeros(1, *in_shape, dtype=layer.bias.dtype)).numel()
    head = Dense(torch.randn(3, features), torch.zeros(3))
    return FrozenNetwork([layer, Flatten(), head], in_shape)


CHANGES: dict[str, tuple[FrozenNetwork, Callable[[FrozenNetwork], None]]] = {
    "table": (convolutional(3, 4), change_tables),
    "tables of an FFT": (convolutional(9, 8), change_tables),
    "sizes": (convolutional(9, 8), change_sizes),
    "transform": (convolutional(9, 8), replace_transform),
    "arrangement": (sliced(), replace_arrangement),
    "channels": (sliced(), change_channels),
}


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_what_follows_from_a_configuration_is_made_anew(name: str, pickled: bool) -> None:
    network, change = CHANGES[name]
    frozen = copy.deepcopy(network)
    x = torch.rand(3, *frozen.in_shape)
    logits, expected = frozen(x), certify(frozen, x)
    change(frozen)
    if pickled:
        frozen = pickle.loads(pickle.dumps(frozen))
    fresh = FrozenNetwork([*frozen.features(), frozen.head], frozen.in_shape)
    for judged in (frozen, fresh):
        assert torch.equal(judged(x), logits)
        assert torch.equal(certify(judged, x).radius, expected.radius)


def test_whoever_writes_into_a_matrix_writes_into_a_copy() -> None:
    expected = circular_matrix((3, 5)).clone()
    circular_matrix((3, 5)).zero_()
    assert torch.equal(circular_matrix((3, 5)), expected)
    assert torch.equal(CircularTransform((3, 5)).double().basis, expected)


SHAPES = """
import torch
from unitmargin import certify
from unitmargin.frozen import CircularConvolution, Dense, FrozenNetwork
from unitmargin.frozen.combination import ConvexCombination
from unitmargin.frozen.mixing import GroupMixing, PositionMixing
from unitmargin.frozen.reflection import PositionReflection
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten

eye = torch.eye(4)
def stack(count):
    return torch.eye(4).expand(count, 4, 4).clone()
dense = Dense(eye, torch.zeros(4))
dense.bias = torch.ones(1)
inside = ConvexCombination(torch.tensor(0.5), [dense])
convolution = CircularConvolution(
    torch.ones(4, 1, 1), torch.zeros(0, 2, 1, 1), torch.zeros(1), (2, 2)
)
convolution.bias = torch.zeros(())
bias = PositionMixing(stack(4), torch.zeros(4, 4), 0, (2, 2))
bias.bias = torch.ones(1, 4)
rows = PositionReflection(stack(4), torch.zeros(4, 4), (2, 2))
rows.weight = torch.ones(1, 4, 4)
normalize = Normalize(torch.zeros(1), torch.ones(1))
normalize.std = torch.ones(3)
for layer, shape in (
    (dense, (4,)), (inside, (4,)), (convolution, (1, 2, 2)), (bias, (4, 2, 2)), (rows, (4, 2, 2)),
    (normalize, (1, 2, 2)),
):
    head = Dense(torch.ones(2, 4), torch.zeros(2))
    try:
        certify(FrozenNetwork([layer, Flatten(), head], shape), torch.zeros(1, *shape))
        print("certified")
    except ValueError as error:
        print(error)

two = GroupMixing(stack(2), torch.ones(2, 4), 0, (2, 2), size=1)
two.weight, two.bias = stack(4), torch.ones(4, 4)
four = GroupMixing(stack(4), torch.ones(4, 4), 0, (2, 2), size=1)
alphas = [
    FrozenNetwork([layer, Flatten(), Dense(torch.eye(16), torch.zeros(16))], (4, 2, 2))
    .proof(profile).bounds.alpha
    for layer in (two, four)
    for profile in [__import__("unitmargin.frozen.profiles").frozen.profiles.PROFILES["float32"]]
]
print(torch.equal(*alphas))
"""


def test_numbers_of_another_shape_are_judged_again() -> None:
    """Run without the run-time checks of types, which would refuse them too."""
    done = subprocess.run([sys.executable, "-c", SHAPES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, alike = done.stdout.splitlines()
    assert [line.split(", got shape")[0] for line in lines] == [
        "a dense layer needs weight (out, in) and bias (out,)",
        "a dense layer needs weight (out, in) and bias (out,)",
        "a circular convolution needs real (S, out, in), pairs (P, 2, out, in) and bias (out,)",
        "a mixing layer needs weight (stack, n, n) and bias (stack, n)",
        "a reflection needs weight (stack, k, n) with k <= n and bias (stack, k)",
        "mean and std need one entry a channel each",
    ]
    assert alike == "True"


class Unpaired(MaxMin):
    group = 1


@pytest.mark.parametrize("change", ["class", "attribute"])
def test_a_layer_is_what_a_file_would_hold(change: str) -> None:
    """Three channels in halves would use one entry twice, whose norm is not 1."""
    layer = Unpaired() if change == "class" else MaxMin()
    layer.group = 1
    half = torch.tensor([[0.5, 0.5, 0.0, 0.0], [-0.5, -0.5, 0.0, 0.0]])
    network = FrozenNetwork([layer, Dense(half, torch.zeros(2))], (3,))
    with pytest.raises(ValueError, match="maxmin needs a channel count that 2 divides, got 3"):
        certify(network, torch.tensor([[-9.0, -9.0, 1.0]]))
