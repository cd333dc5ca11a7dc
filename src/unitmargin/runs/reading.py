"""One reading of a run folder: each of its files is read once, for outputs that ask often."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.folder import RunFolder

Content = TypeVar("Content")


def _once(read: Callable[[Any], Content]) -> Callable[["RunReading"], Content]:
    """A method of the folder that keeps its first answer."""

    @wraps(read)
    def method(reading: "RunReading") -> Content:
        if read.__name__ not in reading._contents:
            reading._contents[read.__name__] = read(reading)
        return reading._contents[read.__name__]  # type: ignore[no-any-return]

    return method


class RunReading(RunFolder):
    """A run folder as it was when each file was first asked for.

    The tables and figures of one output speak of the same contents, whatever is written meanwhile,
    and cost one reading. It is for as long as the output takes; steps take a :class:`RunFolder`.

    Example:
        >>> RunReading("runs/mnist").path.name
        'mnist'
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._contents: dict[str, Any] = {}

    recipe = _once(RunFolder.recipe)
    origin = _once(RunFolder.origin)
    history = _once(RunFolder.history)
    certificates = _once(RunFolder.certificates)
    findings = _once(RunFolder.findings)
    searches = _once(RunFolder.searches)
    measurements = _once(RunFolder.measurements)
    hashed_frozen = _once(RunFolder.hashed_frozen)
    model = _once(RunFolder.model)

    def frozen(self) -> FrozenNetwork:
        return self.hashed_frozen()[0]
