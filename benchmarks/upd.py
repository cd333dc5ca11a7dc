"""UPD heads side by side: pair error and time of simplex, bounded and L-BFGS, by classes.

    python benchmarks/upd.py [--classes 10 43 100 1000] [--rounds 5] [--json FILE]

Forward and backward of the head's weight in float32 from a start off the UPD set, medians of
interleaved runs; ratios are to the closed form.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from timing import interleaved_medians

from unitmargin.foundation.files import write_json
from unitmargin.heads import UPD_HEADS, UPDHead
from unitmargin.layers.promises import UPD
from unitmargin.runs.provenance import provenance

NOISE = 0.05
"""Size of the perturbation of each entry relative to its row: what a training step leaves."""


WARM_UP = 1
"""Rounds before the clock counts."""


def heads(classes: int, features: int) -> dict[str, UPDHead]:
    torch.manual_seed(classes)
    made = {name: kind(features, classes) for name, kind in UPD_HEADS.items()}
    with torch.no_grad():
        for head in made.values():
            head.raw += NOISE * torch.randn_like(head.raw) / features**0.5
    return made


def seconds(head: UPDHead, gradient: torch.Tensor) -> float:
    started = time.perf_counter()
    head.weight().backward(gradient)
    elapsed = time.perf_counter() - started
    head.zero_grad()
    return elapsed


def rows(classes: int, rounds: int) -> list[dict[str, float | int | str]]:
    features = max(512, classes)
    made = heads(classes, features)
    gradient = torch.randn(classes, features)
    calls = {name: partial(seconds, head, gradient) for name, head in made.items()}
    medians = interleaved_medians(calls, WARM_UP, rounds)
    return [
        {
            "classes": classes,
            "features": features,
            "head": name,
            "pair_error": UPD.measure(head.weight()),
            "seconds": medians[name],
            "over_simplex": medians[name] / medians["simplex"],
        }
        for name, head in made.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="*", default=[10, 43, 100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    table = [row for classes in arguments.classes for row in rows(classes, arguments.rounds)]
    print(f"{'classes':>7} {'head':<8} {'pair error':>10} {'seconds':>9} {'/ simplex':>9}")
    for row in table:
        print(
            f"{row['classes']:>7} {row['head']:<8} {row['pair_error']:>10.1e} "
            f"{row['seconds']:>9.4f} {row['over_simplex']:>9.1f}"
        )
    if arguments.json:
        write_json(arguments.json, {"rows": table} | provenance())


if __name__ == "__main__":
    main()
