"""What the runs of mutants say: a mutant that changes nothing survives, a broken run kills none."""

from pathlib import Path

import pytest
from mutants import NOT_LOADED, Mutant, run_test_of

DOWN = "certificates/test_certify.py::test_the_slack_is_subtracted_before_the_division"
MUTANT = Mutant(
    "rounding down",
    "certificates/certify.py",
    "DOWN = 1.0 - 2.0**-40",
    "DOWN = 1.0",
    DOWN,
)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({}, 1, id="killed"),
        pytest.param({"new": MUTANT.old}, 0, id="survives"),
        pytest.param({"module": "checker/table.py", "new": MUTANT.old}, NOT_LOADED, id="unused"),
        pytest.param({"new": "DOWN = "}, NOT_LOADED, id="no program"),
        pytest.param({"test": "certificates/test_certify.py::test_absent"}, 4, id="no test"),
    ],
)
def test_only_a_failed_test_kills(tmp_path: Path, changes: dict[str, str], status: int) -> None:
    done = run_test_of(MUTANT._replace(**changes), tmp_path)
    assert done.returncode == status, done.stdout
