"""Two processes train what one trains; shares and weights add up to the batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from unitmargin.certificates.certify import certify
from unitmargin.data import load_dataset
from unitmargin.runs.folder import RunFolder
from unitmargin.steps.freeze import freeze_run
from unitmargin.training.processes import Processes, join_processes

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


def _start(folder: Path, processes: int, script: str = "") -> "subprocess.Popen[str]":
    """``unitmargin train`` in one process or under the launcher, or a script in its place."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command = [sys.executable, *(launcher if processes > 1 else [])]
    command += [script] if script else ["-m", "unitmargin"]
    arguments = ["train", "digits", "--out", str(folder), "--epochs", "3", "--limit", "500"]
    return subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _train(folder: Path, processes: int) -> None:
    started = _start(folder, processes)
    output, errors = started.communicate(timeout=240)
    assert started.returncode == 0, errors
    assert output.count("train: 3 epochs") == 1


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """What two processes train without an interruption."""
    folder = RunFolder(tmp_path_factory.mktemp("two") / "run")
    _train(folder.path, 2)
    return folder


INTERRUPTED = """
import sys
from unitmargin.cli import main
from unitmargin.training.trainer import Trainer

epoch = Trainer.epoch

def stop_in_the_third(self, number):
    if number == 2:
        raise RuntimeError("interrupted by the test")
    return epoch(self, number)

Trainer.epoch = stop_in_the_third
main(sys.argv[1:])
"""


def test_two_processes_resume_what_two_processes_began(tmp_path: Path, two: RunFolder) -> None:
    broken = RunFolder(tmp_path / "broken")
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    stopped = _start(broken.path, 2, str(script))
    _, errors = stopped.communicate(timeout=240)
    assert stopped.returncode != 0
    assert "interrupted by the test" in errors
    assert broken.checkpoint_file.is_file()
    assert not broken.weights_file.exists()
    _train(broken.path, 2)
    mine, other = load_file(broken.weights_file), load_file(two.weights_file)
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)


def test_two_processes_train_what_one_trains(tmp_path: Path, two: RunFolder) -> None:
    x, _ = load_dataset("digits").test.batch(slice(0, 100))
    one = RunFolder(tmp_path / "one")
    _train(one.path, 1)
    radii = []
    for folder in (one, two):
        freeze_run(folder)
        radii.append(certify(folder.frozen(), x).radius)
    difference = (radii[0] - radii[1]).abs().max()
    assert float(difference) < RADIUS_TOLERANCE


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "meta", "cpu:x", ""])
def test_a_device_that_cannot_compute_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match=f"device must be .*got '{device}'; use cpu"):
        join_processes(device)
