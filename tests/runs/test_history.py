"""history.csv: records return, and what is no history is refused."""

from pathlib import Path

import pytest

from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.history import write_history
from unitmargin.training.train import EpochRecord

HISTORY = tuple(
    EpochRecord(epoch, 1.0 / epoch, 0.5, 0.25, 1e-7, 3e-3, 0.1 + 0.2, 1e3, 0.25, 2e9, 0.5)
    for epoch in (1, 2, 3)
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    write_history(run.history_file, HISTORY)
    return run


def test_epochs_that_were_not_evaluated_return(folder: RunFolder) -> None:
    bare = EpochRecord(1, 0.5, None, None, None, 3e-3, 0.25)
    write_history(folder.history_file, (bare,))
    assert folder.history() == (bare,)


def test_records_return(folder: RunFolder) -> None:
    assert folder.history() == HISTORY
    assert folder.history_file.read_text().splitlines()[0] == (
        "epoch,loss,clean_accuracy,certified_accuracy,orthogonality_error,learning_rate,seconds,"
        "rate,waiting,memory,core_seconds"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\n2,", "\n3,", r"epoch must count from 1, got \[1, 3, 3\]"),
        ("\n2,0.5", "\n2,nan", "loss in line 3 must be a finite number, got 'nan'"),
        ("\n2,0.5", "\n2,low", "loss in line 3 must be a valid number, .* got 'low'"),
        (",seconds", ",minutes", "columns must be epoch, loss, .* got epoch"),
        (",core_seconds", "", "columns must be epoch, loss, .*, core_seconds, got epoch"),
    ],
)
def test_what_is_no_history_is_refused(old: str, new: str, message: str, folder: RunFolder) -> None:
    text = folder.history_file.read_text()
    assert old in text
    folder.history_file.write_text(text.replace(old, new))
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin train RECIPE` again"):
        folder.history()


def test_a_history_without_epochs_is_refused(folder: RunFolder) -> None:
    write_history(folder.history_file, ())
    with pytest.raises(RunError, match=r"epoch must count from 1, got \[\]"):
        folder.history()
