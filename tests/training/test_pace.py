"""How fast steps are, how long they wait, and what memory is told."""

import time
from collections.abc import Iterator

import pytest
import torch

from unitmargin.training import pace as room
from unitmargin.training.memory import held_memory
from unitmargin.training.pace import Pace, Watch
from unitmargin.training.share import Share
from unitmargin.training.train import EpochRecord


def test_waiting_is_the_time_until_a_batch_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(room.time, "perf_counter", lambda: clock[0])

    def batches() -> Iterator[Share]:
        for _ in range(4):
            clock[0] += 1.0
            yield Share(torch.zeros(5, 1), torch.zeros(5), 10)

    watch = Watch()
    for share in watch.timed(batches()):
        assert len(share.labels) == 5
        clock[0] += 3.0
    assert watch.pace() == Pace(rate=40 / 16, waiting=4 / 16)
    assert str(watch.pace()) == "2 samples/s, 25% waiting for data"


def test_no_step_has_a_pace() -> None:
    watch = Watch()
    assert list(watch.timed(iter(()))) == []
    time.sleep(0.001)
    assert watch.pace().rate == 0.0


def test_memory_grows_with_what_is_held() -> None:
    before = held_memory(torch.device("cpu"))
    held = torch.ones(2**24)  # 64 MB, written to
    grown = held_memory(torch.device("cpu")) - before
    assert 0.8 * held.nbytes <= grown <= 1.5 * held.nbytes


def test_a_line_tells_pace_and_memory_where_they_are_known() -> None:
    record = EpochRecord(1, 0.5, None, None, None, 0.01, 2.0, 1234.5, 0.031, 2.5e9)
    assert record.line(3).endswith("2.0 s  1234 samples/s  3% waiting for data  2.50 GB")
    assert EpochRecord(1, 0.5, None, None, None, 0.01, 2.0).line(3).endswith("2.0 s")
