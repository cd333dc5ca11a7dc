"""All solvers and outside references on the same networks: distance, success, calls, time.

    python benchmarks/solvers.py --quick
    python benchmarks/solvers.py --run RUN --data IMAGES --json FILE --markdown FILE --picture FILE

Networks: a UGNN and a small ReLU CNN, both trained on the digits here, and the frozen network of a
run folder. Every point, also that of an outside attack, is judged by one rule, a float64 forward
pass with margin <= -tau, and refined on its segment from x in the same way. ``best known`` is the
minimum over the whole table, without and with the box apart. Calls are counted a sample. A
measurement is written to ``--state`` when it is made and read from there the next time.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from solver_networks import IN_PLACE, Case, run_case
from solver_references import references
from solver_tables import OUTSIDE, Measurement, Row, draw, markdown, rows

from unitmargin.certificates.certify import certify
from unitmargin.foundation.files import write_json, write_text
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.provenance import commit, provenance
from unitmargin.solvers import SOLVERS, Solver
from unitmargin.solvers.driver import search

BOX = (0.0, 1.0)
BOXES = {"free": False, "box": True}
REFINEMENTS, BATCH = 20, 512

PLAIN = ("deepfool", "closest_boundary", "fast_outer_boundary", "fmn", "alma", "closed_form")
"""Solvers measured as they come."""

LONG = ("1000", "300", "iterative", "carlini", *OUTSIDE)
"""Words in the names of rows that are measured last, and on few images of a large network."""


@dataclass(frozen=True)
class Entry:
    """One row to be measured."""

    name: str
    solver: Solver
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def long(self) -> bool:
        return any(word in self.name for word in LONG)


def entries(case: Case, boxed: bool, quick: bool) -> list[Entry]:
    """Rows of one case, the dear ones last.

    Iterative Penalty (published without a box only) keeps its published budget where a call costs
    microseconds.
    """
    published = case.small and not quick and not boxed and isinstance(case.model, FrozenNetwork)
    penalty = {"searches": 12, "steps": 10_000 if published else 300}
    short = {"searches": 6, "steps": 100}
    wagner = {"searches": 9, "steps": 1000 if published else 200}
    options: dict[str, tuple[str, dict[str, Any]]] = {
        f"sphere_tracing {steps}": ("sphere_tracing", {"steps": steps})
        for steps in (5, 10, 30, 100)
    }
    thorough = {"steps": 300, "n_candidates": 9, "last_turn": 0.002}
    options |= {
        "sphere_tracing 30, one class": ("sphere_tracing", {"n_candidates": 1}),
        "sphere_tracing 300, all classes": ("sphere_tracing", thorough),
        "margin DDN 30": ("margin_ddn", {"steps": 30}),
        "margin DDN 100": ("margin_ddn", {}),
        "margin DDN 1000": ("margin_ddn", {"steps": 1000}),
        "cross-entropy DDN 100": ("ddn", {}),
        "cross-entropy DDN 1000": ("ddn", {"steps": 1000}),
        "cross-entropy DDN 100, temperature 30": ("ddn", {"temperature": 30.0}),
        budget("iterative_penalty", penalty): ("iterative_penalty", penalty),
        budget("carlini_wagner", wagner): ("carlini_wagner", wagner),
    }
    options |= {name: (name, {}) for name in PLAIN}
    if not case.small:
        options[budget("iterative_penalty", short)] = ("iterative_penalty", short)
    made = [Entry(name, SOLVERS[solver], some) for name, (solver, some) in options.items()]
    made += [Entry(name, solver) for name, solver in references(boxed, wagner["steps"]).items()]
    return sorted(made, key=lambda entry: entry.long)


def budget(solver: str, options: dict[str, int]) -> str:
    return f"{solver} {options['searches']} x {options['steps']}"


def measure(case: Case, boxed: bool, entry: Entry, state: Path, stored: bool) -> Measurement | None:
    """One solver on one case; the stored measurement if there is one of the same case."""
    words = f"{case.name} {'box' if boxed else 'free'} {entry.name} {len(case.labels)}"
    file = state / f"{''.join(c if c.isalnum() else '-' for c in words)}.json"
    settings = {"case": case.fingerprint(), "options": entry.options}
    content = json.loads(file.read_text()) if file.is_file() else {}
    if content.get("settings") != settings:
        if stored:
            return None
        started = time.perf_counter()
        found = search(
            entry.solver,
            *(case.model, case.inputs, case.labels, BOX if boxed else None),
            *(REFINEMENTS, BATCH, False, entry.options),
        )
        seconds = time.perf_counter() - started
        names = ("distance", "status", "n_forward", "n_backward")
        content = {"settings": settings, "commit": commit(), "seconds": seconds}
        content |= {name: getattr(found, name).tolist() for name in names}
        write_json(file, content)
    return Measurement(
        network=case.name,
        box=boxed,
        solver=entry.name,
        commit=content["commit"],
        distance=torch.tensor(content["distance"], dtype=torch.float64),
        status=torch.tensor(content["status"]),
        n_forward=torch.tensor(content["n_forward"]),
        n_backward=torch.tensor(content["n_backward"]),
        seconds=content["seconds"],
    )


def measure_case(case: Case, boxed: bool, arguments: argparse.Namespace) -> list[Row]:
    """All asked-for rows of one case."""
    made = []
    for entry in entries(case, boxed, arguments.quick):
        if arguments.only and entry.name not in arguments.only:
            continue
        few = entry.long and not case.small
        limits = [arguments.long_samples if few else arguments.samples]
        if arguments.stored and few:
            limits = [arguments.samples, *limits]
        for limit in limits:
            one = measure(case.take(limit), boxed, entry, arguments.state, arguments.stored)
            if one is not None:
                break
        if one is None:
            continue
        mean = float(one.distance[torch.isfinite(one.distance)].mean())
        print(f"{case.name}, {boxed=}, {entry.name}: {mean:.5f}, {one.seconds:.1f} s", flush=True)
        made.append(one)
    if not made:
        return []
    radius = torch.zeros(len(case.labels), dtype=torch.float64)
    if isinstance(case.model, FrozenNetwork):
        radius = certify(case.model, case.inputs).radius
    return rows(made, radius)


def cases(arguments: argparse.Namespace) -> list[Case]:
    names = arguments.networks or [*IN_PLACE, *(["run"] if arguments.run else [])]
    makers = {name: partial(make, quick=arguments.quick) for name, make in IN_PLACE.items()}
    if arguments.run:
        makers["run"] = partial(run_case, arguments.run, arguments.data)
    return [makers[name](samples=arguments.samples) for name in names]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="50 digits, short budgets: a minute")
    parser.add_argument("--networks", nargs="+", choices=[*IN_PLACE, "run"])
    parser.add_argument("--run", type=Path, help="a run folder with a frozen network")
    parser.add_argument("--boxes", nargs="+", choices=BOXES, default=list(BOXES))
    parser.add_argument("--data", type=Path, help="its images, if they lie elsewhere by now")
    parser.add_argument("--samples", type=int, help="correctly labelled samples a network")
    parser.add_argument(
        "--long-samples", type=int, default=50, help="of a run, for long rows and outside attacks"
    )
    parser.add_argument("--only", nargs="+", default=[], help="names of rows")
    parser.add_argument("--state", type=Path, default=Path("build/solvers"))
    parser.add_argument("--stored", action="store_true", help="measure nothing, report the state")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    arguments.samples = arguments.samples or (50 if arguments.quick else 500)
    if "run" in (arguments.networks or []) and not arguments.run:
        parser.error("--networks run needs --run FOLDER; name the folder")
    return arguments


def main() -> None:
    arguments = parse()
    table: list[Row] = []
    for case in cases(arguments):
        for box in arguments.boxes:
            table += measure_case(case, BOXES[box], arguments)
    text = markdown(table)
    print(text)
    if arguments.markdown:
        write_text(arguments.markdown, text)
    if arguments.picture:
        draw(table, arguments.picture)
    if arguments.json:
        about = provenance() | {"quick": arguments.quick}
        write_json(arguments.json, about | {"rows": [asdict(one) for one in table]})


if __name__ == "__main__":
    main()
