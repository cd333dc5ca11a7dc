"""A wrong argument of any public function is one line: argument, rule, value, next step.

The table is ``wrong_kinds.txt``: a call, the kind of its error and its line, or ``works``. The
calls run in a process of its own, where no types are checked before the library judges.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unitmargin as um

PROGRAM = """
import json, sys, tempfile, warnings
import numpy as np, pandas, torch
import unitmargin as um
from unitmargin.data import Samples

warnings.simplefilter("ignore")  # torch announces prototypes: nested and quantised tensors

class Two(torch.nn.Module):
    def forward(self, x):
        return x, x

torch.manual_seed(0)
folder = tempfile.mkdtemp()
model = um.DenseUGNN((2,), 2)
frozen = um.freeze(model, domain=(0, 1))
x, y = torch.tensor([[0.25, 0.5], [0.1, 0.0], [1.0, 0.5], [0.75, 0.3]]), torch.tensor([0, 1, 0, 1])
certificate = um.certify(frozen, x)
um.save(frozen, folder + "/model.safetensors")
guard = um.Guard(folder + "/model.safetensors")
digits = um.load_dataset("digits", limit=4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y))
answers = []
for call in json.load(sys.stdin):
    try:
        eval(call)
        answers.append(["works", ""])
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        kind = next((kind for kind in kinds if kind in ("TypeError", "ValueError")), kinds[0])
        answers.append([kind, str(error).replace(folder, "FOLDER")])
print(json.dumps(answers))
"""

RECORDS = [
    record.split("\n")
    for record in (Path(__file__).parent / "wrong_kinds.txt").read_text().strip().split("\n\n")
]

CALLS = [call for call, *_ in RECORDS]

LINE = r"[\w .:]+ must .+, got .+; .+|\w+ is no option, known: .+; .+|.*: must be .+; .+"
"""Argument, rule, value, next step."""


@pytest.fixture(scope="module")
def answers() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(CALLS),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(CALLS, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("record", RECORDS, ids=CALLS)
def test_a_wrong_argument_is_one_line(record: list[str], answers: dict[str, list[str]]) -> None:
    call, kind, *lines = record
    assert answers[call] == [kind, *(lines or [""])]
    assert kind == "works" or re.fullmatch(LINE, lines[0])


def test_the_table_names_every_public_function_once_at_least() -> None:
    results = {"Answer", "Certificate", "ClosestAdversarial", "MapResult"}
    assert len(set(CALLS)) == len(CALLS) >= 50
    for name in set(um.__all__) - results:
        assert any(f"um.{name}(" in call for call in CALLS), name
