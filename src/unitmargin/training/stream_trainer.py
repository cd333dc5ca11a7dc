"""Training on shards: every process streams its own, and none waits for another."""

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import torch
from torch import Tensor

from unitmargin.data import TarShards, crop_flip, draw_crops, spare_cores
from unitmargin.models import Classifier
from unitmargin.training.drawn_trainer import DrawnTrainer
from unitmargin.training.options import TrainingOptions
from unitmargin.training.pieces import require_pieces
from unitmargin.training.processes import Processes
from unitmargin.training.share import Share


class StreamTrainer(DrawnTrainer):
    """A training that streams shards; see :class:`unitmargin.data.TarShards`.

    What a process sees and how it is augmented depend on seed, epoch and the number of processes,
    which makes resuming exact in as many. Every process makes every step of an epoch.
    """

    def __init__(
        self,
        model: Classifier,
        stream: TarShards,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device | None = None,
    ) -> None:
        require_pieces(options.pieces, processes, streamed=True)
        place = device or torch.device("cpu")
        super().__init__(model, len(stream), options, processes, quiet, place, made_ahead=True)
        self.stream = stream

    def _drawn(self, epoch: int) -> Iterator[Share]:
        options, processes, stream = self.options, self.processes, self.stream
        generator = torch.Generator().manual_seed(self._seed(epoch))
        own = stream.samples(options.seed, epoch, processes.rank, processes.count)
        workers = max(1, spare_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
        with closing(stream.images(own, workers)) as images:
            for first in range(0, len(stream), options.batch_size):
                batch = min(options.batch_size, len(stream) - first)
                share = list(islice(images, len(self._own(batch))))
                inputs = self._stacked([image for image, _ in share]).to(self.device)
                if options.crop or options.flip:
                    crops = draw_crops(len(share), options.crop, options.flip, generator)
                    inputs = crop_flip(inputs, crops, options.crop, options.padding)
                scale = torch.full((), stream.scale, device=self.device)
                labels = torch.tensor([label for _, label in share], dtype=torch.int64)
                yield Share(inputs.to(torch.float32) / scale, labels.to(self.device), batch)

    def _stacked(self, images: list[Tensor]) -> Tensor:
        """The images of a share as a batch; of a small one in pieces a process may have none."""
        return torch.stack(images) if images else torch.empty(0, *self.stream.in_shape)

    def _seed(self, epoch: int) -> int:
        """A number for each epoch and process."""
        number = (self.options.seed * 1_000_003 + epoch) * 65_537 + self.processes.rank
        return number % 2**64  # what a generator takes; both factors are odd, so none fall together
