"""Training on samples: a drawn order, and each process's share of it augmented."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from unitmargin.data import Samples, crop_flip, draw_crops
from unitmargin.training.drawn_trainer import DrawnTrainer
from unitmargin.training.lesson import Lesson
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.share import Share


class SampleTrainer(DrawnTrainer):
    """A training that goes through samples once an epoch.

    Order and augmentation depend on seed and epoch alone, which makes resuming exact, in any number
    of processes. A process gathers and augments its share of each batch and no more.

    Args:
        device: of the training; default: that of the samples, which may lie elsewhere.

    Attributes:
        lesson: of a teacher, whose labels take the place of those of the data; None: of none.
    """

    def __init__(
        self,
        model: nn.Module,
        samples: Samples,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device | None = None,
    ) -> None:
        place = device or samples.device
        made_ahead = samples.mapped or samples.device != place
        super().__init__(model, len(samples), options, processes, quiet, place, made_ahead)
        self.samples = samples
        self.lesson: Lesson | None = None
        self.mirrored = self._mirrored(0)

    def _generator(self, epoch: int) -> torch.Generator:
        return torch.Generator().manual_seed(self.options.seed * 1_000_003 + epoch)

    def _mirrored(self, epoch: int) -> Tensor | None:
        """The samples that are mirrored in an epoch: a random half, and the other half in the next
        one, so that two epochs show every image both ways."""
        if not self.options.flip:
            return None
        half = torch.rand(len(self.samples), generator=self._generator(-1)) < 0.5
        return half ^ (epoch % 2 == 1)

    def _drawn(self, epoch: int) -> Iterator[Share]:
        generator = self._generator(epoch)
        self.mirrored = self._mirrored(epoch)
        order = torch.randperm(len(self.samples), generator=generator)
        for index in order.split(self.options.batch_size):
            yield self._batch(index, generator)

    def _batch(self, index: Tensor, generator: torch.Generator) -> Share:
        """This process's share of a batch; what is drawn for it is drawn for all of the batch."""
        options, own = self.options, self._own(len(index))
        mirrored = None if self.mirrored is None else self.mirrored[index]
        change = None
        if options.crop or mirrored is not None:
            crops = draw_crops(len(index), options.crop, mirrored, generator).at(own)
            change = partial(crop_flip, crops=crops, padding=options.crop, mode=options.padding)
        chosen = index[own].to(self.samples.device)
        inputs, labels = self.samples.batch(chosen, change, self.device)
        if self.lesson:
            labels = self.lesson.labels[chosen].to(self.device)
        return Share(inputs, labels, len(index))
