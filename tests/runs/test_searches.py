"""The file of solver answers: what is written returns, and damage names the command."""

from pathlib import Path

import pytest
import torch
from searches import made_search

from unitmargin.runs.folder import RunError
from unitmargin.runs.searches import HEADER, read_searches, write_searches


def test_the_file_returns_what_was_written(tmp_path: Path) -> None:
    searches = [
        made_search([1 / 3, 0.5, 3.0], [0.1 + 0.2, torch.inf, 0.0]),
        made_search([1.0], [2.0], "ddn", (0.0, 1.0)),
    ]
    file = tmp_path / "solvers.csv"
    write_searches(file, searches)
    assert file.read_text().splitlines()[0] == ",".join(HEADER)
    for written, read in zip(searches, read_searches(file), strict=True):
        assert (read.solver, read.settings, read.box) == (
            written.solver,
            written.settings,
            written.box,
        )
        for name in ("index", "label", "radius", "distance", "status", "n_forward", "n_backward"):
            assert torch.equal(getattr(read, name), getattr(written, name)), name


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no rows"), ("index,label\n1,2\n", "damaged"), (",".join(HEADER) + "\n1,2\n", "damaged")],
)
def test_damaged_files_name_the_command(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "solvers.csv"
    file.write_text(text)
    with pytest.raises(RunError, match=rf"{message}.*run `unitmargin verify {tmp_path}` again"):
        read_searches(file)
