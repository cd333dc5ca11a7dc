r"""Slices of maps: each arrangement cuts a map into disjoint vectors of equal length, and back.

Cutting and placing are permutations of entries, so a layer that multiplies every slice with an
orthogonal matrix is GNP as a whole: :math:`J = P_2^T (\oplus_s W_s) P_1` with permutations P.
Maps are read and written channels last, as they lie in memory in training.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from unitmargin.foundation.numbers import require_whole
from unitmargin.foundation.tensors import makes_numbers
from unitmargin.layers.half_plane import require_size

Maps = Shaped[Tensor, "batch c h w"]
Slices = Shaped[Tensor, "stack rows n"]

EIGHTHS = 8
"""Channels shifted in each of four directions are one part of this many."""


@dataclass(frozen=True)
class Arrangement(ABC):
    """How maps of one size are cut: ``cut`` and ``place``, and their inverses, which are their
    transposes too. All matrices of a ``stack`` have the slices of its ``rows``."""

    map_size: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "map_size", require_size(self.map_size))

    def _require(self, field: str, lowest: int, step: str) -> None:
        """Keep a field as a whole number of at least ``lowest``."""
        whole = require_whole(field, getattr(self, field), lowest, step)
        object.__setattr__(self, field, whole)

    def configuration(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return vars(self) | {"map_size": list(self.map_size)}

    @property
    def pixels(self) -> int:
        return math.prod(self.map_size)

    def require_maps(self, x: Tensor, channels: int) -> None:
        """Raise a ValueError unless ``x`` are such maps: others would be cut otherwise."""
        expected = (channels, *self.map_size)
        if x.ndim != 4 or tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"x must be maps (batch, {', '.join(map(str, expected))}), got shape "
                f"{tuple(x.shape)}; build the layer for its maps"
            )

    @abstractmethod
    def stack(self, channels: int) -> tuple[int, int]:
        """How many matrices there are, and their side.

        Raises:
            ValueError: channels that cannot be cut so.
        """

    @abstractmethod
    def channels(self, count: int, side: int) -> int:
        """The channels of which ``stack`` makes so many matrices of that side, if there are any."""

    def slices(self, channels: int) -> int:
        """How many slices a map has."""
        return self.pixels * channels // self.stack(channels)[1]

    @abstractmethod
    def cut(self, x: Maps) -> Slices: ...

    @abstractmethod
    def uncut(self, slices: Slices, channels: int) -> Maps: ...

    def place(self, slices: Slices, channels: int) -> Maps:
        return self.uncut(slices, channels)

    def unplace(self, x: Maps) -> Slices:
        return self.cut(x)


def _rows(x: Maps) -> Shaped[Tensor, "batch pixels c"]:
    """Pixels in a row, channels last; a view of maps that lie so in memory."""
    return x.permute(0, 2, 3, 1).flatten(1, 2)


def _maps(rows: Tensor, map_size: tuple[int, int]) -> Maps:
    """Inverse of ``_rows``, for any leading axes."""
    return rows.reshape(-1, *map_size, rows.shape[2]).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Windows(Arrangement):
    """All channels of disjoint ``size x size`` windows, the map first rolled up and left by
    ``shift`` pixels; one matrix serves all windows. Entries are in the order row, column, channel.

    Raises:
        ValueError: ``size`` does not divide both sides, or ``shift`` is not below it.

    Example:
        >>> Windows((4, 4), 2, 1).cut(torch.arange(16.0).view(1, 1, 4, 4))[0, 0]
        tensor([ 5.,  6.,  9., 10.])
    """

    size: int = 2
    shift: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("size", 1, "give the side of a window")
        self._require("shift", 0, "give the pixels to roll by")
        height, width = self.map_size
        if height % self.size or width % self.size:
            raise ValueError(
                f"windows need a map that is a multiple of {self.size} on both sides, got "
                f"{height} x {width}; choose a size that divides both"
            )
        if self.shift >= self.size:
            raise ValueError(
                f"shift must be below the size {self.size} of a window, got {self.shift}; lower it"
            )

    def stack(self, channels: int) -> tuple[int, int]:
        return 1, self.size**2 * channels

    def channels(self, count: int, side: int) -> int:
        return side // self.size**2

    def cut(self, x: Maps) -> Slices:
        rows = _rows(x)
        if self._mixes(rows):
            rows = rows.index_select(1, self._orders(self.shift, x.device)[0])
        return rows.reshape(1, -1, self.size**2 * x.shape[1])

    def uncut(self, slices: Slices, channels: int) -> Maps:
        return self._back(slices, channels, self.shift)

    def place(self, slices: Slices, channels: int) -> Maps:
        return self._back(slices, channels, 0)

    def unplace(self, x: Maps) -> Slices:
        return Windows(self.map_size, self.size).cut(x)

    def _back(self, slices: Slices, channels: int, shift: int) -> Maps:
        rows = slices.reshape(-1, self.pixels, channels)
        if self._mixes(rows):
            rows = rows.index_select(1, self._orders(shift, slices.device)[1])
        return _maps(rows, self.map_size)

    def _mixes(self, rows: Tensor) -> bool:
        """Whether an order is needed: windows of one pixel are in order, and nothing has none,
        whose making would take the time of a map."""
        return self.size > 1 and not (makes_numbers() and rows.numel() == 0)

    def _orders(self, shift: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Kept for all calls whose tensors are numbers; what is kept is read by ``index_select``
        alone and handed to nobody, who could write into it."""
        orders = _kept_orders if makes_numbers() else _window_orders
        return orders(*self.map_size, self.size, shift, device)


