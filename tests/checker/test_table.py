"""Verdicts: honest certificates are confirmed, and each kind of false one is named."""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from claims import EXAMPLES, Example, certified
from model_files import header, rewrite
from safetensors.torch import load_file
from tables import read_rows, write_rows

from unitmargin.checker import CheckError, Verdict, check, write
from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import Dense, FrozenNetwork, load, save
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.normalize import Normalize
from unitmargin.runs.folder import RunFolder

RAISED = 1e-6
"""Relative increase of a radius that must not pass."""


def verdicts(run: RunFolder) -> list[Verdict]:
    return check(
        run.certificates_file, run.certificate_facts_file, run.model_file, run.inputs_file
    )[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return certified(tmp_path_factory.mktemp("made"), EXAMPLES["pooled"]()).path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(made, tmp_path / "run"))


Row = dict[str, str]


def edit(run: RunFolder, change: Callable[[list[Row]], None]) -> None:
    rows = read_rows(run.certificates_file)
    change(rows)
    write_rows(run.certificates_file, rows)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_honest_certificates_are_confirmed(name: str, profile: str, tmp_path: Path) -> None:
    run = certified(tmp_path, EXAMPLES[name](), profile)
    found = verdicts(run)
    assert len(found) == len(read_rows(run.certificates_file))
    assert [verdict.reason for verdict in found] == [""] * len(found)
    assert sum(verdict.certificate.radius > 0 for verdict in found) >= len(found) // 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_radius_raised_by_a_millionth_is_named(name: str, tmp_path: Path) -> None:
    run = certified(tmp_path, EXAMPLES[name]())
    row = next(v.certificate.row for v in verdicts(run) if v.certificate.radius > 0.01)

    def change(rows: list[Row]) -> None:
        rows[row]["radius"] = repr(float(rows[row]["radius"]) * (1 + RAISED))

    edit(run, change)
    failed = [verdict for verdict in verdicts(run) if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [row]
    assert failed[0].reason.startswith("radius ")
    assert 0 < failed[0].certificate.radius - failed[0].provable <= failed[0].provable * RAISED


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("predicted", "other", "label"),
        ("predicted", "-1", "label -1, got"),
        ("predicted", "99", "label 99, got"),
        ("runner_up", "other", "runner-up"),
        ("runner_up", "-1", "runner-up -1 is no class"),
        ("runner_up", "5", "runner-up 5 is no class"),
        ("margin", "more", "margin"),
        ("margin", "nan", "margin nan"),
        ("radius", "nan", "radius nan is no distance"),
        ("radius", "inf", "radius inf is no distance"),
        ("radius", "-0.1", "radius -0.1 is no distance"),
        ("radius", "1e300", "radius 1e+300, proved"),
    ],
)
def test_each_false_claim_is_named(run: RunFolder, column: str, value: str, reason: str) -> None:
    def change(rows: list[Row]) -> None:
        taken = {int(rows[3]["predicted"]), int(rows[3]["runner_up"])}
        other = next(str(k) for k in range(5) if k not in taken)
        more = repr(float(rows[3]["margin"]) * (1 + RAISED))
        rows[3][column] = {"other": other, "more": more}.get(value, value)

    edit(run, change)
    failed = [verdict for verdict in verdicts(run) if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [3]
    assert failed[0].reason.startswith(reason)


@pytest.mark.parametrize("column", ["label", "predicted", "runner_up"])
def test_a_name_that_is_not_the_model_s_is_named(run: RunFolder, column: str) -> None:
    """Also beside a radius of zero, which claims nothing else."""

    def change(rows: list[Row]) -> None:
        rows[2]["radius"] = "0.0"
        for row in rows[2:4]:
            row[f"{column}_name"] = "another"

    edit(run, change)
    failed = [verdict for verdict in verdicts(run) if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [2, 3]
    assert failed[0].reason.startswith(f"name 'another' of {column.replace('_', '-')} ")


@pytest.mark.parametrize("number", ["5", "99", "-2"])
@pytest.mark.parametrize("column", ["label", "predicted", "runner_up"])
def test_a_class_that_is_none_is_named_also_beside_a_radius_of_zero(
    run: RunFolder, column: str, number: str
) -> None:
    change = {"radius": "0.0", column: number, f"{column}_name": ""}
    edit(run, lambda rows: rows[2].update(change))
    if (column, number) == ("label", "-2"):
        with pytest.raises(CheckError, match="holds the label -2; an unknown one is empty"):
            verdicts(run)
        return
    (failed,) = [verdict for verdict in verdicts(run) if verdict.reason]
    assert failed.reason == f"{column.replace('_', '-')} {number} is no class"


@pytest.mark.parametrize("margin", ["nan", "inf", "-0.1"])
def test_a_margin_that_is_none_is_named_also_beside_a_radius_of_zero(
    run: RunFolder, margin: str
) -> None:
    edit(run, lambda rows: rows[2].update(radius="0.0", margin=margin))
    (failed,) = [verdict for verdict in verdicts(run) if verdict.reason]
    assert failed.reason == f"margin {margin} is no distance"


@pytest.mark.parametrize("units", ["l2 distance in light years", "", 7, None])
def test_other_units_than_the_model_s_are_refused(run: RunFolder, units: object) -> None:
    facts = json.loads(run.certificate_facts_file.read_text())
    run.certificate_facts_file.write_text(json.dumps(facts | {"units": units}))
    with pytest.raises(CheckError, match="says other units of radii than .*; certify again"):
        verdicts(run)
    del facts["units"]
    run.certificate_facts_file.write_text(json.dumps(facts))
    assert not any(verdict.reason for verdict in verdicts(run))


def test_names_with_commas_quotes_and_line_ends_are_checked(tmp_path: Path) -> None:
    example = EXAMPLES["pooled"]()
    example.network.classes = ("a, b", 'c "d"', "e\nf", "g\rh", "ü ✓")
    run = certified(tmp_path, example)
    found = verdicts(run)
    assert not any(verdict.reason for verdict in found)
    write(found, run.path / "checked.csv")
    rows, claims = read_rows(run.path / "checked.csv"), read_rows(run.certificates_file)
    assert len({row["predicted"] for row in rows}) > 1
    for row, claim in zip(rows, claims, strict=True):
        assert row["predicted_name"] == claim["predicted_name"]
        assert row["predicted_name"] == example.network.classes[int(row["predicted"])]


def test_other_class_names_than_the_model_s_are_refused(run: RunFolder) -> None:
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["classes"] = facts["classes"][::-1]
    run.certificate_facts_file.write_text(json.dumps(facts))
    with pytest.raises(CheckError, match="has other classes than"):
        verdicts(run)


def test_a_radius_of_zero_claims_nothing(run: RunFolder) -> None:
    def change(rows: list[Row]) -> None:
        rows[2] |= {"radius": "0.0", "predicted": "-1", "margin": "0.0", "runner_up": "-1"}
        rows[2] |= {"predicted_name": "", "runner_up_name": ""}

    edit(run, change)
    assert not any(verdict.reason for verdict in verdicts(run))
    write(verdicts(run), run.path / "checked.csv")
    with (run.path / "checked.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == [
        "no claim" if index == 2 else "confirmed" for index in range(len(rows))
    ]
    for row in rows:
        assert float(row["difference"]) == float(row["provable"]) - float(row["radius"]) >= 0


def test_reasons_are_written(run: RunFolder) -> None:
    edit(run, lambda rows: rows[1].update(radius="9.0"))
    write(verdicts(run), run.path / "checked.csv")
    row = read_rows(run.path / "checked.csv")[1]
    assert row["verdict"].startswith("radius 9.0, proved 0.")
    assert float(row["difference"]) < 0


def test_a_tampered_model_is_refused_and_never_confirmed(run: RunFolder) -> None:
    """By its own hash; by the hash noted at certification; and in the end by the proof."""
    content = bytearray(run.model_file.read_bytes())
    content[-5] ^= 1
    run.model_file.write_bytes(content)
    with pytest.raises(CheckError, match="was edited"):
        verdicts(run)
    content[-5] ^= 1
    run.model_file.write_bytes(content)
    frozen = load(run.model_file)
    frozen.head.weight.mul_(1.001)
    save(frozen, run.model_file)
    with pytest.raises(CheckError, match="is not the model that"):
        verdicts(run)
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["model_sha256"] = file_sha256(run.model_file)
    run.certificate_facts_file.write_text(json.dumps(facts))
    assert all(verdict.reason for verdict in verdicts(run))


def test_the_model_file_cannot_define_a_profile(tmp_path: Path) -> None:
    """Certificates of float64 would pass for those of float32, which rounds 2^29 times more."""
    run = certified(tmp_path, EXAMPLES["dense"](), "float32")
    profiles = json.loads(header(run.model_file)["profiles"])
    profiles["float32"]["dtype"] = "float64"
    rewrite(run.model_file, {"profiles": json.dumps(profiles)})
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["model_sha256"] = file_sha256(run.model_file)
    run.certificate_facts_file.write_text(json.dumps(facts))
    with pytest.raises(CheckError, match="it defines the profiles"):
        verdicts(run)


def test_other_inputs_are_refused(run: RunFolder, tmp_path: Path) -> None:
    torch.manual_seed(1)
    other = certified(tmp_path / "other", EXAMPLES["pooled"]())
    shutil.copy(other.inputs_file, run.inputs_file)
    with pytest.raises(CheckError, match="not the file of inputs"):
        verdicts(run)


def test_another_profile_is_another_claim(run: RunFolder) -> None:
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["profile"] = "float32"
    run.certificate_facts_file.write_text(json.dumps(facts))
    assert all(verdict.reason.startswith("radius") for verdict in verdicts(run))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(), "23 rows, .* says 24"),
        (lambda rows: rows.reverse(), "numbered from 0"),
        (lambda rows: rows[0].update(radius="much"), "no table of certificates"),
        (lambda rows: rows[0].update(more="1"), "no table of certificates"),
        (lambda rows: rows[0].update(predicted="1.5"), "no table of certificates"),
        (lambda rows: rows[0].update(label="one"), "no table of certificates"),
        (lambda rows: rows[0].update(predicted="1_0"), "no table of certificates"),
        (lambda rows: rows[0].update(radius="0.1_0"), "no table of certificates"),
        (lambda rows: rows[0].update(radius=" 0.1"), "no table of certificates"),
        (lambda rows: rows[0].update(predicted="\u0663"), "no table of certificates"),
        (lambda rows: rows[0].update(predicted="9" * 5000), "no table of certificates"),
        (lambda rows: rows[0].update(label="9" * 200_000), "no table of certificates"),
        (lambda rows: rows[0].update(margin="0.8\0"), "no table of certificates"),
        (lambda rows: [row.pop("label_name") for row in rows], "no table of certificates"),
    ],
)
def test_tables_that_make_no_sense_are_refused(
    run: RunFolder, change: Callable[[list[Row]], None], message: str
) -> None:
    edit(run, change)
    with pytest.raises(CheckError, match=message):
        verdicts(run)


