"""Types and shapes are checked at run time, so many times a test."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from beartype import beartype
from jaxtyping import config

Function = TypeVar("Function", bound=Callable[..., Any])

CHECKED = int(os.environ.get("UNITMARGIN_CHECKED", "4000"))
"""Checks of a test, two a call, of its arguments and of its answer; 0: all of them, as at night.
Later calls repeat the functions of the first ones, in loops of searches and trainings."""

_left = CHECKED


def begin() -> None:
    """Check the calls that follow, until there were ``CHECKED`` checks."""
    global _left
    _left = CHECKED
    config.update("jaxtyping_disable", False)


def typechecker(function: Function) -> Function:
    """The function, whose calls are checked by beartype and counted."""
    checking = beartype(function)

    @wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        global _left
        _left -= 1
        if _left == 0:
            config.update("jaxtyping_disable", True)
        return checking(*arguments, **named)

    return counted
