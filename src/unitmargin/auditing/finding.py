"""What was found of one promise: a row of checks.json."""

import math
from typing import Annotated, Any

from pydantic import BeforeValidator

from unitmargin.foundation.options import Options


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


FiniteOrNone = Annotated[float | None, BeforeValidator(_finite)]
"""A number as JSON has it: None in place of one that is not finite."""


class Finding(Options):
    """One promise, what was measured, and whether it held.

    Attributes:
        name: of the promise.
        passed: whether it held; None if nothing was measured.
        value: what was measured; None where nothing was, or nothing finite.
        bound: what the value was compared with.
        detail: what broke, empty if nothing did.
        not_run: why nothing was measured, be it that the network does not make the promise, or that
            no sample could break it; empty if something was.
    """

    name: str
    passed: bool | None
    value: FiniteOrNone
    bound: FiniteOrNone
    detail: str = ""
    not_run: str = ""

    @property
    def failed(self) -> bool:
        """Whether it was measured and did not hold."""
        return self.passed is False


def at_most(name: str, value: float, bound: float) -> Finding:
    """The finding that a measured value keeps its bound, or exceeds it.

    Example:
        >>> at_most("upd", 0.5, 1e-5).detail
        '5.000e-01 exceeds 1e-05'
    """
    detail = "" if value <= bound else f"{value:.3e} exceeds {bound:.0e}"
    return Finding(name=name, passed=not detail, value=value, bound=bound, detail=detail)


def not_run(name: str, reason: str) -> Finding:
    """The finding that nothing was measured, and why."""
    return Finding(name=name, passed=None, value=None, bound=None, not_run=reason)
