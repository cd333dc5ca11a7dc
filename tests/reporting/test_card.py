"""The model card: what the files say, and of all else that it was not measured."""

from math import inf

import pytest
import torch
from cards import read_card

from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.reporting.card import Subject, is_sealed, write_card
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.recipe import DataOptions, Recipe

HOSTILE = ["---", "a|b", 'quo"te', "new\nline: x", "<script>", "`tick`", "\u202eend", "x" * 1000]
FILES = {"model.onnx": "a" * 64, "model.safetensors": "b" * 64}


def frozen(classes: list[str], shape: tuple[int, ...] = (3,), **options: object) -> FrozenNetwork:
    weight = torch.eye(len(classes), 3) / 2**0.5
    head = Dense(weight, torch.zeros(len(classes)))
    return FrozenNetwork([head], shape, classes, **options)  # type: ignore[arg-type]


def certificates(radii: list[float], right: list[bool]) -> Certificates:
    radius = torch.tensor(radii, dtype=torch.float64)
    label = torch.zeros(len(radii), dtype=torch.int64)
    return Certificates(label, (~torch.tensor(right)).long(), label, radius, radius)


def card(subject: Subject, name: str = "x", slack: float | None = None) -> str:
    return write_card(subject, name, slack, FILES, "0.1.0")


def test_a_model_alone_has_no_results_and_no_invented_number() -> None:
    table, text = read_card(card(Subject(frozen(["a", "b"]))))
    assert "model-index" not in table
    assert "metrics" not in table
    assert "license" not in table
    assert table["pipeline_tag"] == "tabular-classification"
    for words in (
        "coverage were not measured", "boundary was not measured", "hold no recipe",
        "Data set: not stated", "none was stated, so inputs in other units are not noticed",
    ):  # fmt: skip
        assert words in text
    for words in ("None", "%", "nan", "at most", "Trained with", "recipe.toml", "check FOLDER"):
        assert words not in text
    for sha256 in FILES.values():
        assert sha256 in text


def test_results_are_those_of_the_certificates() -> None:
    found = certificates([0.3, 0.3, 0.26, 0.0], [True, False, True, True])
    subject = Subject(frozen(["a", "b"]), Recipe(name="mine"), None, found)
    table, text = read_card(card(subject, "mine"))
    (entry,) = table["model-index"]
    (result,) = entry["results"]
    assert entry["name"] == "mine"
    assert result["dataset"] == {"type": "digits", "name": "digits", "split": "test"}
    assert result["task"] == {"type": table["pipeline_tag"]}
    shares = {one.get("args", {}).get("epsilon", 0.0): one["value"] for one in result["metrics"]}
    assert [one["type"] for one in result["metrics"][:2]] == ["accuracy", "certified-accuracy"]
    assert shares[0.0] == 0.75
    assert list(shares) == [0.0, 0.25, 0.3]  # round numbers of these radii
    assert shares[0.25] == 0.5
    assert shares[0.3] == 0.0
    assert "| Accuracy | 75.00% |" in text
    assert "| 0 | 75.00% | 1 of 3 | 66.67% |" in text
    assert "| 0.3 | 0.00% | 0 of 0 | none |" in text
    assert "reject_below=0.25)" in text
    assert "255" not in text


def test_pixels_are_told_at_the_radii_of_the_field() -> None:
    pixels = frozen(["a", "b"], (1, 1, 3), domain=(0.0, 1.0))
    found = certificates([0.3, 0.3, 0.26, 0.0], [True, False, True, True])
    for text in (card(Subject(pixels, certificates=found)), card(Subject(pixels))):
        assert "reject_below=36 / 255)" in text
        assert "pixels in [0, 1]" in text
    assert "| 72/255 |" in card(Subject(pixels, certificates=found))
    bytes_ = frozen(["a", "b"], (1, 1, 3), domain=(0.0, 255.0))
    assert "/ 255" not in card(Subject(bytes_))


def test_units_domain_and_slack_are_stated() -> None:
    flat = frozen(["a", "b"], domain=(-2.0, 3.5))
    text = card(Subject(flat), slack=3.01e-12)
    assert "Radii are l2 distances in the data's own units;" in text
    assert "- Domain of the entries of an input: [-2, 3.5]" in text
    assert "at most 3.1 × 10⁻¹² for any input of the domain" in text
    assert "Inputs outside of the domain are refused" in text
    upsampled = Recipe(name="x", data=DataOptions(upsample=3))
    assert "multiplies distances by 3" in card(Subject(flat, upsampled))
    assert is_sealed(text)


def test_a_slack_that_nothing_bounds_is_said_so() -> None:
    assert "at most ∞ for any input of the domain" in card(Subject(frozen(["a", "b"])), slack=inf)


def test_units_are_text() -> None:
    columns = [{"name": name, "unit": 2.0} for name in ("<img src=x>", "*b*", "c")]
    subject = Subject(frozen(["a", "b"]))
    subject.frozen.facts["encoding"] = {"label": "y", "scale": "units", "columns": columns}
    _, text = read_card(card(subject))
    assert r"unit lengths of the columns (\<img src=x\> = 2, \*b\* = 2" in text
    assert "(<img" not in text


@pytest.mark.parametrize("name", ["---", 'a "b" | c: d # e', "[x](y) <b> `c`", "é日本", "- 1"])
def test_names_are_text_wherever_they_stand(name: str) -> None:
    recipe = Recipe(name=name)
    subject = Subject(frozen(HOSTILE), recipe, None, certificates([0.5], [True]))
    table, text = read_card(card(subject, name))
    assert table["model-index"][0]["name"] == name
    lines = text.split("\n")
    assert "<script>" not in text
    assert "`tick`" not in text
    assert "\u202e" not in text
    assert text.count("\n---\n") == 0
    assert len([line for line in lines if line.startswith("# ")]) == 1
    widths = {line.count("|") - line.count("\\|") for line in lines if line.startswith("| ")}
    assert widths <= {3, 5, 6}


def test_many_classes_are_counted() -> None:
    names = [f"class {number}" for number in range(2000)]
    head = Dense(torch.zeros(2000, 3), torch.zeros(2000))
    text = card(Subject(FrozenNetwork([head], (3,), names)))
    assert "class 29, and 1,970 more, which the model file names." in text
    assert "class 30" not in text


@pytest.mark.parametrize("test", [None, "rows.csv"])
def test_the_command_trains_with_the_table_of_test_rows(test: str | None) -> None:
    recipe = Recipe(name="x", data=DataOptions(name="table", path="a.csv", test=test))
    _, text = read_card(card(Subject(frozen(["a", "b"]), recipe)))
    given = " --set data.test=TEST" if test else ""
    assert f"unitmargin run recipe.toml --data DATA{given} --out runs/again" in text
    assert ("TEST that of test rows" in text) == bool(test)
    assert "rows.csv" not in text
    assert "\n\nThe recipe has seed 0." in text or test


def test_an_edited_card_is_known() -> None:
    text = card(Subject(frozen(["a", "b"])))
    assert is_sealed(text)
    for other in ("", text[:-1], text + "\n", text.replace("pipeline_tag", "license"), "a\n", "é"):
        assert not is_sealed(other)
