"""The scripts of the page, run by node: the worker as a browser runs it, and parts alone."""

import base64
import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unitmargin.exploring.program import page_program
from unitmargin.exploring.scripts import bundle
from unitmargin.frozen import FrozenNetwork

DRIVER = Path(__file__).with_name("worker.cjs")

Question = dict[str, Any]


def find_node() -> str | None:
    return shutil.which("node")


def ask(cases: Sequence[tuple[FrozenNetwork, Sequence[Question]]], folder: Path) -> list[list[Any]]:
    """Of each network, the answers to questions; numbers in them are the worker's own."""
    script = folder / "worker.js"
    script.write_text(bundle("worker/main.js"))
    lines = [json.dumps(_case(*case)) + "\n" for case in cases]
    found = subprocess.run(
        [str(find_node()), str(DRIVER), str(script)],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    answers = [json.loads(line)[1:] for line in found.stdout.splitlines()]
    for answer in (answer for case in answers for answer in case):
        assert answer["kind"] != "failed", answer["value"]
    return [[answer["value"] for answer in case] for case in answers]


def evaluate(module: str, expression: str) -> Any:
    """What an expression gives that may use the exports of a module by their names."""
    names = f"Object.assign(globalThis, modules[{module!r}]);"
    script = f"{bundle(module)}{names}console.log(JSON.stringify({expression}));"
    found = subprocess.run(
        [str(find_node()), "-"], input=script, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def question(kind: str, x: Tensor, **others: Any) -> Question:
    """A question about one input, whose doubles are written out."""
    return {"kind": kind, "turn": 1, "x": [repr(entry) for entry in flat(x)], **others}


def flat(x: Tensor) -> list[float]:
    entries: list[float] = x.double().flatten().tolist()
    return entries


def vector(words: Sequence[str]) -> Tensor:
    """Numbers of an answer, NaN and infinity too."""
    names = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
    return torch.tensor(
        [names[word] if word in names else float(word) for word in words], dtype=torch.float64
    )


def _case(frozen: FrozenNetwork, questions: Sequence[Question]) -> dict[str, Any]:
    program = page_program(frozen)
    numbers = base64.b64encode(program.numbers).decode("ascii")
    opened = {"description": program.description, "numbers": numbers}
    return {"open": opened, "questions": list(questions)}
