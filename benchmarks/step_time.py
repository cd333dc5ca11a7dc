"""Time of one training step, side by side in one run: medians of interleaved steps, and ratios.

    python benchmarks/step_time.py [--quick] [--batch 1024] [--rounds 5] [--json FILE]
        [--device cuda] [--precision float32|tf32|bfloat16] [--compile]

Memory is measured of eager steps and single layers eager in float32; a table of other steps is
without them. Outside references (orthogonium, deel-torchlip) run where they import; ``pip install
--no-deps orthogonium deel-torchlip`` beside this package is enough.
"""

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from networks import CLASSES, CONTENDERS, IN_SHAPE, Contender
from timing import interleaved_medians

from unitmargin.foundation.files import write_json
from unitmargin.runs.provenance import provenance
from unitmargin.training.memory import retained_memory
from unitmargin.training.precision import PRECISIONS

RATIOS = {
    "on_manifold_over_twin": ("on_manifold", "twin"),
    "on_manifold_over_unconstrained": ("on_manifold", "unconstrained"),
    "parametrised_over_twin": ("parametrised", "twin"),
    "on_manifold_over_orthogonium": ("on_manifold", "orthogonium"),
    "on_manifold_over_torchlip": ("on_manifold", "torchlip"),
    "mixing_over_free": ("mixing", "mixing_free"),
}

WARM_UP = 2
"""Steps before the clock starts: first touches of memory cost more than the step itself."""


def batch(size: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(size, *IN_SHAPE, generator=generator)
    return x.to(device), torch.randint(0, CLASSES, (size,), generator=generator).to(device)


def seconds(contender: Contender, x: torch.Tensor, labels: torch.Tensor, precision: str) -> float:
    started = time.perf_counter()
    contender.step(x, labels, precision)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def build(names: list[str], device: torch.device, compiled: bool) -> dict[str, Contender]:
    contenders = {}
    for name in names:
        try:
            contender = CONTENDERS[name](device)
        except ImportError as error:
            print(f"{name}: left out ({error})")
            continue
        model = torch.compile(contender.model) if compiled else contender.model
        contenders[name] = Contender(model, contender.optimizers)
    return contenders


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Median step time of every contender, interleaved."""
    device = torch.device(arguments.device)
    contenders = build(arguments.only or list(CONTENDERS), device, arguments.compile)
    x, labels = batch(arguments.batch, device)
    calls = {
        name: partial(seconds, contender, x, labels, arguments.precision)
        for name, contender in contenders.items()
    }
    return interleaved_medians(calls, WARM_UP, arguments.rounds)


def peak_memory(name: str, arguments: argparse.Namespace) -> float:
    """Mebibytes that steps of one contender take, in a process of its own."""
    command = [sys.executable, __file__, "--memory-of", name, "--batch", str(arguments.batch)]
    command += ["--device", arguments.device, "--precision", arguments.precision]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def peak_resident() -> float:
    """Peak resident memory of this process in mebibytes (``getrusage`` inherits the parent's)."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 2**10


def report_memory(arguments: argparse.Namespace) -> None:
    device = torch.device(arguments.device)
    x, labels = batch(arguments.batch, device)
    # The difference to the peak before the network exists leaves the libraries out.
    before = peak_resident()
    contender = CONTENDERS[arguments.memory_of](device)
    for _ in range(3):
        seconds(contender, x, labels, arguments.precision)
    if device.type == "cuda":
        print(torch.cuda.max_memory_allocated() / 2**20)
    else:
        print(peak_resident() - before)


def beside_steps(arguments: argparse.Namespace) -> dict[str, Any]:
    """Memory and single layers, where they are measured as the steps are."""
    if arguments.compile:
        return {}
    memory = {name: peak_memory(name, arguments) for name in ("on_manifold", "twin")}
    content: dict[str, Any] = {"memory_over_twin": memory["on_manifold"] / memory["twin"]}
    content |= {"mebibytes": memory}
    if arguments.precision == "float32":
        content |= {"layers": layer_table(arguments)}
    return content


def layer_table(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Forward and backward of every layer with a weight, ours on the manifold and the twin's."""
    device = torch.device(arguments.device)
    ours, theirs = CONTENDERS["on_manifold"](device).model, CONTENDERS["twin"](device).model
    layers = [(layer, other) for layer, other in zip(ours.features, theirs[:-1], strict=True)]
    x, _ = batch(arguments.batch, device)
    rows = []
    for layer, other in layers:
        with torch.no_grad():
            following = layer(x)
        if list(layer.parameters()):
            name = f"{type(layer).__name__}({layer.extra_repr()})"
            row: dict[str, Any] = {"layer": name, "input": list(x.shape[1:])}
            calls = {"ours": partial(layer_seconds, layer, x)}
            calls["twin"] = partial(layer_seconds, other, x)
            row |= interleaved_medians(calls, WARM_UP, arguments.rounds)
            rows.append(row | {"ratio": row["ours"] / row["twin"]})
        x = following
    return rows


def layer_seconds(layer: torch.nn.Module, x: torch.Tensor) -> float:
    probe = x.detach().requires_grad_(True)
    started = time.perf_counter()
    output = layer(probe)
    output.backward(torch.ones_like(output))
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="batch 64, 2 rounds: under a minute")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=PRECISIONS)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", nargs="*", choices=CONTENDERS, help="contenders to time")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.batch, arguments.rounds = 64, 2
    return arguments


def main() -> None:
    arguments = parse()
    if arguments.memory_of:
        report_memory(arguments)
        return
    with retained_memory():
        times = measure(arguments)
    content: dict[str, Any] = {
        name: times[ours] / times[theirs]
        for name, (ours, theirs) in RATIOS.items()
        if ours in times and theirs in times
    }
    content |= {"seconds": times, "layers": []}
    if {"on_manifold", "twin"} <= set(times):
        content |= beside_steps(arguments)
    content |= {"batch": arguments.batch, "rounds": arguments.rounds, "device": arguments.device}
    content |= {"precision": arguments.precision, "compiled": arguments.compile}
    for name, value in times.items():
        print(f"{name:<16} {value:8.3f} s a step")
    for name in (*RATIOS, "memory_over_twin"):
        if name in content:
            print(f"{name:<32} {content[name]:.3f}")
    for row in content["layers"]:
        print(f"{row['layer']:<44} {row['ours']:.4f} / {row['twin']:.4f} s = {row['ratio']:.2f}")
    if arguments.json:
        write_json(arguments.json, content | provenance())


if __name__ == "__main__":
    main()
