"""The files of certify: what is written returns, and what is damaged or foreign is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from certificate_files import write_of_model
from certified import made_certificates
from tables import read_rows, write_rows

from unitmargin.foundation.tensors import write_tensors
from unitmargin.runs.folder import RunError, RunFolder

CERTIFICATES = replace(
    made_certificates([0, 1, 2, 0], [1 / 3, 0.0, -0.25, 0.1 + 0.2]), profile="float32"
)
INPUTS = torch.rand(4, 3)

NAMES = ["a, b", 'c "d"', "e\nf", "g\rh", "ü ✓", "7"]
"""Class names that a table has to quote, and one that looks like the number of another class."""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    names = json.dumps(NAMES)
    write_tensors(run.model_file, {"nothing": torch.zeros(1)}, {"classes": names})
    write_of_model(run.certificates_file, CERTIFICATES, run.model_file, run.inputs_file, INPUTS)
    return run


def test_classes_are_written_by_number_and_by_name(folder: RunFolder) -> None:
    rows = read_rows(folder.certificates_file)
    for column in ("label", "predicted", "runner_up"):
        for row in rows:
            assert row[f"{column}_name"] == NAMES[int(row[column])]
    assert {row["runner_up_name"] for row in rows} == {"e\nf", "g\rh", "ü ✓"}
    assert json.loads(folder.certificate_facts_file.read_text())["classes"] == NAMES


def test_no_class_has_no_name(folder: RunFolder) -> None:
    none = torch.full_like(CERTIFICATES.label, -1)
    nothing = torch.zeros_like(CERTIFICATES.radius)
    silent = replace(CERTIFICATES, predicted=none, runner_up=none, radius=nothing)
    write_of_model(folder.certificates_file, silent, folder.model_file, folder.inputs_file)
    rows = read_rows(folder.certificates_file)
    assert {row["predicted_name"] + row["runner_up_name"] for row in rows} == {""}
    assert folder.certificates().predicted.tolist() == none.tolist()


def test_a_class_that_the_model_does_not_have_is_not_written(folder: RunFolder) -> None:
    before = folder.certificates_file.read_bytes()
    labels = replace(CERTIFICATES, label=CERTIFICATES.label + 4)
    with pytest.raises(ValueError, match="label must be below 6, .* got 6 in sample 2"):
        write_of_model(folder.certificates_file, labels, folder.model_file, folder.inputs_file)
    assert folder.certificates_file.read_bytes() == before


def test_what_is_written_returns(folder: RunFolder) -> None:
    read = folder.certificates()
    assert len(read) == 4
    for name, written in vars(CERTIFICATES).items():
        found = getattr(read, name)
        assert torch.equal(found, written) if isinstance(found, torch.Tensor) else found == written
    assert read.right.tolist() == [True, True, False, True]
    assert read.clean_accuracy == 0.75
    assert replace(read, radius=0 * read.radius).clean_accuracy == 0.75
    assert read.certified_accuracy(0.3) == 0.25 + 0.25
    assert read.at(torch.tensor([2, 0])).radius.tolist() == [0.25, 1 / 3]
    folder.inputs_file.unlink()
    assert len(folder.certificates()) == 4


def test_unknown_labels_are_empty_and_sources_stand_last(folder: RunFolder) -> None:
    labels = torch.tensor([0, -1, 2, -1])
    sources = ("a, b.png", "é\n.png", "x[2]", "")
    written = replace(CERTIFICATES, label=labels, source=sources, numbers_sha256="0" * 64)
    write_of_model(folder.certificates_file, written, folder.model_file, folder.inputs_file)
    rows = read_rows(folder.certificates_file)
    assert list(rows[0])[-1] == "source"
    assert [row["label"] for row in rows] == ["0", "", "2", ""]
    assert [row["label_name"] for row in rows] == [NAMES[0], "", NAMES[2], ""]
    read = folder.certificates()
    assert torch.equal(read.label, labels)
    assert (read.source, read.numbers_sha256) == (sources, "0" * 64)
    assert read.right.tolist() == [True, False, False, False]
    assert read.labelled.tolist() == [True, False, True, False]
    assert read.at(torch.tensor([2, 0])).source == ("x[2]", "a, b.png")


def test_no_class_is_not_the_right_one_of_an_unknown_label() -> None:
    none = torch.full((4,), -1)
    assert not replace(CERTIFICATES, label=none, predicted=none).right.any()


def cell(row: int, column: str, text: str) -> Callable[[RunFolder], None]:
    def change(folder: RunFolder) -> None:
        rows = read_rows(folder.certificates_file)
        rows[row][column] = text
        write_rows(folder.certificates_file, rows)

    return change


def no_class(row: int) -> Callable[[RunFolder], None]:
    def change(folder: RunFolder) -> None:
        for column, text in (("predicted", "-1"), ("predicted_name", "")):
            cell(row, column, text)(folder)

    return change


def fact(name: str, value: object) -> Callable[[RunFolder], None]:
    def change(folder: RunFolder) -> None:
        facts = json.loads(folder.certificate_facts_file.read_text())
        folder.certificate_facts_file.write_text(json.dumps(facts | {name: value}))

    return change


def drop_row(folder: RunFolder) -> None:
    write_rows(folder.certificates_file, read_rows(folder.certificates_file)[:-1])


def drop_column(folder: RunFolder) -> None:
    rows = read_rows(folder.certificates_file)
    write_rows(folder.certificates_file, [dict(list(row.items())[:-1]) for row in rows])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            cell(1, "radius", "-0.1"),
            "radius in line 3 must be greater than or equal to 0, got '-0.1'",
        ),
        (cell(1, "radius", "nan"), "radius in line 3 must be .* got 'nan'"),
        (cell(1, "radius", "inf"), "radius in line 3 must be a finite number, got 'inf'"),
        (cell(1, "margin", "wide"), "margin in line 3 must be a valid number, .* got 'wide'"),
        (cell(0, "label", "1.5"), "label in line 2 must be a valid integer, .* got '1.5'"),
        (cell(0, "label", "-1"), "label in line 2 must be greater than or equal to 0"),
        (cell(0, "predicted", "-2"), "predicted in line 2 must be greater than or equal to -1"),
        (no_class(0), "radius in line 2 must be 0, of no class, got "),
        (cell(2, "index", "7"), "rows must be numbered from 0 to 3, got other ones"),
        (drop_row, "rows must be numbered from 0 to 3, got other ones"),
        (drop_column, "columns must be index, label, label_name, .*, margin, radius, got"),
        (lambda folder: folder.certificates_file.write_text(""), "columns must be .* got none"),
        (lambda folder: folder.certificate_facts_file.write_text("[]"), "profile must be given"),
        (lambda folder: folder.certificate_facts_file.write_text("{"), "certificates.csv: "),
        (fact("samples", 3), "rows must be numbered from 0 to 2, got other ones"),
        (fact("samples", "4"), "samples must be a valid integer, got '4'"),
        (fact("format", "mine"), "format must be 'unitmargin-certificates-2', got 'mine'"),
        (fact("profile", "float8"), "profile must be one of float64, .* got 'float8'"),
        (fact("colour", 1), "colour is no option"),
        (fact("units", "l2 distance in miles"), "units must be 'l2 distance in the units of the"),
        (fact("classes", NAMES[::-1]), "classes must be .*, those of the model, got"),
        (fact("classes", "abc"), "classes must be a valid list, got 'abc'"),
        (cell(1, "label_name", "7"), "label_name in line 3 must be 'c .*', got '7'"),
        (cell(1, "predicted_name", ""), "predicted_name in line 3 must be 'c .*', got ''"),
        (cell(2, "runner_up_name", "ü"), "runner_up_name in line 4 must be 'ü ✓', got 'ü'"),
        (cell(0, "label", "6"), "label must be below 6, .* got 6 in sample 0"),
        (fact("model_sha256", "0"), "model_sha256 must be .* that of model.safetensors, got 0"),
        (lambda folder: folder.model_file.write_bytes(b"b"), "model_sha256 must be .* got "),
        (lambda folder: folder.inputs_file.write_bytes(b"b"), "inputs_sha256 must be .* got "),
    ],
)
def test_what_does_not_fit_is_refused(
    change: Callable[[RunFolder], None], message: str, folder: RunFolder
) -> None:
    change(folder)
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin certify {folder.path}` again"):
        folder.certificates()
