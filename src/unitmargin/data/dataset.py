"""Data sets: train and test samples."""

from dataclasses import dataclass, replace

from unitmargin.data.encoding import Encoding
from unitmargin.data.samples import Samples
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
