"""Work in the types that numbers have, whatever autocast would make of them."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

DEVICES = ("cpu", "cuda", "mps", "xpu")
"""Kinds of devices for which autocast may be on, each by its own switch."""


def outside_autocast(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, which computes in the types of its tensors under autocast too."""

    @wraps(function)
    def exact(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with ExitStack() as off:
            for kind in filter(torch.is_autocast_enabled, DEVICES):
                off.enter_context(torch.autocast(kind, enabled=False))
            return function(*arguments, **named)

    return exact
