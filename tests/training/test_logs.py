"""Each epoch is told once, with all that was measured, to the program of that name."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from unitmargin.foundation.failures import describe
from unitmargin.training.logs import LOGS, open_log, require_log
from unitmargin.training.train import EpochRecord

FIRST = EpochRecord(1, 0.5, None, None, None, 0.01, 2.0)
SECOND = EpochRecord(2, 0.25, 0.75, 0.5, 1e-7, 0.005, 3.0)

VALUES = [
    (1, {"loss": 0.5, "learning_rate": 0.01, "seconds": 2.0}),
    (2, {"loss": 0.25, "clean_accuracy": 0.75, "certified_accuracy": 0.5,
         "orthogonality_error": 1e-7, "learning_rate": 0.005, "seconds": 3.0}),
]  # fmt: skip
"""What was measured; an epoch that was not evaluated has no accuracy."""

CONFIG = {"training": {"epochs": 2}}


class Calls(list[Any]):
    """What a program was told, in order."""

    def log(self, values: dict[str, float], step: int) -> None:
        self.append((step, values))

    def init(self, **settings: Any) -> Any:
        self.append(settings)

        @contextmanager
        def run() -> Iterator[Any]:
            try:
                yield SimpleNamespace(log=self.log)
            finally:
                self.append("end")

        return run()

    def finish(self) -> None:
        self.append("end")


def installed(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(functions)
    monkeypatch.setitem(sys.modules, name, module)


def tell(name: str, folder: Path, fails: bool = False) -> None:
    with open_log(name, folder, CONFIG) as log:
        log(FIRST)
        if fails:
            raise KeyboardInterrupt
        log(SECOND)


def test_wandb_is_told_each_epoch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = Calls()
    installed(monkeypatch, "wandb", init=calls.init)
    tell("wandb", tmp_path / "run")
    place = {"name": "run", "dir": str(tmp_path / "run")}
    assert calls == [{"project": "unitmargin", "config": CONFIG, **place}, *VALUES, "end"]


def test_trackio_is_told_each_epoch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = Calls()
    installed(monkeypatch, "trackio", init=calls.init, log=calls.log, finish=calls.finish)
    tell("trackio", tmp_path / "run")
    settings = {"project": "unitmargin", "name": "run", "config": CONFIG, "resume": "allow"}
    assert calls == [settings, *VALUES, "end"]


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_log_ends_when_the_training_does(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = Calls()
    installed(monkeypatch, name, init=calls.init, log=calls.log, finish=calls.finish)
    with pytest.raises(KeyboardInterrupt):
        tell(name, tmp_path, fails=True)
    assert calls[1:] == [VALUES[0], "end"]


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is not installed")
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tell("tensorboard", tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    found = {
        (event.step, name): event.value
        for name in events.Tags()["scalars"]
        for event in events.Scalars(name)
    }
    written = {(step, name): value for step, row in VALUES for name, value in row.items()}
    assert found == pytest.approx(written, rel=1e-6)


def test_tensorboard_is_given_each_value_by_its_epoch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            calls.append(folder)

        def add_scalar(self, name: str, value: float, epoch: int) -> None:
            calls.append((epoch, name, value))

        def flush(self) -> None:
            pass

        def close(self) -> None:
            calls.append("end")

    installed(monkeypatch, "tensorboard")
    installed(monkeypatch, "torch.utils.tensorboard", SummaryWriter=Writer)
    tell("tensorboard", tmp_path)
    told = [(step, name, value) for step, row in VALUES for name, value in row.items()]
    assert calls == [str(tmp_path / "tensorboard"), *told, "end"]


@pytest.mark.parametrize("name", LOGS)
def test_a_missing_package_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unitmargin.training.logs.find_spec", lambda _: None)
    with pytest.raises(ImportError) as caught:
        require_log(name)
    message = describe(caught.value)
    assert message == (
        f"{name} must be installed to log to it, got none; run `pip install unitmargin[{name}]`"
    )


def test_an_unknown_log_is_refused() -> None:
    with pytest.raises(ValueError, match="log must be one of tensorboard, wandb, trackio, got 'w"):
        require_log("wandbb")


def test_a_folder_of_the_name_of_a_log_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wandb leaves one behind where it wrote."""
    (tmp_path / "invented").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(LOGS, "invented", LOGS["wandb"])
    with pytest.raises(ImportError, match="invented must be installed to log to it, got none"):
        require_log("invented")
