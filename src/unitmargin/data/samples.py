"""Samples: inputs and labels."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from unitmargin.data.npy import can_take_rows, take_rows
from unitmargin.data.origin import Origin
from unitmargin.data.sample_rules import (
    BLOCK,
    require_finite,
    require_inputs,
    require_labels,
    require_rows,
)
from unitmargin.foundation.numbers import as_tensor, is_real, require_whole, shown

BYTES = 255.0
"""Scale of uint8, which puts bytes in [0, 1]."""

ORDER_SEED = 20230207
"""Any fixed number serves; another one would change every run made with a ``limit``."""

UNIT = (0.0, 1.0)
"""Where the numbers of scaled images lie, and so those of any data that lie there."""

ROOM = 1.0
"""By how many widths of their range a domain is wider than the inputs on each side. New inputs
reach beyond known ones, but seldom by the whole range: what does is in other units, such as bytes
where the training had pixels in [0, 1] around their mean."""

RESIDENT = 2**30
"""Bytes of inputs that are moved to another device at once; of more, each batch is."""

Batch = tuple[Float32[Tensor, "batch ..."], Int64[Tensor, " batch"]]


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and labels kept as stored, and handed out in batches of float32.

    A batch holds ``inputs / scale``: with ``scale=255.0``, the bytes of an image become pixels in
    [0, 1], which are the units of every radius. With ``upsample=r`` each pixel of a batch is
    repeated r times in each direction: distances between images are then r times as long.

    With ``rows`` the samples are these rows of the inputs, in that order, so that samples chosen
    among many take no memory; ``stored(index)`` gives inputs either way. Inputs may be mapped from
    a file, whose pages are then read when they are needed; ``origin`` says so of those that
    :func:`load_dataset` maps, and that they were judged when they were written. Writing into
    mapped inputs ends the process: write into a copy (``.clone()``).

    Shapes: inputs are uint8 or float32 ``(m, *shape)``, labels int64 ``(n,)``, rows int64 ``(n,)``,
    on one device; n = m without rows. NumPy arrays and data frames become tensors.
    Guarantee: n >= 1, as many labels as inputs, finite inputs, labels >= 0.

    Raises:
        TypeError: what is no tensor, array or data frame of numbers.
        ValueError: anything else.

    Example:
        >>> pixels = torch.tensor([[0], [255]], dtype=torch.uint8)
        >>> samples = Samples(pixels, torch.tensor([0, 1]), scale=255.0)
        >>> samples.batch(slice(0, 2))
        (tensor([[0.],
                [1.]]), tensor([0, 1]))
    """

    inputs: Tensor
    labels: Tensor
    scale: float = 1.0
    upsample: int = 1
    rows: Int64[Tensor, " n"] | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        for name in ("inputs", "labels"):
            object.__setattr__(self, name, as_tensor(name, getattr(self, name)))
        require_inputs(self.inputs)
        if not self.mapped:
            require_finite(self.inputs)
        require_rows(self.rows, self.inputs)
        require_labels(self.labels, self.inputs, len(self))
        if not is_real(self.scale):
            raise TypeError(
                f"scale must be a number, got {shown(self.scale)}; leave it out for inputs that "
                "are already scaled"
            )
        require_whole("upsample", self.upsample, 1, "leave it out")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(
                f"scale must be finite and > 0, got {self.scale}; "
                "use 255.0 for the bytes of an image and 1.0 for values that are already scaled"
            )
        if self.upsample > 1 and self.inputs.ndim != 4:
            raise ValueError(
                f"upsample must be 1 for inputs that are no images, got "
                f"{self.upsample} and inputs of shape {tuple(self.inputs.shape)}; leave it out"
            )
        object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, "upsample", int(self.upsample))

    def __len__(self) -> int:
        return len(self.inputs if self.rows is None else self.rows)

    @property
    def device(self) -> torch.device:
        """Where the inputs are."""
        return self.inputs.device

    @property
    def mapped(self) -> bool:
        """Whether the inputs are mapped from a file of the cache folder."""
        return self.origin is not None and self.origin.is_of(self.inputs)

    def stored(self, index: Tensor | slice) -> Tensor:
        """The chosen inputs as they are stored; a slice may share their memory, and mapped inputs
        are then only read."""
        chosen = index if self.rows is None else self.rows[index]
        apart = isinstance(chosen, Tensor) and chosen.dtype == torch.int64 and chosen.ndim == 1
        if isinstance(chosen, Tensor) and apart and can_take_rows(self.inputs):
            found = take_rows(self.inputs, chosen)
        else:
            found = self.inputs[chosen]
        if self.origin is not None:
            self.origin.pages.touch(found.nbytes, len(found) if apart else 1)
        return found

    def _blocks(self) -> Iterator[Tensor]:
        """All inputs as they are stored, a few megabytes at a time."""
        width = self.inputs.element_size() * math.prod(self.inputs.shape[1:])
        size = max(1, BLOCK // width)
        for start in range(0, len(self), size):
            yield self.stored(slice(start, start + size))

    def ends(self) -> Tensor:
        """Smallest and largest entry of the inputs as they are stored."""
        ends = [torch.stack(block.aminmax()) for block in self._blocks()]
        return torch.stack(torch.stack(ends).aminmax())

    @property
    def in_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch dimension."""
        first, *lengths = self.inputs.shape[1:]
        return first, *(length * self.upsample for length in lengths)

    @property
    def sha256(self) -> str:
        """Hash of the content: inputs and labels as stored, scale and up-sampling.

        The same on every device and in every process, whatever file the samples came from. Of
        mapped inputs it is remembered.
        """
        shape = [len(self), *self.inputs.shape[1:]]
        facts = json.dumps([str(self.inputs.dtype), shape, self.scale, self.upsample])
        if self.origin is None or not self.mapped:
            return self._hash(facts)
        parts = [self.labels] if self.rows is None else [self.labels, self.rows]
        return self.origin.remembered_sha256(facts, parts, partial(self._hash, facts))

    def _hash(self, facts: str) -> str:
        digest = hashlib.sha256(facts.encode())
        for tensor in chain(self._blocks(), [self.labels]):
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def domain(self) -> tuple[float, float]:
        """Interval in which the entries of inputs like these lie, in the units of a batch.

        [0, 1] where all inputs lie in it; else what bytes can hold; else the range of the inputs
        and ``ROOM`` of its widths on each side, or their magnitude where they are all the same.
        """
        if self.inputs.dtype == torch.uint8 and self.scale >= BYTES:
            return UNIT
        ends = self.ends().cpu()
        low, high = self._scaled(ends)
        if low >= UNIT[0] and high <= UNIT[1]:
            return UNIT
        if self.inputs.dtype == torch.uint8:
            return self._scaled(torch.tensor([0, 255]))
        width = (float(ends[1]) - float(ends[0])) / self.scale
        room = ROOM * (width or abs(high))
        return low - room, high + room

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest entry, in the units of a batch."""
        return self._scaled(self.ends().cpu())

    def _scaled(self, ends: Tensor) -> tuple[float, float]:
        """Extremes divided by the scale, as a batch divides and as float64 does."""
        single = ends.float() / torch.tensor(self.scale, dtype=torch.float32)
        both = torch.cat((single.double(), ends.double() / self.scale))
        return float(both.min()), float(both.max())

    def batch(
        self,
        index: Tensor | slice,
        change: Callable[[Tensor], Tensor] | None = None,
        device: torch.device | str | None = None,
    ) -> Batch:
        """The chosen inputs divided by the scale, in float32, and their labels.

        ``index`` is a slice, an int64 tensor of positions or a boolean mask of length n. ``change``
        takes the inputs as they are stored, where bytes are a quarter of the work of float32; it
        must not write into them. ``device``, by default that of the inputs, is where they are
        moved to as bytes.
        Guarantee: both tensors are copies, and the same on every device to the last bit.
        """
        inputs, labels = self.stored(index), self.labels[index].clone()
        if device is not None:
            inputs, labels = inputs.to(device), labels.to(device)
        for axis in (-1, -2) if self.upsample > 1 else ():
            inputs = inputs.repeat_interleave(self.upsample, axis)
        inputs = (inputs if change is None else change(inputs)).to(torch.float32)
        # A CUDA tensor divided by a Python number is multiplied by a rounded reciprocal, which
        # differs from the quotient by an ulp; divided by a tensor it is correctly rounded.
        scale = torch.full((), self.scale, dtype=torch.float32, device=inputs.device)
        return inputs / scale, labels

    def to(self, device: torch.device | str) -> "Samples":
        """The same samples on ``device``."""
        rows = None if self.rows is None else self.rows.to(device)
        inputs, labels = self.inputs.to(device), self.labels.to(device)
        return replace(self, inputs=inputs, labels=labels, rows=rows)

    def near(self, device: torch.device | str) -> "Samples":
        """The same samples on ``device`` if they are few enough, else where they are."""
        return self.to(device) if self.inputs.nbytes <= RESIDENT else self

    def spread(self, count: int) -> Int64[Tensor, " count"]:
        """Positions of ``count`` samples spread evenly, or of all if fewer.

        Image folders are sorted by class; this way every class has its share.
        """
        count = min(count, len(self))
        return torch.linspace(0, len(self) - 1, count, dtype=torch.float64).long()

    def take(self, limit: int) -> "Samples":
        """The first ``limit`` samples of a fixed shuffled order, or all of them if fewer.

        The order depends on n alone, so ``take(10)`` begins ``take(100)``. It is shuffled because
        images that come in folders are sorted by class.

        Raises:
            TypeError: no whole number.
            ValueError: limit < 1.
        """
        require_whole("limit", limit, 1, "leave it out to use every sample")
        order = np.random.RandomState(ORDER_SEED).permutation(len(self))[:limit]
        index = torch.from_numpy(order).to(self.inputs.device)
        if self.mapped:
            rows = index if self.rows is None else self.rows[index]
            return replace(self, labels=self.labels[index], rows=rows)
        inputs, labels = self.stored(index), self.labels[index]
        return replace(self, inputs=inputs, labels=labels, rows=None)
