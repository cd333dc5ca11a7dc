"""Orthonormal Fourier transform of real maps by FFT, on the frequencies that determine the others.

It is an isometry, so its derivative transposed is its inverse; saying so saves the full complex
FFT that differentiating ``rfft2`` costs.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.numbers import require_whole, shown

Size = tuple[int, int]
"""Height and width of a map."""

Maps = Float[Tensor, "batch c h w"]
Real = Float[Tensor, "s batch c"]
Pairs = Float[Tensor, "p 2 batch c"]


def require_size(map_size: Sequence[int]) -> Size:
    """Height and width as a tuple; raises unless they are two whole numbers of at least 1."""
    if not isinstance(map_size, Sequence) or len(map_size) != 2:
        raise ValueError(f"map_size must be height and width, got {shown(map_size)}; give both")
    height, width = (require_whole("map_size", n, 1, "give height and width") for n in map_size)
    return height, width


class Tables(NamedTuple):
    """Positions of the kept frequencies in the half plane of ``rfft2``, and back.

    ``gather (S + P,)`` picks the kept ones. ``mirrored`` are the pairs whose conjugate stands in
    the half plane too; ``source`` (height times half width) says what stands at each place, counted
    in the kept ones followed by those conjugates.
    """

    gather: Tensor
    mirrored: Tensor
    source: Tensor


def analyse(x: Maps, tables: Tables) -> tuple[Real, Pairs]:
    """Real coefficients, and real and imaginary parts of the others times sqrt 2.

    Float64 stays float64; shorter inputs are transformed in float32, which is what FFTs have.
    """
    real, pairs = _Analyse.apply(_wide(x), *tables)  # type: ignore[no-untyped-call]
    return real, pairs


def synthesise(real: Real, pairs: Pairs, tables: Tables, map_size: Size) -> Maps:
    """Inverse and transpose of :func:`analyse`."""
    output: Tensor = _Synthesise.apply(  # type: ignore[no-untyped-call]
        _wide(real), _wide(pairs), *tables, *map_size
    )
    return output


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _half_plane(x: Tensor) -> Tensor:
    """``rfft2``, also of no maps at all, which MKL refuses."""
    if _is_empty(x):
        wide = x.to(torch.complex128 if x.dtype == torch.float64 else torch.complex64)
        return wide[..., : x.shape[-1] // 2 + 1]
    half_plane: Tensor = torch.fft.rfft2(x, norm="ortho")
    return half_plane


def _is_empty(maps: Tensor) -> bool:
    """Whether there are no maps; a graph is one for every batch but that one, and does not ask."""
    return not torch.compiler.is_compiling() and len(maps) == 0


class _Analyse(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Maps, gather: Tensor, mirrored: Tensor, source: Tensor) -> tuple[Real, Pairs]:
        n_real = 2 * len(gather) - x.shape[-2] * x.shape[-1]
        half_plane = _half_plane(x).flatten(2).permute(2, 0, 1)
        kept = half_plane.index_select(0, gather)
        pairs = torch.view_as_real(kept[n_real:]).permute(0, 3, 1, 2)
        return kept[:n_real].real.clone(), pairs * math.sqrt(2.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.map_size = inputs[0].shape[-2:]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = _Synthesise.apply(  # type: ignore[no-untyped-call]
            *gradients, *ctx.saved_tensors, *ctx.map_size
        )
        return gradient, None, None, None


class _Synthesise(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        real: Tensor,
        pairs: Tensor,
        gather: Tensor,
        mirrored: Tensor,
        source: Tensor,
        height: int,
        width: int,
    ) -> Tensor:
        batch, channels = real.shape[1:]
        complex_pairs = torch.complex(pairs[:, 0], pairs[:, 1]) * math.sqrt(0.5)
        conjugates = complex_pairs.index_select(0, mirrored).conj()
        alone = torch.complex(real, torch.zeros_like(real))
        half_plane = torch.cat((alone, complex_pairs, conjugates)).index_select(0, source)
        half_plane = half_plane.permute(1, 2, 0).reshape(batch, channels, height, width // 2 + 1)
        if _is_empty(half_plane):
            return real.new_empty(0, channels, height, width)
        output: Tensor = torch.fft.irfft2(half_plane, s=(height, width), norm="ortho")
        return output

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[2:5])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        parts = _Analyse.apply(*gradients, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return *parts, None, None, None, None, None
