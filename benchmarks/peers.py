"""Orthogonal convolutions beside orthogonium's: the same operator from the same kernel, and time.

    python benchmarks/peers.py [--batch 128] [--rounds 5] [--json FILE]

For each convolution of LargeConvNet: ours (BCOP, 20 Björck steps) and orthogonium's AOC with its
default parametrisation. Singular values are those of the whole circular operator, by frequency in
float64. "Same kernel" feeds orthogonium's kernel to our frequency-domain convolution and compares
the outputs. Times are medians of interleaved forward and backward passes in training mode;
``pip install --no-deps orthogonium`` beside this package is enough.
"""

import argparse
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
from timing import interleaved_medians

from unitmargin.foundation.files import write_json
from unitmargin.layers.fourier import CircularTransform, convolve
from unitmargin.layers.kernels import KernelTransform
from unitmargin.layers.singular_values import singular_values
from unitmargin.orthogonal.bcop import BCOPConv2d
from unitmargin.runs.provenance import provenance

LAYERS = ((3, 32, 3, 32), (128, 32, 2, 16), (32, 64, 3, 16), (256, 64, 2, 8))
"""Input channels, output channels, kernel and map side of LargeConvNet's convolutions, the strided
ones as they are computed: behind a PixelUnshuffle."""

WARM_UP = 2
"""Rounds before the clock counts."""


def theirs(inputs: int, outputs: int, kernel: int) -> nn.Module:
    """orthogonium's adaptive orthogonal convolution of stride 1, circular."""
    from orthogonium.layers.conv.AOC import AdaptiveOrthoConv2d

    layer: nn.Module = AdaptiveOrthoConv2d(inputs, outputs, kernel, padding_mode="circular")
    return layer


def extremes(kernel: Tensor, side: int) -> tuple[float, float]:
    """Smallest and largest singular value of the circular convolution on a side x side map."""
    size = (kernel.shape[2], kernel.shape[3])
    spectrum = KernelTransform(size, (side, side)).double()(kernel.detach().double())
    blocks = (spectrum.real, spectrum.complex_pairs())
    wide = [block if block.shape[-2] <= block.shape[-1] else block.mH for block in blocks]
    values = torch.cat([singular_values(block) for block in wide])
    return float(values.min()), float(values.max())


def same_kernel_difference(layer: nn.Module, kernel: Tensor, x: Tensor) -> float:
    """Largest difference of outputs: orthogonium's layer, and our convolution with its kernel.

    Even kernels are centred half a tap apart, which shifts the whole map by one pixel.
    """
    size, side = kernel.shape[2], x.shape[-1]
    spectrum = KernelTransform((size, size), (side, side))(kernel)
    with torch.no_grad():
        ours = convolve(x, spectrum, None, CircularTransform((side, side)))
        other = layer(x) - layer.bias.view(1, -1, 1, 1)
    shifts = (0,) if size % 2 else (0, 1, -1)
    return min(
        float((ours.roll((row, column), (2, 3)) - other).abs().max())
        for row in shifts
        for column in shifts
    )


def seconds(layer: nn.Module, x: Tensor) -> float:
    started = time.perf_counter()
    layer(x).square().sum().backward()
    elapsed = time.perf_counter() - started
    layer.zero_grad()
    return elapsed


def row(inputs: int, outputs: int, kernel: int, side: int, batch: int, rounds: int) -> Any:
    torch.manual_seed(0)
    mine = BCOPConv2d(inputs, outputs, kernel, (side, side))
    other = theirs(inputs, outputs, kernel)
    x = torch.randn(batch, inputs, side, side)
    weight = other.weight.detach()
    medians = interleaved_medians(
        {"ours": partial(seconds, mine, x), "orthogonium": partial(seconds, other, x)},
        WARM_UP,
        rounds,
    )
    return {
        "layer": f"{inputs} -> {outputs}, {kernel} x {kernel} on {side} x {side}",
        "ours": extremes(mine.kernel(), side),
        "orthogonium": extremes(weight, side),
        "same_kernel_difference": same_kernel_difference(other, weight, x[:2]),
        "seconds": medians,
        "time_ratio": medians["ours"] / medians["orthogonium"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if find_spec("orthogonium") is None:
        parser.error("orthogonium must be installed, got none; pip install --no-deps orthogonium")
    rows = [row(*layer, arguments.batch, arguments.rounds) for layer in LAYERS]
    print(f"{'layer':<30} {'ours - 1':>22} {'orthogonium - 1':>22} {'same kernel':>12} {'time':>6}")
    for found in rows:
        mine, other = (
            f"{found[name][0] - 1:+.1e} {found[name][1] - 1:+.1e}"
            for name in ("ours", "orthogonium")
        )
        print(
            f"{found['layer']:<30} {mine:>22} {other:>22} "
            f"{found['same_kernel_difference']:>12.1e} {found['time_ratio']:>6.2f}"
        )
    if arguments.json:
        write_json(arguments.json, {**provenance(), "batch": arguments.batch, "layers": rows})


if __name__ == "__main__":
    main()