def test_a_class_of_thousands_of_digits_is_named(run: RunFolder) -> None:
    edit(run, lambda rows: rows[1].update(predicted="9" * 4000))
    failed = [verdict for verdict in verdicts(run) if verdict.reason]
    assert [verdict.certificate.row for verdict in failed] == [1]


def test_unknown_labels_and_sources_are_no_claims(run: RunFolder) -> None:
    def change(rows: list[Row]) -> None:
        for row in rows:
            row |= {"label": "", "label_name": "", "source": "é, x[3]\n"}

    edit(run, change)
    assert not any(verdict.reason for verdict in verdicts(run))
    edit(run, lambda rows: rows[2].update(label_name="0"))
    failed = [verdict for verdict in verdicts(run) if verdict.reason]
    assert [verdict.reason for verdict in failed] == ["name '0' of label -1, got ''"]


def test_inputs_are_known_by_their_numbers_in_any_file(run: RunFolder) -> None:
    numbers = load_file(run.inputs_file)["inputs"].numpy()
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["numbers_sha256"] = hashlib.sha256(numbers.astype("<f4").tobytes()).hexdigest()
    run.certificate_facts_file.write_text(json.dumps(facts))
    moved = run.path / "inputs.npy"
    files = run.certificates_file, run.certificate_facts_file, run.model_file, moved
    wide = numbers.astype(np.float64)
    for right in (numbers, wide * (1 + 1e-9), np.concatenate([numbers, numbers])):
        np.save(moved, right)
        assert not any(verdict.reason for verdict in check(*files)[0])
    for wrong in (numbers[::-1].copy(), numbers + np.float32(1e-3), wide * 1e300):
        np.save(moved, wrong)
        with pytest.raises(CheckError, match="holds other numbers than"):
            check(*files)