@dataclass(frozen=True)
class Folds(Windows):
    """As windows, and each window becomes one pixel of a smaller map, its entries the channels: a
    PixelUnshuffle and a matrix in one, without a copy between them."""

    def place(self, slices: Slices, channels: int) -> Maps:
        height, width = (side // self.size for side in self.map_size)
        return _maps(slices, (height, width))

    def unplace(self, x: Maps) -> Slices:
        return _rows(x).reshape(1, -1, x.shape[1])


def _window_orders(
    height: int, width: int, size: int, shift: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Pixels in the order of windows, and the inverse of that order."""
    with torch.inference_mode(False):
        numbers = torch.arange(height * width, device=device).view(height, width)
        rolled = numbers.roll((-shift, -shift), (0, 1))
        order = rolled.view(height // size, size, width // size, size).transpose(1, 2).flatten()
        return order, order.argsort()


_kept_orders = lru_cache(maxsize=16)(_window_orders)


@dataclass(frozen=True)
class Shifts(Arrangement):
    """All channels of each pixel, after an eighth of them has moved by one pixel in each of four
    directions (down, up, right, left, around the edges); one matrix serves all pixels.

    Raises:
        ValueError: fewer than eight channels.
    """

    def stack(self, channels: int) -> tuple[int, int]:
        if channels < EIGHTHS:
            raise ValueError(
                f"shifts need at least {EIGHTHS} channels, got {channels}; put a PixelUnshuffle "
                "before them"
            )
        return 1, channels

    def channels(self, count: int, side: int) -> int:
        return side

    def cut(self, x: Maps) -> Slices:
        return self.unplace(self._moved(x, 1))

    def uncut(self, slices: Slices, channels: int) -> Maps:
        return self._moved(self.place(slices, channels), -1)

    def place(self, slices: Slices, channels: int) -> Maps:
        return _maps(slices, self.map_size)

    def unplace(self, x: Maps) -> Slices:
        return _rows(x).reshape(1, -1, x.shape[1])

    def _moved(self, x: Maps, by: int) -> Maps:
        """Eighths of the channels rolled, the others as they are."""
        last = x.permute(0, 2, 3, 1)
        part = x.shape[1] // EIGHTHS
        *moving, rest = last.split((part, part, part, part, x.shape[1] - 4 * part), dim=3)
        moves = ((by, 1), (-by, 1), (by, 2), (-by, 2))
        rolled = [one.roll(*move) for one, move in zip(moving, moves, strict=True)]
        return torch.cat((*rolled, rest), dim=3).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Positions(Arrangement):
    """All channels of each pixel, a matrix of its own for every pixel."""

    def stack(self, channels: int) -> tuple[int, int]:
        return self.pixels, channels

    def channels(self, count: int, side: int) -> int:
        return side

    def cut(self, x: Maps) -> Slices:
        return _rows(x).transpose(0, 1)

    def uncut(self, slices: Slices, channels: int) -> Maps:
        return _maps(slices.transpose(0, 1), self.map_size)


@dataclass(frozen=True)
class Groups(Arrangement):
    """Each group of ``size`` neighbouring channels over all pixels, a matrix of its own for every
    group. Entries are in the order pixel, channel. With all channels in one group it is a dense
    layer.

    Raises:
        ValueError: ``size`` does not divide the channels.
    """

    size: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("size", 1, "give the channels of a group")

    def stack(self, channels: int) -> tuple[int, int]:
        if channels % self.size:
            raise ValueError(
                f"size must divide the channels, got groups of {self.size} in {channels} channels; "
                "choose another size"
            )
        return channels // self.size, self.pixels * self.size

    def channels(self, count: int, side: int) -> int:
        return count * self.size

    def cut(self, x: Maps) -> Slices:
        groups = _rows(x).reshape(-1, self.pixels, x.shape[1] // self.size, self.size)
        return groups.permute(2, 0, 1, 3).flatten(2)

    def uncut(self, slices: Slices, channels: int) -> Maps:
        apart = slices.reshape(len(slices), -1, self.pixels, self.size).permute(1, 2, 0, 3)
        return _maps(apart.flatten(2), self.map_size)


ARRANGEMENTS: dict[str, type[Arrangement]] = {
    "window": Windows,
    "fold": Folds,
    "shift": Shifts,
    "position": Positions,
    "group": Groups,
}
"""Arrangements by name."""
