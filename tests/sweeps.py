"""Sweeps over seeds: a few at every run of the tests, ten thousand at night."""

import json
import os
import subprocess
import sys

import pytest

Counts = dict[str, int]


def parts(few: int) -> list[object]:
    """Seeds, and inputs a network: so many seeds at every run, the others in thousands."""
    night = [range(start, start + 1000) for start in range(few, few + 10_000, 1000)]
    return [
        (range(few), 2),
        *(pytest.param(seeds, 4, marks=pytest.mark.nightly) for seeds in night),
    ]


def swept(module: str, seeds: range, inputs: int) -> tuple[Counts, Counts]:
    """What the ``report`` of a module found and met; in a process of its own, since the run-time
    checks of types take longer than all the rest."""
    script = f"import {module}; {module}.report({seeds}, {inputs})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found, met = json.loads(done.stdout)
    return found, met
