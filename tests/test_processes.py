"""Two processes train what one trains; shares and weights add up to the batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from unitmargin.certificates import certify
from unitmargin.data import load_dataset
from unitmargin.processes import Processes
from unitmargin.runs import RunFolder
from unitmargin.steps.freeze import freeze_run

RADIUS_TOLERANCE = 1e-3
"""Gradients summed in another order differ by an ulp, and Adam turns an ulp of a vanishing gradient
into a full step; after three epochs radii differ in the fourth digit, weights may differ more."""


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_weighted_shares_average_to_the_batch_mean(size: int, count: int) -> None:
    values = torch.rand(size, dtype=torch.float64)
    total = 0.0
    for rank in range(count):
        processes = Processes(rank, count)
        own = processes.share(torch.arange(size))
        total += float(values[own].mean()) * processes.weight(size, len(own)) / count
    assert total == pytest.approx(float(values.mean()))


def _train(folder: Path, processes: int) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command = [sys.executable, *(launcher if processes > 1 else []), "-m", "unitmargin"]
    arguments = ["train", "digits", "--out", str(folder), "--epochs", "3", "--limit", "500"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("train: 3 epochs") == 1


def test_two_processes_train_what_one_trains(tmp_path: Path) -> None:
    x, _ = load_dataset("digits").test.batch(slice(0, 100))
    certificates = []
    for processes in (1, 2):
        folder = RunFolder(tmp_path / str(processes))
        _train(folder.path, processes)
        freeze_run(folder)
        certificates.append(certify(folder.frozen(), x))
    one, two = certificates
    difference = (one.radius - two.radius).abs().max()
    assert float(difference) < RADIUS_TOLERANCE
