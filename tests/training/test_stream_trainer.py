"""Streams of shards: what a process takes of each batch."""

import math
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from groups import in_group
from torch import Tensor

from unitmargin.data import ImageOptions, TarShards
from unitmargin.models import UGNN
from unitmargin.training.options import SEEDS, TrainingOptions
from unitmargin.training.processes import Processes, join_processes
from unitmargin.training.stream_trainer import StreamTrainer


class Stream(TarShards):
    """Images that no file has to hold."""

    def samples(self, *_: Any) -> Iterator[Any]:
        return iter(range(100))

    def images(self, samples: Iterator[Any], *_: Any) -> Generator[tuple[Tensor, int], None, None]:
        for number in samples:
            yield torch.full((1, 4, 4), number, dtype=torch.uint8), number % 2


def trainer(processes: Processes, padding: str = "zeros") -> StreamTrainer:
    """Of five images, of which the last batch has one."""
    labels = torch.arange(5) % 2
    stream = Stream((), labels, ("a", "b"), (1, 4, 4), "", ImageOptions())
    options = TrainingOptions(batch_size=4, pieces=2, epochs=1, crop=1, flip=True, padding=padding)
    torch.manual_seed(0)
    return StreamTrainer(UGNN((1, 4, 4), 2, depth=1), stream, options, processes, quiet=True)


@pytest.mark.parametrize("padding", ["zeros", "reflect"])
@pytest.mark.parametrize(("rank", "sizes"), [(0, [2, 1]), (1, [2, 0])])
def test_a_process_may_have_no_piece_of_a_small_batch(
    rank: int, sizes: list[int], padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Processes, "agree", lambda *_: None)
    shares = list(trainer(Processes(rank, 2), padding)._batches(0))
    assert [tuple(share.inputs.shape) for share in shares] == [(n, 1, 4, 4) for n in sizes]
    assert [share.labels.dtype for share in shares] == [torch.int64] * 2
    assert [share.batch for share in shares] == [4, 1]


def epoch_loss() -> float:
    """Of the processes that the environment tells of."""

    return trainer(join_processes("cpu")[0]).epoch(0)[0]


def test_processes_end_an_epoch_whose_last_batch_is_smaller_than_they_are_many() -> None:
    first, second = in_group(2, epoch_loss)
    assert math.isfinite(first)
    assert first == second


def drawing(seed: int, rank: int) -> Any:
    return SimpleNamespace(options=TrainingOptions(seed=seed), processes=Processes(rank, 2))


def test_every_seed_makes_an_epoch() -> None:
    numbers = {
        StreamTrainer._seed(drawing(seed, rank), epoch)  # type: ignore[arg-type]
        for seed in (0, 1, SEEDS - 1)
        for epoch in (0, 1)
        for rank in (0, 1)
    }
    assert len(numbers) == 12
    assert all(0 <= number < 2**64 for number in numbers)
    for number in numbers:
        torch.Generator().manual_seed(number)
