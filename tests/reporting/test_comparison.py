"""Runs beside each other: which may be compared, by what name, and by how much they differ."""

import math
from pathlib import Path
from typing import Any

import pytest
from compared import CLASSES, made_run, verify_made

from unitmargin.reporting.comparison import (
    certified_share,
    common_epsilons,
    differences,
    distinct_names,
    read_compared,
)
from unitmargin.runs.folder import RunError, RunFolder

FIRST = [0.5, 0.5, 1.0, -0.25]
SECOND = [1.5, -0.5, 1.0, 0.5]


def pair(path: Path, **second: Any) -> list[RunFolder]:
    return [made_run(path / "a", FIRST), made_run(path / "b", SECOND, **second)]


def encoding(mean: float) -> dict[str, Any]:
    columns = [{"name": name, "shift": mean} for name in ("x", "y")]
    return {"encoding": {"label": "kind", "scale": "features", "columns": columns}}


def test_differences_are_paired_on_the_same_inputs_by_hand(tmp_path: Path) -> None:
    runs = read_compared(pair(tmp_path))
    epsilons = common_epsilons(runs)
    assert epsilons.table == (0.0, 0.5, 1.0)
    (row,) = differences(runs, epsilons)
    assert row.paired
    # Clean: one sample each that the other has not. At 0.5: the first sample is won.
    assert row.accuracy[0.0] == pytest.approx((0.0, math.sqrt(2) / 4, 1.0))
    assert row.accuracy[0.5] == pytest.approx((0.25, math.sqrt(1 - 1 / 4) / 4, 1.0))
    assert row.radius.value == pytest.approx((1.5 + 1.0 + 0.5) / 4 - (0.5 + 0.5 + 1.0) / 4)


def test_other_samples_of_the_same_data_are_not_paired(tmp_path: Path) -> None:
    for number, second in enumerate(({"numbers": "other inputs"}, {"numbers": None})):
        runs = read_compared(pair(tmp_path / str(number), **second))
        (row,) = differences(runs, common_epsilons(runs))
        assert not row.paired
        assert row.accuracy[0.0][:2] == pytest.approx((0.0, math.sqrt(2 * 0.75 * 0.25 / 4)))


def test_another_number_of_samples_is_not_paired(tmp_path: Path) -> None:
    folders = [made_run(tmp_path / "a", FIRST), made_run(tmp_path / "b", [1.0])]
    runs = read_compared(folders)
    (row,) = differences(runs, common_epsilons(runs))
    assert not row.paired
    assert row.accuracy[0.0].value == 0.25


def test_clean_accuracy_asks_for_no_radius(tmp_path: Path) -> None:
    (run,) = read_compared([made_run(tmp_path, [0.0, 0.0, 1.0, -1.0])])
    assert certified_share(run, 0.0) == 0.75
    assert certified_share(run, 0.5) == 0.25


def test_absent_files_are_none(tmp_path: Path) -> None:
    bare, whole = made_run(tmp_path / "a", FIRST, epochs=0), made_run(tmp_path / "b", FIRST)
    verify_made(whole, [1.0, 1.0, 1.0, 0.0])
    first, second = read_compared([bare, whole])
    assert (first.history, first.findings, first.searches, first.data) == (None, None, [], None)
    assert second.history is not None
    assert second.findings is not None
    assert [int(search.found.sum()) for search in second.searches] == [3]


def test_runs_of_one_name_are_told_apart_by_their_places(tmp_path: Path) -> None:
    folders = [made_run(tmp_path / place, FIRST) for place in ("old/run", "new/run", "other")]
    names = [run.name for run in read_compared(folders)]
    assert names == ["made (old/run)", "made (new/run)", f"made ({tmp_path.name}/other)"]
    assert distinct_names(["a", "b"], [Path("x"), Path("x")]) == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"width": 3}, r"must have inputs of shape \(2,\), as .*/a has, got \(3,\); compare"),
        ({"facts": encoding(0.0)}, "must have radii in the data's own units, .* got standard dev"),
        ({"classes": CLASSES[::-1]}, "must have the classes left, middle, .* got none, right"),
        (
            {"data": {"name": "moons", "upsample": 2}},
            "must have radii in pixels that are repeated so many times: 1, .* got 2",
        ),
        (
            {"data": {"name": "blobs"}, "numbers": "other"},
            "must be certified on the data of .*/a, 'moons', got other samples of 'blobs'",
        ),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    second: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        read_compared(pair(tmp_path, **second))


def test_standard_deviations_of_other_rows_are_other_units(tmp_path: Path) -> None:
    def folders(place: str, mean: float) -> list[RunFolder]:
        return [
            made_run(tmp_path / place / "a", FIRST, facts=encoding(0.0)),
            made_run(tmp_path / place / "b", FIRST, facts=encoding(mean)),
        ]

    read_compared(folders("same", 0.0))
    with pytest.raises(ValueError, match="must have its columns in the units of .*/a, got other"):
        read_compared(folders("other", 0.5))


@pytest.mark.parametrize("kind", ["npz", "shards"])
def test_files_of_one_kind_are_other_data_unless_contents_or_places_agree(
    kind: str, tmp_path: Path
) -> None:
    def run(place: str, path: str, numbers: str) -> RunFolder:
        data = {"name": kind, "path": path}
        return made_run(tmp_path / place, FIRST, numbers=numbers, data=data)

    one, moved, same_place, other = (
        run("one", "x.npz", "1"), run("moved", "y.npz", "1"), run("same", "x.npz", "2"),
        run("other", "y.npz", "2"),
    )  # fmt: skip
    read_compared([one, moved])
    read_compared([one, same_place])
    with pytest.raises(ValueError, match=f"got other samples of '{kind}'; compare runs of one"):
        read_compared([one, other])


def test_no_run_and_one_run_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folders must be one run folder or more, got none"):
        read_compared([])
    made_run(tmp_path / "a", FIRST)
    again = [RunFolder(tmp_path / "a"), RunFolder(tmp_path / "b" / ".." / "a")]
    with pytest.raises(ValueError, match="folders must differ, got .*/a twice; name each run once"):
        read_compared(again)


def test_a_run_that_is_not_certified_names_the_command(tmp_path: Path) -> None:
    folders = pair(tmp_path)
    folders[1].certificates_file.unlink()
    with pytest.raises(RunError, match=r"b/certificates.csv does not exist; run `unitmargin cert"):
        read_compared(folders)
