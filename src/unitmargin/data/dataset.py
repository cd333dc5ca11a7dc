"""Data sets: train and test samples."""

from dataclasses import dataclass, replace

from unitmargin.data.encoding import Encoding
from unitmargin.data.samples import ROOM, UNIT, Samples
from unitmargin.data.split import Split
from unitmargin.data.tar_shards import TarShards


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
        >>> import torch
        >>> samples = Samples(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> Dataset("tiny", samples, samples, ("no", "yes")).n_classes
        2
    """

    name: str
    train: Samples | TarShards
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
        if factor == 1:
            return self
        train = replace(self._in_memory("upsample", factor), upsample=factor)
        return replace(self, train=train, test=replace(self.test, upsample=factor))

    def take(self, limit: int) -> "Dataset":
        """At most ``limit`` train and ``limit`` test samples; see :meth:`Samples.take`."""
        train = self._in_memory("limit", limit)
        return replace(self, train=train.take(limit), test=self.test.take(limit))

    def _in_memory(self, what: str, value: int) -> Samples:
        """The train samples, which a stream cannot give where some are chosen or enlarged."""
        if isinstance(self.train, TarShards):
            raise ValueError(
                f"{what} must be left out for shards, which are streamed as they are, got {value}; "
                "name fewer shards"
            )
        return self.train


def joint_domain(train: Samples | TarShards, test: Samples | None) -> tuple[float, float]:
    """Interval in which the entries of inputs like these lie: the domain of the training samples
    where it holds the test samples, else the range of both and its width on each side.

    Test samples may reach as far as they do: they are of one data set, and so in its units. Images
    alone tell units, where all that is trained on lies in [0, 1].

    Raises:
        ValueError: images to train in [0, 1], and test images beyond it by more than its width.

    Example:
        >>> import torch
        >>> ends = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [4.0]])
        >>> joint_domain(*(Samples(inputs, torch.tensor([0, 1])) for inputs in ends))
        (-4.0, 8.0)
    """
    domain = train.domain
    if isinstance(train, TarShards) or test is None or test.domain == domain:
        return domain
    (low, high), own = test.span, train.span
    if domain[0] <= low and high <= domain[1]:
        return domain
    far = max(UNIT[0] - low, high - UNIT[1]) > ROOM
    if domain == UNIT and len(train.in_shape) == 3 and far:
        raise ValueError(
            f"test images must be in the units of the training images, which lie in {list(UNIT)}, "
            f"got entries from {low:g} to {high:g}; scale them as the training images"
        )
    low, high = min(low, own[0]), max(high, own[1])
    room = ROOM * (high - low)
    return low - room, high + room
