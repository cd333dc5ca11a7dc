"""Random crops and flips of a whole batch at once."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64, Shaped
from torch import Tensor
from torch.nn.functional import pad

from unitmargin.foundation.choice import choose

MODES = {"zeros": "constant", "reflect": "reflect"}
"""Names of paddings, and torch's words for them."""


def random_crop_flip(
    images: Tensor,
    padding: int,
    flip: bool | Tensor | None,
    generator: torch.Generator,
    mode: str = "zeros",
) -> Shaped[Tensor, "batch channels height width"]:
    """Every image cropped at random out of its padded self, and half of them mirrored.

    Each image is surrounded by ``padding`` pixels on every side, zeros or with mode "reflect" its
    own pixels mirrored, and cut back to its size at a place drawn evenly. With ``flip`` it is
    mirrored left to right with probability 1/2; a boolean mask, one entry an image, says which are.

    Shapes: ``(batch, channels, height, width)`` in and out, any dtype, on any device.
    Guarantee: the result depends on the images and on the state of ``generator`` alone, not on the
    device. ``generator`` must be on the CPU; from there only three short index tensors travel.

    Raises:
        ValueError: images of another shape, an unknown mode, negative padding or a generator
            elsewhere.

    Example:
        >>> images = torch.arange(4.0).reshape(1, 1, 2, 2)
        >>> random_crop_flip(images, 0, False, torch.Generator()).flatten()
        tensor([0., 1., 2., 3.])
    """
    _require_images(images)
    return crop_flip(images, draw_crops(len(images), padding, flip, generator), padding, mode)


class Crops(NamedTuple):
    """Where images of a batch are cut out, and which of them are mirrored."""

    rows: Int64[Tensor, "batch 1"]
    columns: Int64[Tensor, "batch 1"]
    flip: Bool[Tensor, " batch"] | None

    def at(self, index: Int64[Tensor, " share"]) -> "Crops":
        """Those of some images of the batch."""
        flip = None if self.flip is None else self.flip[index]
        return Crops(self.rows[index], self.columns[index], flip)


def draw_crops(
    batch: int, padding: int, flip: bool | Tensor | None, generator: torch.Generator
) -> Crops:
    """What :func:`random_crop_flip` draws for a batch; :func:`crop_flip` does it.

    Raises:
        ValueError: negative padding or a generator that is not on the CPU.
    """
    _require_draw(padding, generator)
    rows, columns = (_starts(batch, padding, generator) for _ in range(2))
    if flip is True:
        flip = torch.randint(2, (batch,), generator=generator) == 1
    return Crops(rows, columns, flip if isinstance(flip, Tensor) else None)


def crop_flip(
    images: Tensor, crops: Crops, padding: int, mode: str = "zeros"
) -> Shaped[Tensor, "batch channels height width"]:
    """Every image cut out of its padded self and mirrored as was drawn for it.

    Raises:
        ValueError: images of another shape, or an unknown mode.
    """
    _require_images(images)
    pad_mode = choose("padding", mode, MODES)
    batch, channels, height, width = images.shape
    rows = crops.rows + torch.arange(height)
    columns = crops.columns + torch.arange(width)
    if crops.flip is not None:
        columns = torch.where(crops.flip[:, None], columns.flip(1), columns)
    flat = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    flat = flat.reshape(batch, 1, height * width).to(images.device)
    padded = pad(images, (padding,) * 4, pad_mode).flatten(2)
    return padded.gather(2, flat.expand(-1, channels, -1)).reshape(images.shape)


def _starts(batch: int, padding: int, generator: torch.Generator) -> Int64[Tensor, "batch 1"]:
    return torch.randint(2 * padding + 1, (batch, 1), generator=generator)


def _require_images(images: Tensor) -> None:
    if images.ndim != 4:
        raise ValueError(
            f"images must have shape (batch, channels, height, width), got {tuple(images.shape)}; "
            "leave augmentation out for inputs that are no images"
        )


def _require_draw(padding: int, generator: torch.Generator) -> None:
    if padding < 0:
        raise ValueError(f"padding must be >= 0, got {padding}; use 0 for no random crop")
    if generator.device.type != "cpu":
        raise ValueError(
            f"generator must be on the CPU, got {generator.device}; make it with torch.Generator()"
        )
