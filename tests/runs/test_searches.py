"""The file of solver answers: what is written returns, and what does not fit is refused."""

from pathlib import Path

import pytest
import torch
from certified import made_certificates, write_made, write_made_searches
from searches import made_search
from tables import read_rows, write_rows

from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.searches import NUMBERS, SHARED

SEARCHES = [
    made_search([1 / 3, 0.5, 3.0], [0.1 + 0.2, torch.inf, 0.0]),
    made_search([1 / 3, 0.5, 3.0], [2.0, 2.0, 2.0], "ddn", (0.0, 1.0)),
    made_search([4 / 3, 2.0, 12.0], [2.0, 2.0, 12.0], "ddn", (0.0, 1.0), "normalised"),
]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    write_made(run, made_certificates([0, 1, 0], [1 / 3, 0.5, 3.0]))
    write_made_searches(run, SEARCHES)
    return run


def test_the_file_returns_what_was_written(folder: RunFolder) -> None:
    for written, read in zip(SEARCHES, folder.searches(), strict=True):
        for name in SHARED:
            assert getattr(read, name) == getattr(written, name), name
        for name in NUMBERS:
            assert torch.equal(getattr(read, name), getattr(written, name)), name


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("index", "3", "each sample once"),
        ("index", "1", "each sample once"),
        ("label", "1", "labels and radii of certificates.csv"),
        ("radius", "0.4", "labels and radii of certificates.csv"),
        ("radius", "nan", "radius in line 2 must be"),
        ("distance", "-1", "distance in line 2 must be greater than or equal to 0, got '-1'"),
        ("distance", "nan", "distance in line 2 must be greater than or equal to 0, got 'nan'"),
        ("distance", "inf", "finite distances where points were found"),
        ("status", "lost", "status must be one of .* got 'lost'"),
        ("box", "[0]", "box in line 2"),
        ("box", "[0; 1]", "box in line 2"),
        ("space", "outer", "space .* must be one of input, normalised, got 'outer'"),
        ("n_forward", "x", "n_forward in line 2 must be a valid integer"),
    ],
)
def test_what_does_not_fit_is_refused(
    column: str, text: str, message: str, folder: RunFolder
) -> None:
    rows = read_rows(folder.solvers_file)
    rows[0][column] = text
    write_rows(folder.solvers_file, rows)
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin verify {folder.path}` again"):
        folder.searches()


@pytest.mark.parametrize(
    ("kept", "message"),
    [(0, "columns must be"), (1, "got none of 0 rows"), (3, "got .* of 2 rows"), (9, "of 8 rows")],
)
def test_files_that_are_cut_are_refused(kept: int, message: str, folder: RunFolder) -> None:
    lines = folder.solvers_file.read_text().splitlines(keepends=True)
    assert len(lines) == 10
    folder.solvers_file.write_text("".join(lines[:kept]))
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin verify {folder.path}` again"):
        folder.searches()


def test_radii_behind_a_normalisation_are_multiples_of_the_certificates(folder: RunFolder) -> None:
    rows = read_rows(folder.solvers_file)
    rows[-1]["radius"] = "11.9"
    write_rows(folder.solvers_file, rows)
    with pytest.raises(RunError, match="radii of certificates.csv.*normalised"):
        folder.searches()
