"""Programs in other languages against ``certify``, on 100 handwritten digits.

Exports the network of a run of ``digits`` (or trains one in a temporary folder, in seconds), has
each program answer the inputs, and compares labels and radii. In the folder of this file:

    python compare.py --run RUN --program build/certify --program "node javascript/certify.mjs"

Exit status: 1 where a program disagrees, 2 where one cannot be run, or the network not exported.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import unitmargin as um

SAMPLES = 100

TOLERANCE = 1e-9
"""Largest difference of two radii, which are of the order of 1: the bounds in an exported file are
rounded by parts of 2^-40, so radii differ by 1e-12."""


def write_inputs(x: Tensor, file: Path) -> None:
    """A file of raw little-endian float32 numbers, input by input."""
    file.write_bytes(x.numpy().astype("<f4").tobytes())


def answers(program: str, model: Path, inputs: Path) -> list[dict[str, Any]]:
    """What a program says of each input; ChildProcessError where it cannot be run or read."""
    try:
        command = [*shlex.split(program), str(model), str(inputs)]
        done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
        return [_answer(line) for line in done.stdout.splitlines()]
    except subprocess.CalledProcessError as error:
        reason = f"exit status {error.returncode}, {error.stderr.strip()}"
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise ChildProcessError(f"{program}: must print one line of JSON an input, got {reason}")


def _answer(line: str) -> dict[str, Any]:
    answer = json.loads(line)
    return {**answer, "label": answer["label"], "radius": float(answer["radius"])}


def compare(found: Sequence[dict[str, Any]], true: um.Certificate) -> tuple[int, float]:
    """How many inputs got another label than by ``certify``, and the largest difference of radii.

    An input without a line has another label. Where the radius is within the tolerance of 0 there
    may be no label.
    """
    labels, radii = true.label.tolist(), true.radius.tolist()
    others = abs(len(found) - len(labels))
    differences = [0.0]
    for answer, label, radius in zip(found, labels, radii, strict=False):
        allowed = (label,) if radius > TOLERANCE else (label, None)
        others += answer["label"] not in allowed
        differences.append(abs(answer["radius"] - radius))
    return others, float(np.max(differences))  # NaN if one is


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, help="a run of digits; default: one is trained")
    parser.add_argument("--program", action="append", required=True, help="a command; repeatable")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = options.run or trained(Path(folder) / "digits")
            frozen = um.load(run / "model.safetensors")
            x, _ = um.load_dataset("digits").test.batch(slice(0, SAMPLES))
            return status(options.program, frozen, x, Path(folder))
        except (OSError, ValueError, ImportError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2


def trained(run: Path) -> Path:
    """A run folder of the digits."""
    for step in (["train", "digits", "--out", str(run)], ["freeze", str(run)]):
        subprocess.run([sys.executable, "-m", "unitmargin", *step], check=True)
    return run


def status(programs: Sequence[str], frozen: um.FrozenNetwork, x: Tensor, folder: Path) -> int:
    """Exit status of a comparison of all programs, which prints a line for each."""
    model, inputs = folder / "model.onnx", folder / "inputs.f32"
    um.export_onnx(frozen, model)
    write_inputs(x, inputs)
    true = um.certify(frozen, x, profile="float64")
    worst = 0
    for program in programs:
        try:
            others, largest = compare(answers(program, model, inputs), true)
        except ChildProcessError as error:
            print(error, file=sys.stderr)
            worst = 2
            continue
        print(
            f"{program}: {others} other labels on {len(x)} inputs, largest difference of radii "
            f"{largest:.1e} (radii up to {float(true.radius.max()):.3g})"
        )
        agrees = others == 0 and largest <= TOLERANCE
        worst = max(worst, 0 if agrees else 1)
    return worst


if __name__ == "__main__":
    torch.set_num_threads(1)  # the networks are too small for more
    sys.exit(main())
