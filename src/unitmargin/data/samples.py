"""Samples (inputs and labels) and data sets (train and test samples)."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from unitmargin.data.encoding import Encoding
from unitmargin.data.split import Split
from unitmargin.foundation.numbers import as_tensor, is_real, require_whole, shown

BYTES = 255.0
"""Scale of uint8, which puts bytes in [0, 1]."""

ORDER_SEED = 20230207
"""Any fixed number serves; another one would change every run made with a ``limit``."""

UNIT = (0.0, 1.0)
"""Where the numbers of scaled images lie, and so those of any data that lie there."""

ROOM = 1.0
"""By how many widths of their range a domain is wider than the inputs on each side. Test samples
reach beyond training samples, but not by the whole range: what does is in other units, such as
bytes where the training had pixels in [0, 1] around their mean."""

Batch = tuple[Float32[Tensor, "batch ..."], Int64[Tensor, " batch"]]


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and labels kept as stored, and handed out in batches of float32.

    A batch holds ``inputs / scale``: with ``scale=255.0``, the bytes of an image become pixels in
    [0, 1], which are the units of every radius. With ``upsample=r`` each pixel of a batch is
    repeated r times in each direction: distances between images are then r times as long.

    Shapes: inputs are uint8 or float32 ``(n, *shape)``, labels int64 ``(n,)``, on one device; NumPy
    arrays and data frames become tensors.
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

    def __post_init__(self) -> None:
        for name in ("inputs", "labels"):
            object.__setattr__(self, name, as_tensor(name, getattr(self, name)))
        _require_inputs(self.inputs)
        _require_labels(self.labels, self.inputs)
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

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def in_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch dimension."""
        first, *lengths = self.inputs.shape[1:]
        return first, *(length * self.upsample for length in lengths)

    @property
    def sha256(self) -> str:
        """Hash of the content: inputs and labels as stored, scale and up-sampling.

        The same on every device and in every process, whatever file the samples came from.
        """
        facts = [str(self.inputs.dtype), list(self.inputs.shape), self.scale, self.upsample]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for tensor in (self.inputs, self.labels):
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def domain(self) -> tuple[float, float]:
        """Interval in which the entries of inputs like these lie, in the units of a batch.

        [0, 1] where all inputs lie in it; else what bytes can hold; else the range of the inputs
        and ``ROOM`` of its widths on each side, or their magnitude where they are all the same.
        """
        ends = torch.stack(self.inputs.aminmax()).cpu()
        low, high = self._scaled(ends)
        if low >= UNIT[0] and high <= UNIT[1]:
            return UNIT
        if self.inputs.dtype == torch.uint8:
            return self._scaled(torch.tensor([0, 255]))
        width = (float(ends[1]) - float(ends[0])) / self.scale
        room = ROOM * (width or abs(high))
        return low - room, high + room

    def _scaled(self, ends: Tensor) -> tuple[float, float]:
        """Extremes divided by the scale, as a batch divides and as float64 does."""
        single = ends.float() / torch.tensor(self.scale, dtype=torch.float32)
        both = torch.cat((single.double(), ends.double() / self.scale))
        return float(both.min()), float(both.max())

    def batch(
        self, index: Tensor | slice, change: Callable[[Tensor], Tensor] | None = None
    ) -> Batch:
        """The chosen inputs divided by the scale, in float32, and their labels.

        ``index`` is a slice, an int64 tensor of positions or a boolean mask of length n. ``change``
        takes the inputs as they are stored, where bytes are a quarter of the work of float32.
        Guarantee: both tensors are copies, and the same on every device to the last bit.
        """
        inputs = self.inputs[index]
        for axis in (-1, -2) if self.upsample > 1 else ():
            inputs = inputs.repeat_interleave(self.upsample, axis)
        inputs = (inputs if change is None else change(inputs)).to(torch.float32)
        # A CUDA tensor divided by a Python number is multiplied by a rounded reciprocal, which
        # differs from the quotient by an ulp; divided by a tensor it is correctly rounded.
        scale = torch.full((), self.scale, dtype=torch.float32, device=inputs.device)
        return inputs / scale, self.labels[index].clone()

    def to(self, device: torch.device | str) -> "Samples":
        """The same samples on ``device``."""
        return replace(self, inputs=self.inputs.to(device), labels=self.labels.to(device))

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
        return replace(self, inputs=self.inputs[index], labels=self.labels[index])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set: train samples, test samples and the names of the classes.

    ``split`` says which are which where the data came without.
    ``encoding`` says of a table what became of its columns; None of other data.

    Guarantee: inputs of one shape, at least two classes with different names, every label below the
    number of classes.

    Raises:
        ValueError: anything else.

    Example:
        >>> samples = Samples(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> Dataset("tiny", samples, samples, ("no", "yes")).n_classes
        2
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    split: Split | None = None
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        if self.train.in_shape != self.test.in_shape:
            raise ValueError(
                f"data set {self.name!r}: train and test inputs must have one shape, got "
                f"{self.train.in_shape} and {self.test.in_shape}; resize one of them"
            )
        if self.n_classes < 2 or len(set(self.classes)) != self.n_classes:
            raise ValueError(
                f"data set {self.name!r}: classes must be two or more different names, got "
                f"{self.classes}; a classifier needs something to choose between"
            )
        for split, samples in (("train", self.train), ("test", self.test)):
            largest = int(samples.labels.max())
            if largest >= self.n_classes:
                raise ValueError(
                    f"data set {self.name!r}: every {split} label must be < {self.n_classes}, the "
                    f"number of classes, got {largest}; name the missing classes or count from 0"
                )

    @property
    def in_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch dimension."""
        return self.train.in_shape

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def upsampled(self, factor: int) -> "Dataset":
        """The data set with every pixel repeated; see :class:`Samples`."""
        train, test = (replace(part, upsample=factor) for part in (self.train, self.test))
        return replace(self, train=train, test=test)

    def take(self, limit: int) -> "Dataset":
        """At most ``limit`` train and ``limit`` test samples; see :meth:`Samples.take`."""
        return replace(self, train=self.train.take(limit), test=self.test.take(limit))


def _require_inputs(inputs: Tensor) -> None:
    if inputs.dtype not in (torch.uint8, torch.float32):
        raise ValueError(
            f"inputs must be uint8 or float32, got {inputs.dtype}; convert them to float32"
        )
    if inputs.ndim < 2 or inputs.numel() == 0:
        step = "add the batch axis: inputs[None]" if inputs.numel() else "pass a sample at least"
        raise ValueError(
            f"inputs must have shape (n, *shape) and hold at least one number, got "
            f"{tuple(inputs.shape)}; {step}"
        )
    if inputs.dtype == torch.float32 and not bool(inputs.isfinite().all()):
        first = int((~inputs.flatten(1).isfinite().all(1)).nonzero()[0])
        raise ValueError(
            f"inputs must be finite, got NaN or infinity in sample {first}; remove or repair it"
        )


def _require_labels(labels: Tensor, inputs: Tensor) -> None:
    if labels.dtype != torch.int64 or labels.shape != inputs.shape[:1]:
        raise ValueError(
            f"labels must be int64 of shape ({len(inputs)},), one for each input, got "
            f"{labels.dtype} of shape {tuple(labels.shape)}; pass the number of each class"
        )
    if labels.device != inputs.device:
        raise ValueError(
            f"labels must be on {inputs.device}, where the inputs are, got {labels.device}; "
            "move them with labels.to(inputs.device)"
        )
    if int(labels.min()) < 0:
        raise ValueError(f"labels must be >= 0, got {int(labels.min())}; count classes from 0")
