"""Predicting new inputs: a table for people, lines of JSON for programs."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from claims import EXAMPLES

from unitmargin.certificates.certify import certify
from unitmargin.runs.certifier import CERTIFY_BATCH, FrozenCertifier
from unitmargin.steps.predict import SPOOLED, predict


@pytest.fixture
def certifier() -> FrozenCertifier:
    network = EXAMPLES["head alone"]().network
    network.classes = ("a cat", "ü", "x\ny")
    return FrozenCertifier(network)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.save(tmp_path / "new.npy", np.random.default_rng(0).random((12, 5), np.float32))
    return tmp_path / "new.npy"


@pytest.mark.parametrize("batch_size", [5, CERTIFY_BATCH])
def test_programs_get_an_object_a_line_with_all_digits(
    certifier: FrozenCertifier, data: Path, batch_size: int
) -> None:
    rows = [json.loads(line) for line in predict(certifier, data, True, batch_size)]
    truth = certify(certifier.frozen, np.load(data))
    assert [row["source"] for row in rows] == [f"x[{number}]" for number in range(12)]
    assert [row["predicted"] for row in rows] == truth.label.tolist()
    assert [row["runner_up"] for row in rows] == truth.runner_up.tolist()
    names = certifier.classes
    assert [row["predicted_name"] for row in rows] == [names[label] for label in truth.label]
    assert [row["runner_up_name"] for row in rows] == [names[label] for label in truth.runner_up]
    for name in ("margin", "radius"):
        found = np.array([row[name] for row in rows])
        assert np.abs(found - getattr(truth, name).numpy()).max() <= 1e-13


def test_people_get_an_aligned_table_whose_radii_are_rounded_down(
    certifier: FrozenCertifier, data: Path
) -> None:
    header, *lines = predict(certifier, data)
    truth = certify(certifier.frozen, np.load(data))
    assert header.split() == ["source", "predicted", "radius", "runner-up", "margin"]
    ends = header.index("radius") + len("radius")
    starts = header.index("predicted"), header.index("runner-up")
    for place, line in enumerate(lines):
        assert line.startswith(f"x[{place}]")
        printed = line[:ends].split()[-1]
        radius = Decimal(float(truth.radius[place]))
        assert radius * (1 - Decimal("1e-5")) <= Decimal(printed) <= radius
        classes = int(truth.label[place]), int(truth.runner_up[place])
        for start, label in zip(starts, classes, strict=True):
            name = " ".join(certifier.classes[label].split())
            assert line[start:].startswith(f"{name} ")
    assert len(lines) == 12
    assert not any("\n" in line for line in lines)


def test_nothing_is_said_of_inputs_that_do_not_fit(
    certifier: FrozenCertifier, tmp_path: Path
) -> None:
    np.save(tmp_path / "new.npy", np.zeros((3, 4)))
    for as_json in (False, True):
        with pytest.raises(ValueError, match=r"x must have shape \(n, 5\)"):
            list(predict(certifier, tmp_path / "new.npy", as_json))


@pytest.mark.parametrize("spooled", [0, SPOOLED])
def test_nothing_is_printed_where_a_later_batch_is_refused(
    certifier: FrozenCertifier, data: Path, spooled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unitmargin.steps.predict.SPOOLED", spooled)
    whole = [*predict(certifier, data, True, 5)]
    assert len(whole) == 12
    inputs = np.load(data)
    inputs[-1, 0] = np.nan
    np.save(data, inputs)
    for as_json in (False, True):
        with pytest.raises(ValueError, match=r"got NaN or infinity in x\[11\]"):
            next(predict(certifier, data, as_json, 5))


def test_no_batch_has_less_than_one_input(certifier: FrozenCertifier, data: Path) -> None:
    with pytest.raises(ValueError, match="batch_size must be >= 1, got 0; leave it out"):
        predict(certifier, data, batch_size=0)
