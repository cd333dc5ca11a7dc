"""Small networks of every layer kind, and their certificates in the files that a run folder has."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from certificate_files import write_of_model
from reflecting import reflection
from slicing import mixing
from torch import Tensor

from unitmargin.data import Samples
from unitmargin.frozen import CircularConvolution, ConvexCombination, Dense, FrozenNetwork, save
from unitmargin.layers.activations import OPLU, Abs, GroupSort, MaxMin, PartialAbs
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import frequencies
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen
from unitmargin.layers.slices import Folds, Groups, Positions, Shifts, Windows
from unitmargin.runs.certifier import FrozenCertifier
from unitmargin.runs.folder import RunFolder
from unitmargin.steps.certify import certify_inputs

N_INPUTS = 24
"""Inputs of each network: enough to meet several classes."""


class Example(NamedTuple):
    """A network in float32 and inputs of it."""

    network: FrozenNetwork
    inputs: Tensor


def orthogonal(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Stacks of matrices of norm 1 with orthonormal rows or columns."""
    raw = torch.randn(shape, dtype=dtype)
    u, _, v = torch.linalg.svd(raw, full_matrices=False)
    return u @ v


def dense(inputs: int, outputs: int) -> Dense:
    return Dense(orthogonal(outputs, inputs), 0.1 * torch.randn(outputs).double())


def convolution(inputs: int, outputs: int, height: int, width: int) -> CircularConvolution:
    real, pairs = frequencies(height, width)
    blocks = orthogonal(len(pairs), outputs, inputs, dtype=torch.complex128)
    return CircularConvolution(
        orthogonal(len(real), outputs, inputs),
        torch.stack((blocks.real, blocks.imag), dim=1),
        0.1 * torch.randn(outputs).double(),
        (height, width),
    )


def residual(share: float, *branch: FixedLayer) -> ConvexCombination:
    return ConvexCombination(torch.tensor(share, dtype=torch.float64), branch)


def _build(in_shape: tuple[int, ...], *layers: FixedLayer) -> Example:
    network = FrozenNetwork(layers, in_shape).to(torch.float32)
    return Example(network, torch.rand(N_INPUTS, *in_shape))


EXAMPLES: dict[str, Callable[[], Example]] = {
    "dense": lambda: _build(
        (6,),
        Normalize(torch.rand(6), torch.linspace(0.3, 0.9, 6)),
        dense(6, 12), Abs(), dense(12, 8), MaxMin(), dense(8, 8), OPLU(), PartialAbs(4),
        dense(8, 6),
        GroupSort(3), dense(6, 4),
    ),
    "head alone": lambda: _build((5,), dense(5, 3)),
    "odd map": lambda: _build(
        (2, 3, 5), convolution(2, 4, 3, 5), MaxMin(), convolution(4, 2, 3, 5), Abs(), Flatten(),
        dense(30, 3),
    ),
    "tall map": lambda: _build(
        (1, 7, 2), convolution(1, 3, 7, 2), Abs(), Flatten(), dense(42, 3)
    ),
    "one pixel": lambda: _build((3, 1, 1), convolution(3, 4, 1, 1), OPLU(), Flatten(), dense(4, 3)),
    "pooled": lambda: _build(
        (2, 6, 8),
        Normalize(torch.rand(2), torch.tensor([0.4, 0.5])),
        convolution(2, 4, 6, 8), GroupSort(4), MaxPool(2), convolution(4, 4, 2, 2), Flatten(),
        dense(16, 5),
    ),
    "widened": lambda: _build(
        (1, 4, 6), PixelUnshuffle(2), Widen(3), convolution(12, 4, 2, 3), Abs(), Flatten(),
        dense(24, 4),
    ),
    "unshuffled": lambda: _build(
        (1, 6, 4), PixelUnshuffle(2), convolution(4, 6, 3, 2), MaxMin(), Flatten(), dense(36, 4)
    ),
    "by FFT": lambda: _build(
        (2, 9, 10),
        convolution(2, 2, 9, 10), Abs(), PixelUnshuffle(1), Flatten(), dense(180, 90),
        Abs(), dense(90, 4),
    ),
    "averaged": lambda: _build(
        (2, 6, 6),
        Normalize(torch.rand(2), torch.tensor([0.4, 0.7])),
        convolution(2, 5, 6, 6), Abs(), ScaledAveragePool(3), convolution(5, 4, 2, 2), MaxMin(),
        ScaledAveragePool(2), Flatten(), dense(4, 4),
    ),
    "pooled by norms": lambda: _build(
        (2, 6, 12),
        convolution(2, 5, 6, 12), L2Pool(3), convolution(5, 4, 2, 4), PartialAbs(2), L2Pool(2),
        Flatten(), dense(8, 4),
    ),
    "mixed": lambda: _build(
        (3, 8, 4),
        Normalize(torch.rand(3), torch.tensor([0.4, 0.5, 0.6])),
        mixing(Folds((8, 4), 2, 1), 3), mixing(Windows((4, 2), 2, 1), 12, absolute=0),
        mixing(Shifts((4, 2)), 12), mixing(Positions((4, 2)), 12),
        residual(0.4, mixing(Groups((4, 2), 3), 12), Abs()), mixing(Groups((4, 2), 4), 12),
        Flatten(), dense(96, 5),
    ),
    "reflected": lambda: _build(
        (3, 8, 4),
        reflection(Folds((8, 4), 2, 1), 3), reflection(Windows((4, 2), 2, 1), 12),
        reflection(Shifts((4, 2)), 12), reflection(Positions((4, 2)), 12),
        residual(0.4, reflection(Groups((4, 2), 3), 12), Abs()), Flatten(), dense(96, 5),
    ),
    "residual": lambda: _build(
        (2, 4, 4),
        residual(0.62, convolution(2, 4, 4, 4), MaxMin(), convolution(4, 2, 4, 4), Abs()),
        ScaledAveragePool(2), Flatten(), dense(8, 12),
        residual(0.3, dense(12, 12), residual(0.9, dense(12, 40), OPLU(), dense(40, 12)), Abs()),
        dense(12, 4),
    ),
    "long sums": lambda: _build((300,), dense(300, 150), MaxMin(), dense(150, 5)),
}  # fmt: skip
"""Every layer kind, odd, non-square, tiny and large maps, sums of one and of several chunks."""


def certified(folder: Path, example: Example, profile: str = "float64") -> RunFolder:
    """A folder with model, certificates, what they are made of, and the inputs."""
    run = RunFolder(folder)
    save(example.network, run.model_file)
    labels = torch.zeros(len(example.inputs), dtype=torch.int64)
    samples = Samples(example.inputs, labels)
    certificates = certify_inputs(FrozenCertifier(example.network, profile), samples)
    files = run.certificates_file, certificates, run.model_file, run.inputs_file
    write_of_model(*files, certified=example.inputs.float())
    return run
