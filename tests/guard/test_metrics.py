"""What a Prometheus server reads of guards."""

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_files import write_half_planes
from prometheus_client import CollectorRegistry

from unitmargin.guard import OUTCOMES, Guard
from unitmargin.guard.metrics import metrics_of

BATCH = np.array([[0.9, 0.3], [np.nan, 0.5], [-0.3, 1.2], [0.5, 0.5], [0.5, 0.6]], np.float32)
"""An input of each outcome of arrays: radii of 0.141, none, none, 0 and 0.0707."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_half_planes(tmp_path_factory.mktemp("metrics") / "door.onnx")


def test_answers_radii_and_seconds_are_counted(path: Path) -> None:
    registry, guard = CollectorRegistry(), Guard(path, 0.14)
    guard(BATCH)  # before the export
    guard.export_metrics(registry)
    guard(BATCH)
    guard(BATCH[0])
    read = registry.get_sample_value
    for outcome in (outcome for outcome in OUTCOMES if outcome != "not_encoded"):
        labels = {"guard": "door", "outcome": outcome}
        expected = 2.0 if outcome == "certified" else 1.0
        assert read("unitmargin_guard_answers_total", labels) == expected
    assert read("unitmargin_guard_radius_count", {"guard": "door"}) == 4
    assert read("unitmargin_guard_radius_bucket", {"guard": "door", "le": "0.125"}) == 2
    assert read("unitmargin_guard_radius_bucket", {"guard": "door", "le": "0.25"}) == 4
    assert read("unitmargin_guard_seconds_count", {"guard": "door"}) == 2
    assert guard.counters["certified"] == 3


def test_guards_of_one_registry_are_told_apart(path: Path) -> None:
    registry, one, other = CollectorRegistry(), Guard(path), Guard(path)
    one.export_metrics(registry)
    other.export_metrics(registry, name="window")
    other(BATCH[0])
    read = registry.get_sample_value
    labels = {"guard": "window", "outcome": "certified"}
    assert read("unitmargin_guard_answers_total", labels) == 1
    assert read("unitmargin_guard_answers_total", labels | {"guard": "door"}) == 0


def test_what_never_happened_is_zero_from_the_beginning(path: Path) -> None:
    """A share of a series that is not there would be no number, and alarm nobody."""
    registry, guard = CollectorRegistry(), Guard(path)
    guard.export_metrics(registry)
    read = registry.get_sample_value
    for outcome in OUTCOMES:
        labels = {"guard": "door", "outcome": outcome}
        assert read("unitmargin_guard_answers_total", labels) == 0
    for metric in ("radius", "seconds"):
        assert read(f"unitmargin_guard_{metric}_count", {"guard": "door"}) == 0


def test_the_default_registry_is_that_of_the_client() -> None:
    assert metrics_of() is metrics_of()
    assert metrics_of(CollectorRegistry()) is not metrics_of()


def test_without_the_client_an_error_names_the_extra(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    guard = Guard(path)
    with pytest.raises(ImportError, match=r"pip install unitmargin\[monitor\]"):
        guard.export_metrics()
    assert guard(BATCH[0])


def test_a_registry_is_a_registry_and_a_name_a_word(path: Path) -> None:
    guard = Guard(path)
    with pytest.raises(TypeError, match="registry must be a CollectorRegistry, got str; leave"):
        guard.export_metrics("default")
