"""The rounding attack on a run's certificates: every profile, weights of 32 and of 16 bits.

    python benchmarks/rounding.py RUN --state FILE --samples 500
    python benchmarks/rounding.py RUN --engine onnxruntime --profiles float64

Each point of the test data (then of the training data) is attacked where it is, and moved to each
distance ``--near`` from the boundary: far enough for sound certificates, and so near that the
network is linear up to the boundary, where rounding alone decides. Weights are rounded to float16
and bfloat16 and evaluated by the profiles that hold them. Results of ten points at a time are added
to ``--state`` when they are made, and not made again: the command can be stopped and started at
will. With ``--engine onnxruntime`` the exported network is attacked, by float64 inputs. "No power"
marks a row in which too few naive certificates broke for sound ones that hold to mean something.
Exit status 1 if a sound certificate broke.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unitmargin.certificates.rounding_attack import (
    CANDIDATES,
    RADII,
    RoundingAttack,
    near_boundary,
    rounding_attack,
)
from unitmargin.deployment import export_onnx
from unitmargin.foundation.files import write_json
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.guard import OnnxModel
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.opening import open_dataset
from unitmargin.runs.provenance import provenance

BATCH = 10
WEIGHTS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Case(NamedTuple):
    """One row of the table; ``near`` is 0 for points where they are."""

    weights: str
    profile: str
    near: float

    def __str__(self) -> str:
        return f"{self.weights} {self.profile} {self.near:g}"


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    for weights in arguments.weights:
        for profile in arguments.profiles:
            for near in arguments.near:
                yield Case(weights, profile, near)


def load_points(run: RunFolder, data: Path | None, samples: int) -> Tensor:
    """The first samples of the test data, spread evenly, then of the training data."""
    recipe = run.recipe()
    path = recipe.data.path if data is None else str(data)
    dataset = open_dataset(recipe.changed(data={"path": path}))
    test = dataset.test.batch(dataset.test.spread(samples))[0]
    missing = samples - len(test)
    if missing <= 0:
        return test
    return torch.cat((test, dataset.train.batch(dataset.train.spread(missing))[0]))


def onnx_logits(network: FrozenNetwork) -> Callable[[Tensor], Tensor]:
    """The logits of the exported network, evaluated by ONNX Runtime."""
    with tempfile.TemporaryDirectory() as folder:
        export_onnx(network, Path(folder) / "model.onnx", inputs="float64")
        model = OnnxModel(Path(folder) / "model.onnx")

    def evaluate(x: Tensor) -> Tensor:
        (logits,) = model.session.run(["logits"], {"x": x.numpy()})
        return torch.from_numpy(logits)

    return evaluate


def attack(
    network: FrozenNetwork,
    case: Case,
    points: Tensor,
    seed: int,
    candidates: int,
    evaluate: Callable[[Tensor], Tensor] | None,
) -> dict[str, Any]:
    """Counts of one batch."""
    start = time.process_time()
    inputs = near_boundary(network, points, case.near) if case.near else points
    found = rounding_attack(network, inputs, case.profile, candidates, seed, evaluate)
    seconds = time.process_time() - start
    return {"samples": len(points), "issued": found.issued, "broken": found.broken,
            "seconds": seconds}  # fmt: skip


def read_state(arguments: argparse.Namespace) -> dict[str, Any]:
    """The state of earlier calls, or of none.

    Raises:
        ValueError: one of another run or of other options.
    """
    about = {key: getattr(arguments, key) for key in ("candidates", "samples", "engine")}
    about["run"] = RunFolder(arguments.run).path.name
    if not arguments.state.exists():
        return about | {"cases": {}}
    state: dict[str, Any] = json.loads(arguments.state.read_text())
    if {key: state.get(key) for key in about} != about:
        raise ValueError(
            f"state must be of this run and these options, got {arguments.state} of "
            f"{state.get('run')}; move it, or pass another --state"
        )
    return state


def measure(arguments: argparse.Namespace, state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All batches of all cases, those of the state as they are."""
    run = RunFolder(arguments.run)
    points = load_points(run, arguments.data, arguments.samples).split(BATCH)
    for case in cases(arguments):
        network = run.frozen().to(WEIGHTS[case.weights])
        evaluate = onnx_logits(network) if arguments.engine == "onnxruntime" else None
        batches = state["cases"].setdefault(str(case), {})
        for index, some in enumerate(points):
            if str(index) not in batches:
                options = index, arguments.candidates, evaluate
                batches[str(index)] = attack(network, case, some, *options)
                write_json(arguments.state, state | provenance())
        print(markdown_row(case, batches.values()), flush=True)
    return {str(case): state["cases"][str(case)] for case in cases(arguments)}


def markdown_row(case: Case, batches: Any) -> str:
    total = sum(batch["samples"] for batch in batches)
    seconds = sum(batch["seconds"] for batch in batches) / max(total, 1)
    issued, broken = (
        {name: sum(batch[what][name] for batch in batches) for name in RADII}
        for what in ("issued", "broken")
    )
    shares = [f"{broken[name]} of {issued[name]}" for name in RADII]
    weak = not RoundingAttack(case.profile, total, issued, broken, ()).has_power
    place = f"{case.near:g}" if case.near else "test"
    cells = [case.weights, f"`{case.profile}`", place, *shares, f"{seconds:.2f}"]
    return f"| {' | '.join(cells)} |{' no power' if weak else ''}"


def parse() -> tuple[argparse.Namespace, dict[str, Any]]:
    """The arguments and the state that they name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="a run folder with a frozen network")
    parser.add_argument("--data", type=Path, help="its images, if they lie elsewhere by now")
    parser.add_argument("--state", type=Path, default=Path("build/rounding.json"))
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--candidates", type=int, default=CANDIDATES)
    parser.add_argument("--near", nargs="+", type=float, default=[0.0, 0.02, 0.0001], metavar="D",
                        help="distances from the boundary; 0: where they are")  # fmt: skip
    parser.add_argument("--weights", nargs="+", choices=WEIGHTS, default=list(WEIGHTS))
    parser.add_argument("--engine", choices=("torch", "onnxruntime"), default="torch")
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=list(PROFILES))
    arguments = parser.parse_args()
    try:
        RunFolder(arguments.run).model()
        return arguments, read_state(arguments)
    except (OSError, ValueError, RunError) as error:
        parser.error(str(error))


def main() -> None:
    arguments, state = parse()
    broken = 0
    print("| weights | profile | points | naive broken | margin / L broken | sound broken | s |")
    print("|---|---|---|---|---|---|---|")
    for batches in measure(arguments, state).values():
        broken += sum(batch["broken"]["sound"] for batch in batches.values())
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
