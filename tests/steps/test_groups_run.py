"""A whole run in a group of processes, on one machine and on two of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from groups import free_port, in_group

from unitmargin.certificates.joined import join_searches
from unitmargin.certificates.tightness import Search
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe, parse_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.run import run_recipe
from unitmargin.steps.verify import verify_run
from unitmargin.training.processes import join_processes

AGREEMENT = 1e-6
"""Batches of another size round otherwise."""


def recipe() -> Recipe:
    return parse_recipe(
        {
            "name": "moons",
            "verify_samples": 9,
            "data": {"name": "moons", "limit": 120},
            "model": {"name": "dense_ugnn", "hidden": [2, 2]},
            "training": {"epochs": 2, "batch_size": 40},
        },
        "recipe",
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """What one process makes."""
    folder = RunFolder(tmp_path_factory.mktemp("one") / "run")
    assert run_recipe(recipe(), folder)
    return folder


def test_two_processes_walk_a_recipe(tmp_path: Path, run: RunFolder) -> None:
    folder = RunFolder(tmp_path / "two")
    assert in_group(2, lambda: run_recipe(recipe(), folder)) == [True, True]
    mine, other = folder.certificates(), run.certificates()
    assert torch.allclose(mine.radius, other.radius, atol=AGREEMENT, rtol=0)
    assert folder.findings().passed
    assert folder.report_html.is_file()
    assert not folder.checkpoint_file.exists()


def certified(folder: RunFolder, out: Path, batch_size: int) -> int:
    processes, _ = join_processes("cpu")
    certify_run(folder, inputs=True, out=out, batch_size=batch_size)
    return processes.rank


@pytest.mark.parametrize("batch_size", [7, 1000])
def test_certificates_of_a_group_are_those_of_one(
    tmp_path: Path, run: RunFolder, batch_size: int
) -> None:
    for count in (1, 3):
        out = tmp_path / str(count)
        assert in_group(count, lambda out=out: certified(run, out, batch_size)) == [*range(count)]
    for name in ("certificates.csv", "certificates.json", "inputs.safetensors"):
        first, second = ((tmp_path / str(count) / name).read_bytes() for count in (1, 3))
        assert first == second


def searched(folder: RunFolder, count: int) -> bool:
    join_processes("cpu")
    return verify_run(folder, n_samples=count, box="off")[1]


@pytest.mark.parametrize("count", [2, 8])
def test_searches_of_a_group_are_those_of_one(run: RunFolder, count: int) -> None:
    found: list[Search] = []
    for group in (1, 3):
        assert all(in_group(group, lambda: searched(run, count)))
        found += run.searches()
    one, many = found
    assert torch.equal(one.index, many.index)
    assert torch.equal(one.status, many.status)
    assert torch.allclose(one.distance, many.distance, atol=AGREEMENT, rtol=0)


def test_parts_of_a_search_are_put_in_order(run: RunFolder) -> None:
    verify_run(run, n_samples=5, box="off")
    (whole,) = run.searches()
    parts = [
        Search(
            **{
                name: value[rank::2] if isinstance(value, torch.Tensor) else value
                for name, value in vars(whole).items()
            }
        )
        for rank in (1, 0)
    ]
    joined = join_searches(parts)
    for name, value in vars(whole).items():
        same = torch.equal(getattr(joined, name), value) if torch.is_tensor(value) else True
        assert same, name


def test_two_nodes_on_the_loopback_address_train_one_network(tmp_path: Path) -> None:
    rendezvous = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
    words = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=test"]
    file = tmp_path / "moons.toml"
    file.write_text(
        'name = "moons"\n[data]\nname = "moons"\nlimit = 120\n[model]\nname = "dense_ugnn"\n'
        "hidden = [2, 2]\n[training]\nepochs = 1\nbatch_size = 40\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", *words, rendezvous, "-m"]
    command += ["unitmargin", "train", str(file), "--out", str(tmp_path / "run")]
    nodes = [
        subprocess.Popen(
            [*command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for _ in range(2)
    ]
    told = [node.communicate(timeout=240) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], told
    assert sorted(output.count("train: 1 epochs") for output, _ in told) == [0, 1]
    assert RunFolder(tmp_path / "run").weights_file.is_file()
