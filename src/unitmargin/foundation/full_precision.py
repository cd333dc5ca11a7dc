"""Work in the types that numbers have, whatever autocast or a global setting would make of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

DEVICES = ("cpu", "cuda", "mps", "xpu")
"""Kinds of devices for which autocast may be on, each by its own switch."""

FULL, SHORT = "ieee", "tf32"
"""Settings of one backend, as "highest" and "high" are of all."""

AS_THEY_ARE = {FULL, "none"}
"""Settings of one backend that shorten nothing."""


def in_full_precision(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, which computes in the types of its tensors under autocast too, and multiplies
    float32 matrices with all of their bits where ``torch.set_float32_matmul_precision`` or a
    setting of a backend would round them first."""

    @wraps(function)
    def exact(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with ExitStack() as off:
            for kind in filter(torch.is_autocast_enabled, DEVICES):
                off.enter_context(torch.autocast(kind, enabled=False))
            off.enter_context(float32_products("highest"))
            return function(*arguments, **named)

    return exact


@contextmanager
def float32_products(precision: Literal["highest", "high"]) -> Iterator[None]:
    """Products of matrices by all bits, or by TF32 on CUDA, by the general setting where that
    answers, so that compilers may ask it; where somebody has set single ones it raises, and these
    are changed.

    On leaving, each setting is what it was; those that are as asked are not touched. They are the
    process's: where they are not, calls must not overlap in threads.
    """
    cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    singles = cuda.fp32_precision, mkldnn.fp32_precision
    try:
        general = torch.get_float32_matmul_precision()
    except RuntimeError:
        general = ""
    if general == precision == "highest" and not {*singles} - AS_THEY_ARE:
        yield
        return
    try:
        if general:
            torch.set_float32_matmul_precision(precision)
        elif precision == "high":
            cuda.fp32_precision = SHORT
        else:
            cuda.fp32_precision = mkldnn.fp32_precision = FULL
        yield
    finally:
        if general:
            torch.set_float32_matmul_precision(general)
        cuda.fp32_precision, mkldnn.fp32_precision = singles