def test_an_empty_file_lacks_the_columns(run: RunFolder) -> None:
    run.certificates_file.write_bytes(b"")
    with pytest.raises(CheckError, match=r"no table of certificates: its columns must be index,"):
        verdicts(run)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"\xef\xbb\xbfindex", b'"index', b"\0"])
def test_bytes_that_are_no_table_are_refused(run: RunFolder, content: bytes) -> None:
    run.certificates_file.write_bytes(content)
    with pytest.raises(CheckError, match=r"no table of certificates: .*; certify again"):
        verdicts(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("profile", '["float64"]'),
        ("profile", "{}"),
        ("profile", "null"),
        ("samples", '"24"'),
        ("samples", "24.0"),
        ("samples", "true"),
        ("samples", "NaN"),
        ("samples", '24, "samples": 24'),
        ("inputs_sha256", "5"),
        ("inputs_sha256", '"0"'),
        ("inputs_sha256", "[1]"),
        ("model_sha256", "null"),
        ("numbers_sha256", "5"),
        ("numbers_sha256", '"0"'),
        ("units", "1e400"),
        ("units", '"\\ud800"'),
        ("units", "[" * 100_000),
    ],
)
def test_facts_of_another_kind_are_refused(run: RunFolder, name: str, value: str) -> None:
    facts = json.loads(run.certificate_facts_file.read_text())
    text = json.dumps(facts | {name: "here"}).replace('"here"', value)
    run.certificate_facts_file.write_text(text)
    with pytest.raises(CheckError, match="does not describe certificates") as refused:
        verdicts(run)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{}", "[]", "[", "null", '{"format": "other"}'])
def test_facts_that_make_no_sense_are_refused(run: RunFolder, text: str) -> None:
    run.certificate_facts_file.write_text(text)
    with pytest.raises(CheckError, match="does not describe certificates"):
        verdicts(run)


def test_nothing_is_proved_where_denormals_are_flushed(run: RunFolder) -> None:
    """Weights below 2^-126 would be read as zero, and bounds of them be too small."""
    verdicts(run)
    torch.set_flush_denormal(True)
    try:
        with pytest.raises(CheckError, match="denormal numbers must be kept .*`unitmargin check`"):
            verdicts(run)
    finally:
        torch.set_flush_denormal(False)


def test_numbers_whose_rounding_nothing_bounds_are_said_to_be_so(tmp_path: Path) -> None:
    network = FrozenNetwork(
        [
            Normalize(torch.zeros(1), torch.full((1,), 1e-38)),
            *[Dense(torch.full((1, 1), 2.0**40), torch.zeros(1)) for _ in range(7)],
            Dense(torch.tensor([[0.5], [-0.5]]), torch.zeros(2)),
        ],
        (1,),
    )
    run = certified(tmp_path, Example(network, torch.tensor([[3e38]])))
    (verdict,) = verdicts(run)
    assert verdict.reason == "nothing is proved of numbers as large as those of this evaluation"
