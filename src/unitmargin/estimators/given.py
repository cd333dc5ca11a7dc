"""What an estimator is given: parameters and labels, judged; and what a failure leaves of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unitmargin.foundation.numbers import require_whole, shown


@contextmanager
def unchanged_by_failure(estimator: object) -> Iterator[None]:
    """An estimator has the attributes of before where anything is raised, an interrupt too."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def refuse(parameters: dict[str, Any]) -> None:
    """Raise for parameters of ``fit``; None says nothing."""
    if given := [name for name, value in parameters.items() if value is not None]:
        raise TypeError(
            f"{given[0]} must be left out of fit, got a value; give parameters to the estimator, "
            "and repeat samples to weigh them"
        )


def without_graph(X: Any) -> Any:
    """A tensor without what made it and in the memory that NumPy reads; others as they are."""
    return X.detach().cpu() if isinstance(X, Tensor) else X


def require_switch(what: str, value: Any) -> None:
    """Raise unless a parameter is on or off: True, False, or a number as other estimators take."""
    if not isinstance(value, bool | np.bool_ | Integral):
        raise TypeError(f"{what} must be True or False, got {shown(value)}; pass one of them")


def require_classes(found: NDArray[Any], before: NDArray[Any]) -> None:
    """Raise unless there are several classes, the same as in the fit before."""
    if len(found) < 2:
        raise ValueError(
            f"y must hold at least 2 classes, got 1 class, {shown(found.tolist()[0])}; add samples "
            "of another one: one class has no boundary"
        )
    if not np.array_equal(found, before):
        raise ValueError(
            "y must hold the classes of the fit before for a warm start, "
            f"{shown(before.tolist())}, got {shown(found.tolist())}; pass samples of all of them, "
            "or set warm_start=False"
        )


def widths(hidden: Any) -> list[int]:
    """Hidden widths as a list; raises unless they are whole numbers in a row."""
    step = "pass widths, such as (16, 8), or None for the default"
    listed = isinstance(hidden, Sequence) or (isinstance(hidden, np.ndarray) and hidden.ndim == 1)
    if not listed or isinstance(hidden, str | bytes):
        raise TypeError(f"hidden must be a list of whole numbers, got {shown(hidden)}; {step}")
    return [require_whole("hidden", width, 1, step) for width in hidden]


def plain(value: Any) -> Any:
    """A scalar of NumPy, which grids of parameters are made of, as one of Python."""
    return value.item() if isinstance(value, np.generic) else value
