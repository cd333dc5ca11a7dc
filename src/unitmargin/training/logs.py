"""What an epoch came to, told to the programs that draw curves."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unitmargin.foundation.choice import require_choice
from unitmargin.training.train import EpochRecord

Log = Callable[[EpochRecord], None]

PROJECT = "unitmargin"
"""Under which wandb and trackio collect runs."""


@contextmanager
def tensorboard(folder: Path, options: Mapping[str, Any]) -> Iterator[Log]:
    """Event files below the folder; nothing leaves the machine."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))

    def log(record: EpochRecord) -> None:
        for name, value in _values(record).items():
            writer.add_scalar(name, value, record.epoch)
        writer.flush()

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def wandb(folder: Path, options: Mapping[str, Any]) -> Iterator[Log]:
    """A run of Weights & Biases; with WANDB_MODE=offline it stays below the folder."""
    import wandb

    settings = {"name": folder.name, "dir": str(folder), "config": dict(options)}
    with wandb.init(project=PROJECT, **settings) as run:
        yield lambda record: run.log(_values(record), step=record.epoch)


@contextmanager
def trackio(folder: Path, options: Mapping[str, Any]) -> Iterator[Log]:
    """A run in trackio's own folder (TRACKIO_DIR), or where TRACKIO_SPACE_ID sends it."""
    import trackio

    config = dict(options)
    trackio.init(project=PROJECT, name=folder.name, config=config, resume="allow")
    try:
        yield lambda record: trackio.log(_values(record), step=record.epoch)
    finally:
        trackio.finish()


LOGS: dict[str, Callable[[Path, Mapping[str, Any]], AbstractContextManager[Log]]] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "trackio": trackio,
}
"""By the name of the package, which is that of the extra."""


def require_log(name: str) -> None:
    """Raise unless it is the name of a log whose package is installed.

    Raises:
        ValueError: another name.
        ImportError: its package is missing.
    """
    require_choice("log", name, LOGS)
    found = find_spec(name)
    # To Python any folder of that name is a package, as the one that wandb leaves behind.
    folder = found is not None and found.origin is None and found.submodule_search_locations
    if found is None or folder:
        raise ImportError(
            f"{name} must be installed to log to it, got none; run `pip install unitmargin[{name}]`"
        )


def open_log(
    name: str | None, folder: Path, options: Mapping[str, Any]
) -> AbstractContextManager[Log]:
    """A function to be called after each epoch, open within a ``with``; without a name it does
    nothing.

    Args:
        name: one of ``LOGS``.
        folder: the run folder, whose name is that of the run.
        options: of the training, for programs that keep them.

    Raises:
        ValueError, ImportError: as :func:`require_log`.

    Example:
        >>> with open_log(None, Path("runs/digits"), {}) as log:
        ...     log(EpochRecord(1, 0.5, None, None, None, 0.01, 2.0))
    """
    if name is None:
        return nullcontext(lambda record: None)
    require_log(name)
    return LOGS[name](folder, options)


def _values(record: EpochRecord) -> dict[str, float]:
    """All that was measured, by the names of history.csv."""
    measured = asdict(record)
    del measured["epoch"]
    return {name: value for name, value in measured.items() if value is not None}
