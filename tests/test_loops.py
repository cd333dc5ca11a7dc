"""The loops of others train networks whose weights stay on the manifold: examples/loops."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

LOOPS = Path(__file__).parents[1] / "examples/loops"

NAMES = ("lightning", "accelerate", "skorch")

LARGEST_ERROR = 1e-5
"""What is promised of every orthogonal layer."""


def test_every_example_is_run() -> None:
    assert {file.name for file in LOOPS.glob("*.py")} == {f"{n}_digits.py" for n in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_200_steps_leave_no_manifold_and_come_to_certificates(name: str, tmp_path: Path) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: pip install unitmargin[loops]")
    done = subprocess.run(
        [sys.executable, str(LOOPS / f"{name}_digits.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    error = re.search(r"^200 steps, orthogonality error (\S+)$", done.stdout, re.MULTILINE)
    share = re.search(r"^certified at 0.1: (\S+) of the test set$", done.stdout, re.MULTILINE)
    assert error is not None, done.stdout
    assert share is not None, done.stdout
    assert float(error[1]) <= LARGEST_ERROR
    assert float(share[1]) > 0.9
