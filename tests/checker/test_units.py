"""Units of radii: the words of the checker are those of the library, for every encoding."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from claims import EXAMPLES, certified
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.checker import CheckError, check
from unitmargin.checker.units import INPUTS, radius_units
from unitmargin.data import ENCODING, Encoding
from unitmargin.data import radius_units as library
from unitmargin.data.encoding import INPUT_UNITS, SCALES
from unitmargin.runs.folder import RunError, RunFolder

UNITS = st.one_of(st.just(1.0), st.floats(1e-9, 1e9), st.integers(1, 99))

COLUMNS = st.fixed_dictionaries(
    {"name": st.text(max_size=4)},
    optional={
        "unit": UNITS,
        "shift": st.floats(-9, 9),
        "categories": st.lists(st.text(max_size=3), min_size=1, max_size=3),
    },
)

ENCODINGS = st.fixed_dictionaries(
    {"label": st.just("kind"), "columns": st.lists(COLUMNS, min_size=1, max_size=4)},
    optional={"scale": st.sampled_from(SCALES), "ignored": st.just(["id"])},
)


@given(ENCODINGS)
def test_the_words_are_those_of_the_library(stated: dict[str, Any]) -> None:
    assert radius_units(stated) == library(Encoding(**stated).units)
    assert radius_units(json.loads(json.dumps(stated))) == radius_units(stated)


def test_of_no_table_they_are_the_inputs_own() -> None:
    assert INPUTS == INPUT_UNITS
    assert radius_units(None) == library()


def table(folder: Path, encoding: object) -> RunFolder:
    """Certificates of a network whose file states an encoding."""
    torch.manual_seed(0)
    example = EXAMPLES["long sums"]()
    example.network.facts[ENCODING] = encoding
    return certified(folder, example)


def require(run: RunFolder) -> None:
    files = run.certificates_file, run.certificate_facts_file, run.model_file, run.inputs_file
    assert not any(verdict.reason for verdict in check(*files)[0])
    run.certificates()


def test_units_of_a_table_are_compared(tmp_path: Path) -> None:
    columns = [{"name": f"column {place}", "unit": 2.0} for place in range(300)]
    encoding = {"label": "kind", "scale": "features", "columns": columns}
    run = table(tmp_path, encoding)
    facts = json.loads(run.certificate_facts_file.read_text())
    facts["units"] = "l2 distance in standard deviations of the training rows"
    run.certificate_facts_file.write_text(json.dumps(facts))
    require(run)
    for units in ("l2 distance in the units of the columns", library()):
        run.certificate_facts_file.write_text(json.dumps(facts | {"units": units}))
        with pytest.raises(CheckError, match="says other units of radii"):
            require(run)
        with pytest.raises(RunError, match=r"units must be 'l2 distance in standard deviations"):
            run.certificates()


@pytest.mark.parametrize(
    "encoding",
    [
        7, [], {}, {"columns": []}, {"scale": "miles", "columns": []}, {"columns": [{"unit": 1.0}]},
        {"scale": "units", "columns": [{"name": "a", "unit": "x"}]},
        {"columns": [{"name": "a", "unit": 0, "categories": ["b"]}]},
        {"columns": [{"name": [], "unit": 1.0, "categories": ["b"]}]},
    ],
)  # fmt: skip
def test_what_is_no_encoding_is_refused(tmp_path: Path, encoding: object) -> None:
    run = table(tmp_path, encoding)
    refusals = "states no encoding of a table: .*; freeze again|says other units"
    with pytest.raises(CheckError, match=refusals):
        require(run)
    with pytest.raises(RunError, match="certificates.csv: "):
        run.certificates()
