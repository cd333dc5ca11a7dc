"""A shipped certificate against ``certify``: medians of interleaved calls in one run, and ratios.

    python benchmarks/deploy.py [--runs DIGITS CIFAR] [--batches 1 256] [--threads 1 2]
        [--rounds 30] [--no-aot] [--json FILE]

Each number of threads is a process of its own. Networks are those of the run folders, or untrained
ones of the same shapes. The cold start of the guard is measured in a process without torch.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from timing import interleaved_medians

WARM_UP = 3
"""Calls before the clock starts."""

DIGITS, IMAGES = (1, 8, 8), (3, 32, 32)
"""Shapes of the inputs of networks that nobody trained."""

GOAL = 1.5
"""What a certificate of the shipped file may cost at most, in certificates of the library."""

COLD_START = """
import sys, time
sys.modules["torch"] = None
started = time.perf_counter()
import numpy as np
from unitmargin.guard import Guard
guard = Guard(sys.argv[1])
guard(np.full(guard.model.in_shape, 0.5, dtype=np.float32))
print(time.perf_counter() - started)
"""


def elapsed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def networks(runs: list[Path]) -> dict[str, Any]:
    """Frozen networks by name."""
    import torch

    from unitmargin import UGNN, freeze, load
    from unitmargin.runs.opening import recipe_model
    from unitmargin.runs.recipe import read_recipe
    from unitmargin.runs.shipped import embedded_recipe

    if runs:
        return {run.name: load(run / "model.safetensors") for run in runs}
    torch.manual_seed(0)
    digits = UGNN(in_shape=DIGITS, n_classes=10)
    images = recipe_model(read_recipe(embedded_recipe(Path("cifar10-fast"))), IMAGES, 10)
    return {"digits": freeze(digits), "cifar10": freeze(images)}


def contenders(
    frozen: Any, folder: Path, threads: int, aot: bool
) -> dict[str, Callable[[Any], Any]]:
    """What answers a float32 tensor: certificates first, then what certifies nothing."""
    import torch

    from unitmargin import Guard, certify, certifying_network, export_onnx

    file = folder / "model.onnx"
    export_onnx(frozen, file)
    guard = Guard(file, threads=threads)
    twin = frozen.deployed("float64").float()
    calls: dict[str, Callable[[Any], Any]] = {
        "certify": lambda x: certify(frozen, x),
        "onnxruntime": lambda x: guard.model.certify(x.numpy()),
        "guard": lambda x: guard(x.numpy()),
        "twin": lambda x: twin(x),
    }
    if aot:
        x = torch.rand(2, *frozen.in_shape)
        shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
        exported = torch.export.export(certifying_network(frozen), (x,), dynamic_shapes=shapes)
        package = torch._inductor.aoti_compile_and_package(
            exported, package_path=str(folder / "model.pt2")
        )
        calls["aotinductor"] = torch._inductor.aoti_load_package(package)
    return calls


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Median seconds of every contender, network and batch, with this process's threads."""
    import torch

    threads = torch.get_num_threads()
    found: dict[str, Any] = {}
    for name, frozen in networks(arguments.runs).items():
        with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
            calls = contenders(frozen, Path(folder), threads, arguments.aot)
            for size in arguments.batches:
                x = torch.rand(size, *frozen.in_shape)
                timed = {key: partial(elapsed, partial(call, x)) for key, call in calls.items()}
                rounds = arguments.rounds if size == 1 else max(arguments.rounds // 4, 3)
                found[f"{name}_{size}"] = interleaved_medians(timed, WARM_UP, rounds)
            found[f"{name}_cold_start"] = cold_start(Path(folder) / "model.onnx", threads)
    return found


def cold_start(file: Path, threads: int) -> float:
    """Median seconds from import to first answer, of five processes without torch."""
    command = [sys.executable, "-c", COLD_START, str(file)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        for _ in range(5)
    ]
    return float(np.median([float(run.stdout) for run in runs]))


def show(threads: int, found: dict[str, Any]) -> None:
    for name, times in found.items():
        if isinstance(times, float):
            print(f"{threads} threads  {name:<20} {times:.2f} s")
            continue
        parts = "  ".join(f"{key} {1e3 * value:.2f}" for key, value in times.items())
        ratio = times["onnxruntime"] / times["certify"]
        print(f"{threads} threads  {name:<12} {parts} ms  onnxruntime / certify = {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, nargs="*", default=[])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 256])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-aot", dest="aot", action="store_false")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments)))
        return
    from unitmargin.foundation.files import write_json
    from unitmargin.runs.provenance import provenance

    content: dict[str, Any] = {"rounds": arguments.rounds, "goal": GOAL}
    for threads in arguments.threads:
        command = [sys.executable, __file__, "--inside", *sys.argv[1:]]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(
            command, check=True, text=True, stdout=subprocess.PIPE, env=environment
        )
        content[f"threads_{threads}"] = json.loads(done.stdout.splitlines()[-1])
        show(threads, content[f"threads_{threads}"])
    if arguments.json:
        write_json(arguments.json, content | provenance())


if __name__ == "__main__":
    main()
