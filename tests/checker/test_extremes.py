"""The checker is never wrong on networks and inputs of extreme numbers: a sweep."""

import json
import os
import subprocess
import sys

import pytest

NIGHTLY = [range(start, start + 1000) for start in range(200, 10_200, 1000)]


@pytest.mark.parametrize(
    ("seeds", "inputs"),
    [(range(200), 2), *(pytest.param(one, 4, marks=pytest.mark.nightly) for one in NIGHTLY)],
    ids=str,
)
def test_nothing_that_is_proved_of_extreme_networks_is_contradicted(
    seeds: range, inputs: int
) -> None:
    """Differences of logits within the tolerance of the exact ones, labels inside the balls; in a
    process of its own, since the run-time checks of types take longer than all the rest."""
    script = f"import checked_extremes; checked_extremes.report({seeds}, {inputs})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found, met = json.loads(done.stdout)
    assert not found
    assert met["networks"] >= len(seeds) // 2  # the others are refused: no file may hold them
    assert met["networks with a radius"] >= len(seeds) // 2
    assert met["evaluations compared"] >= inputs * met["networks"]
