"""From the taps of a kernel to its blocks by frequency."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.fourier import Spectrum, angles, frequencies
from unitmargin.layers.half_plane import Size


class KernelTransform(nn.Module):
    """Spectrum of ``conv2d`` with circular padding, centred at ``(height // 2, width // 2)``.

    Shapes: ``(out, in, height, width)`` to a :class:`Spectrum`; any kernel size on any map, a
    kernel larger than the map is wrapped.
    Guarantee: equal to the explicit circular convolution to a few ulp of the kernel's dtype. The
    tables depend on the sizes alone and follow dtype and device like ``CircularTransform``'s.
    Cost: (S + 2 P) height width out in multiplications, independent of the batch.
    """

    real: Tensor
    pairs: Tensor
    __call__: Callable[..., Spectrum]

    def __init__(self, kernel_size: Size, map_size: Size) -> None:
        super().__init__()
        self.kernel_size, self.map_size = kernel_size, map_size
        for name, table in zip(("real", "pairs"), self._tables(), strict=True):
            self.register_buffer(name, table.to(torch.get_default_dtype()), persistent=False)

    def _tables(self) -> tuple[Float[Tensor, "s taps"], Float[Tensor, "pp taps"]]:
        height, width = self.kernel_size
        points = [(p - height // 2, q - width // 2) for p in range(height) for q in range(width)]
        chosen = frequencies(*self.map_size)
        turned = angles(chosen.pairs, points, self.map_size)
        pairs = torch.stack((turned.cos(), turned.sin()), dim=1).flatten(0, 1)
        return angles(chosen.real, points, self.map_size).cos(), pairs

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        real, pairs = self._tables()
        self.real, self.pairs = real.to(self.real), pairs.to(self.pairs)
        return self

    def forward(self, kernel: Float[Tensor, "out in kh kw"]) -> Spectrum:
        outputs, inputs = kernel.shape[:2]
        taps = kernel.permute(2, 3, 0, 1).reshape(-1, outputs * inputs)
        real, pairs = self.real @ taps, self.pairs @ taps
        return Spectrum(real.view(-1, outputs, inputs), pairs.view(-1, 2, outputs, inputs))
