"""What a guard is asked: arrays of the network's shape, judged entry by entry."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FLOATS = (np.float32, np.float64, np.float16)
"""Types of inputs; networks take float32 or float64."""

UP = 1.0 + 2.0**-40
"""Factor that covers the rounding of a root and of two products."""


LIMITS = {np.dtype(np.float32): 2.0**128 - 2.0**103, np.dtype(np.float64): math.inf}
"""Magnitudes from which on a number is rounded to infinity, by the type of a network's inputs."""


class Inputs(NamedTuple):
    """A batch as the network takes it, and what is known of each input.

    Attributes:
        x: in the network's type, contiguous; zeros where ``finite`` is false.
        lowest: smallest entry of each input as it was given; NaN where an entry is.
        highest: largest entry.
        finite: whether all entries are finite in the network's type.
        moved: upper bound of the distance of ``x`` from the given input.
    """

    x: NDArray[Any]
    lowest: list[float]
    highest: list[float]
    finite: list[bool]
    moved: list[float]


def require_array(x: object, in_shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of floating point numbers, of the shape of one input or of a batch.

    No number is looked at, and none is copied that the array's owner does not copy.

    Raises:
        TypeError: no array and nothing that gives itself as one, or one of other things than real
            numbers of 64 bits at most.
        ValueError: another shape, integers, or masked entries.
    """
    if isinstance(x, type) or not hasattr(x, "__array__"):
        raise TypeError(
            f"x must be a NumPy array or a tensor, got {type(x).__name__}; make an array of it by "
            "numpy.asarray"
        )
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(
            f"x must hold no masked entries, got {int(x.mask.sum())}; fill them with "
            "filled(value), or drop their rows"
        )
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"x must be readable as a NumPy array, got {type(x).__name__}, which says "
            f"{' '.join(str(error).split())!r}; pass x.detach().cpu().double().numpy()"
        ) from None
    require_floats(array)
    if in_shape not in (array.shape, array.shape[1:]):
        sizes = ", ".join(map(str, in_shape))
        raise ValueError(
            f"x must have shape ({sizes}{',' * (len(in_shape) == 1)}) or (batch, {sizes}), got "
            f"{array.shape}; reshape it"
        )
    return array


def require_floats(array: NDArray[Any]) -> None:
    """Raise unless an array holds floating point numbers of 64 bits at most.

    Raises:
        TypeError: other things than real numbers, or longer ones.
        ValueError: integers or truth values.
    """
    dtype = array.dtype
    if dtype.type in FLOATS:
        return
    if dtype.kind in "biu":
        raise ValueError(
            f"x must hold floating point numbers, got {dtype}; scale it to the units the network "
            "was trained in, bytes by x.astype(numpy.float32) / 255"
        )
    if dtype.kind == "f":
        raise TypeError(
            f"x must hold numbers of 64 bits at most, got {dtype}; round them with "
            "astype(numpy.float64)"
        )
    raise TypeError(
        f"x must hold real numbers, got {str(dtype)[:40]}; convert it with astype(numpy.float64)"
    )


def judged(batch: NDArray[Any], dtype: np.dtype[Any]) -> Inputs:
    r"""The batch in the network's type, and how far rounding it moved each input.

    Each entry of :math:`x - fl(x)` is a float64 number, so the differences are exact, and
    :math:`\|x - fl(x)\| \le \sqrt n \max_i |x_i - fl(x_i)|`, which is rounded up.

    NumPy may warn of overflow and NaN unless told otherwise. Memory: a few times that of the batch.
    """
    size = math.prod(batch.shape[1:])
    rows = np.ascontiguousarray(batch, batch.dtype.newbyteorder("=")).reshape(-1, size)
    lowest: list[float] = np.minimum.reduce(rows, axis=1).tolist()
    highest: list[float] = np.maximum.reduce(rows, axis=1).tolist()
    limit = LIMITS[dtype]
    ends = zip(lowest, highest, strict=True)
    finite = [-limit < low and high < limit for low, high in ends]
    if not all(finite):
        rows = np.where(np.array(finite)[:, None], rows, rows.dtype.type(0))
    x = rows.astype(dtype, copy=False)
    return Inputs(x.reshape(batch.shape), lowest, highest, finite, _distances(rows, x))


def _distances(rows: NDArray[Any], x: NDArray[Any]) -> list[float]:
    if rows.dtype.itemsize <= x.dtype.itemsize:
        return [0.0] * len(rows)
    largest = np.maximum.reduce(np.abs(rows - x), axis=1).tolist()
    factor = math.sqrt(rows.shape[1]) * UP
    return [math.nextafter(entry * factor, math.inf) if entry else 0.0 for entry in largest]
