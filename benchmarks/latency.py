"""Latency of the deployed network against the plain twin: medians of interleaved passes, ratios.

python benchmarks/latency.py [--network mixing] [--batches 1 256] [--rounds 30] [--threads 1]
    [--json FILE] [--device cuda]
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from networks import CONTENDERS, IN_SHAPE
from timing import interleaved_medians

from unitmargin.certificates.certify import certify
from unitmargin.foundation.files import write_json
from unitmargin.models.freezing import freeze
from unitmargin.runs.provenance import provenance

WARM_UP = 5
"""Passes before the clock starts."""


@torch.inference_mode()
def seconds(network: nn.Module, x: torch.Tensor) -> float:
    started = time.perf_counter()
    network(x)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def measure(networks: dict[str, Any], x: torch.Tensor, rounds: int) -> dict[str, float]:
    """Median seconds of a forward pass of each network."""
    calls = {name: partial(seconds, network, x) for name, network in networks.items()}
    return interleaved_medians(calls, WARM_UP, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 256])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, help="of torch; default: all cores")
    parser.add_argument("--device", default="cpu")
    networks_of_ours = ("on_manifold", "parametrised", "mixing")
    parser.add_argument("--network", choices=networks_of_ours, default="on_manifold")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    frozen = freeze(CONTENDERS[arguments.network](device).model)
    networks = {
        "plain": frozen.network,
        "frozen": frozen,
        "twin": CONTENDERS["twin"](device).model.eval(),
        "certify": lambda x: certify(frozen, x),
    }
    asked = ("network", "rounds", "threads", "device")
    content: dict[str, Any] = {name: getattr(arguments, name) for name in asked}
    for size in arguments.batches:
        times = measure(networks, torch.rand(size, *IN_SHAPE, device=device), arguments.rounds)
        ratio = times["plain"] / times["twin"]
        content[f"batch_{size}"] = {"seconds": times, "plain_over_twin": ratio}
        parts = "  ".join(f"{name} {1e3 * value:.2f} ms" for name, value in times.items())
        print(f"batch {size:<4} {parts}  plain / twin = {ratio:.3f}")
    if arguments.json:
        write_json(arguments.json, content | provenance())


if __name__ == "__main__":
    main()
