"""One reading of a run: the same contents as the folder, each read once, errors of the folder."""

from pathlib import Path

import pytest
import torch
from certified import certified, write_made_searches, write_made_weights
from searches import made_search

from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.runs import folder as folders
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.reading import RunReading

ROW = "paper/ugnn-maxmin-updu-raw"


def verified(path: Path) -> RunFolder:
    run = certified(path, ROW, [1.0, 0.4])
    write_made_weights(run, {"hardware": "", "torch": "", "commit": ""})
    search = made_search([1.0, 0.4], [2.0, 0.5])
    search.label[:] = 1
    write_made_searches(run, [search])
    return run


def test_it_holds_what_the_folder_holds(tmp_path: Path) -> None:
    run = verified(tmp_path / "run")
    reading = RunReading(run.path)
    assert reading.recipe() == run.recipe()
    assert reading.origin() == run.origin()
    assert reading.findings() == run.findings()
    torch.testing.assert_close(reading.certificates().radius, run.certificates().radius)
    (mine,), (theirs,) = reading.searches(), run.searches()
    torch.testing.assert_close(mine.distance, theirs.distance)


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    for name in ("read_recipe", "read_certificates", "read_findings", "read_searches"):
        real = getattr(folders, name)

        def counted(*given: object, name: str = name, real: object = real) -> object:
            read.append(name)
            return real(*given)  # type: ignore[operator]

        monkeypatch.setattr(folders, name, counted)
    reading = RunReading(verified(tmp_path / "run").path)
    read.clear()
    for _ in range(3):
        reading.recipe(), reading.searches(), reading.certificates(), reading.findings()
    assert sorted(read) == ["read_certificates", "read_findings", "read_recipe", "read_searches"]


def test_it_is_of_one_moment_and_another_reading_of_the_next(tmp_path: Path) -> None:
    run = verified(tmp_path / "run")
    reading = RunReading(run.path)
    before = reading.recipe()
    run.start(run.recipe().changed(training={"epochs": 9}))
    assert reading.recipe() is before
    assert RunReading(run.path).recipe().training.epochs == 9


def test_a_missing_file_is_missing_until_it_is_there(tmp_path: Path) -> None:
    reading = RunReading(tmp_path / "run")
    with pytest.raises(RunError, match="is no run folder"):
        reading.recipe()
    verified(tmp_path / "run")
    assert reading.recipe().name


def test_it_belongs_to_a_recipe_as_the_folder_does(tmp_path: Path) -> None:
    reading = RunReading(tmp_path / "mine")
    reading.path.mkdir()
    (reading.path / "mine").write_text("a file that is called as its folder")
    with pytest.raises(RunError, match="got one with mine"):
        reading.require_own(verified(tmp_path / "other").recipe())


def test_the_model_is_read_once_and_of_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = certified(tmp_path / "run", ROW, [1.0])
    reading = RunReading(run.path)
    asked: list[Path] = []

    def load(file: Path) -> FrozenNetwork:
        asked.append(file)
        return FrozenNetwork([Dense(torch.eye(2), torch.full((2,), float(len(asked))))], (2,))

    monkeypatch.setattr(folders, "load", load)
    network, sha256 = reading.hashed_frozen()
    assert reading.frozen() is reading.hashed_frozen()[0] is network
    assert (reading.model(), sha256) == (run.model_file, file_sha256(run.model_file))
    assert asked == [run.model_file]
