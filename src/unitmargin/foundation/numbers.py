"""Numbers from outside: tensors, arrays, data frames and labels, and what is none of them."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Types of inputs: those in which every operation of a network exists."""

WHOLE = (
    torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint64, torch.uint32, torch.uint16, torch.uint8,
)  # fmt: skip
"""Types of labels."""

ARRAY_FLOATS = (np.float64, np.float32, np.float16)
"""Floating types that NumPy and torch share: longer numbers would be rounded in silence."""

LONGEST = 40
"""Characters of an entry in a message."""


@runtime_checkable
class ToNumPy(Protocol):
    """What gives itself as an array: a data frame or a column of one."""

    def to_numpy(self) -> NDArray[Any]: ...


Numbers = Tensor | NDArray[Any] | ToNumPy
"""What public functions take for inputs and labels."""


ANY = "a tensor, a NumPy array or a data frame"


def as_tensor(what: str, value: object, kinds: str = ANY) -> Tensor:
    """The same numbers as a tensor without a graph; an array's memory is shared if it can be.

    Taken are dense tensors, NumPy arrays, and whatever has ``to_numpy()``, such as pandas data
    frames and series, whose index plays no part. No number is rounded: columns of several types
    become one only where it holds all their numbers. ``kinds`` says in a message what else the
    caller takes.

    Raises:
        TypeError: anything else, and entries that are no real numbers (text, dates, objects,
            complex numbers) or have no type in torch.
        ValueError: masked entries; whole numbers of a data frame that the type of its other columns
            does not hold.

    Example:
        >>> as_tensor("x", np.array([[1.0, 2.0]]))
        tensor([[1., 2.]], dtype=torch.float64)
    """
    if isinstance(value, Tensor):
        return _dense(what, value)
    given = isinstance(value, ToNumPy) and not isinstance(value, type)
    array = value.to_numpy() if given else value  # type: ignore[attr-defined]
    if isinstance(array, np.ndarray) and _holds_floats(array):
        array = array.astype(np.float64)
    if not isinstance(array, np.ndarray):
        listed = isinstance(value, list | tuple)
        step = "make an array of it by numpy.asarray" if listed else "pass numbers"
        raise TypeError(f"{what} must be {kinds}, got {type(value).__name__}; {step}")
    _require_numbers(what, array)
    if given:
        _require_kept(what, value, array)
    strides = all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
    if not (strides and array.flags.writeable and array.dtype.isnative):
        array = np.array(array, array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(array)


def require_encoded(what: str, value: object, encoding: object) -> None:
    """Raise unless rows of a table were encoded, where a network states an encoding of them.

    Names of columns are those of a table as it is: its numbers have other units, and perhaps
    another order, than the inputs of the network. ``encoding`` is None where it states none.

    Raises:
        TypeError: what has columns by name.
    """
    if encoding is not None and hasattr(value, "columns"):
        raise TypeError(
            f"{what} must hold the numbers that the encoding of the network gives, got a table "
            "with columns by name; pass its rows to a unitmargin.Guard of the model file, or the "
            "encoded numbers as an array"
        )


def as_labels(what: str, value: object) -> Tensor:
    """Class numbers as an int64 tensor; see :func:`as_tensor`.

    Raises:
        TypeError: what :func:`as_tensor` refuses.
        ValueError: another type than whole numbers, or one that int64 does not hold.
    """
    labels = as_tensor(what, value)
    if labels.dtype not in WHOLE:
        raise ValueError(
            f"{what} must be of an integer dtype, got {labels.dtype}; pass the number of the class "
            "of every sample, counted from 0"
        )
    numbers = labels.to(torch.int64)
    if labels.dtype == torch.uint64 and bool((numbers < 0).any()):
        raise ValueError(f"{what} must be below 2**63, got larger numbers; count classes from 0")
    return numbers


def require_floating(what: str, x: Tensor, step: str) -> None:
    """Raise a ValueError unless a tensor is of a type in ``FLOATING``."""
    if x.dtype not in FLOATING:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in FLOATING)
        raise ValueError(f"{what} must be floating point ({names}), got {x.dtype}; {step}")


def is_real(value: object) -> TypeGuard[float]:
    """Whether it is one real number, of Python or NumPy; truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_interval(what: str, value: object, step: str) -> tuple[float, float]:
    """Two numbers (low, high) with low < high, as floats.

    Raises:
        TypeError: what is not two numbers.
        ValueError: another order, or NaN.

    Example:
        >>> require_interval("box", (0, 1), "leave it out")
        (0.0, 1.0)
    """
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, bytes)
    several = several and getattr(value, "ndim", 1) > 0
    ends = list(value) if several else []  # type: ignore[call-overload]
    if len(ends) != 2 or not all(map(is_real, ends)):
        raise TypeError(f"{what} must be two numbers (low, high), got {shown(value)}; {step}")
    low, high = map(as_float, ends)
    if not low < high:
        raise ValueError(f"{what} must be (low, high) with low < high, got {shown(value)}; {step}")
    return low, high


def require_whole(what: str, value: Any, lowest: int, step: str) -> int:
    """A whole number of at least ``lowest``.

    Raises:
        TypeError: no whole number.
        ValueError: a smaller one.
    """
    if not _is_whole(value):
        raise TypeError(f"{what} must be a whole number, got {shown(value)}; {step}")
    if value < lowest:
        raise ValueError(f"{what} must be >= {lowest}, got {shown(value)}; {step}")
    return int(value)


def require_amount(what: str, value: object, step: str) -> float:
    """A finite number of at least 0.

    Raises:
        TypeError: no real number.
        ValueError: a negative one, NaN or infinity.
    """
    if not is_real(value):
        raise TypeError(f"{what} must be a number, got {shown(value)}; {step}")
    number = as_float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{what} must be finite and >= 0, got {shown(value)}; {step}")
    return number


def require_shape(what: str, value: object) -> tuple[int, ...]:
    """Lengths of one input, each at least 1.

    Raises:
        TypeError: no sequence of whole numbers.
        ValueError: no length, or one below 1.
    """
    step = "give the shape of one input without the batch axis"
    given = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
    lengths: list[Any] = list(given or ())
    if given is None or not all(_is_whole(length) for length in lengths):
        raise TypeError(f"{what} must be a tuple of whole numbers, got {shown(value)}; {step}")
    if not lengths or min(lengths) < 1:
        raise ValueError(f"{what} must hold positive lengths, got {shown(value)}; {step}")
    return tuple(map(int, lengths))


def shown(value: object, most: int = LONGEST) -> str:
    """A value in a message: one line of bounded length.

    Example:
        >>> shown("two\\nlines")
        "'two\\\\nlines'"
    """
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python prints no whole number of thousands of digits
        return f"{type(value).__name__} of many digits"
    return text if len(text) <= most else f"{text[:most]}..."


def as_float(number: Any) -> float:
    """A real number as a float, infinite where it is too large for one."""
    try:
        return float(number)
    except OverflowError:  # of an integer
        return math.inf if number > 0 else -math.inf


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _dense(what: str, tensor: Tensor) -> Tensor:
    rules = (
        (tensor.is_nested, "a nested", "pass torch.stack of inputs of one shape"),
        (tensor.is_quantized, "a quantized", "pass its dequantize()"),
        (tensor.layout != torch.strided, "a sparse", "pass its to_dense()"),
        (tensor.is_meta, "a meta", "pass numbers: it has none"),
        (tensor.is_complex(), "a complex", "pass real numbers"),
    )
    for wrong, kind, step in rules:
        if wrong:
            raise TypeError(f"{what} must be a dense real tensor, got {kind} one; {step}")
    return tensor.detach()


def _holds_floats(array: NDArray[Any]) -> bool:
    """Whether these are objects and each is a float: so pandas gives columns that know NA."""
    floats = (float, *ARRAY_FLOATS)
    return array.dtype.kind == "O" and all(isinstance(entry, floats) for entry in array.flat)


def _require_kept(what: str, frame: Any, array: NDArray[Any]) -> None:
    """Raise unless the array of a data frame holds the whole numbers of its columns."""
    if array.dtype.kind != "f" or not hasattr(frame, "columns"):
        return
    named = hasattr(frame, "items")  # whose columns may share a name
    columns = frame.items() if named else ((name, frame[name]) for name in frame.columns)
    for (name, column), floats in zip(columns, array.T, strict=True):
        whole = column.to_numpy()
        if whole.dtype.kind not in "iu":
            continue
        limit = 2.0 ** (8 * whole.dtype.itemsize - (whole.dtype.kind == "i"))
        with np.errstate(invalid="ignore"):  # beyond the limit, where no comparison counts
            lost = (floats >= limit) | (floats.astype(whole.dtype) != whole)
        if lost.any():
            raise ValueError(
                f"{what} must hold numbers that {array.dtype} holds beside its other columns, got "
                f"{int(whole[lost][0])} in column {shown(name)}; round that column with "
                f"astype({array.dtype})"
            )


def _require_numbers(what: str, array: NDArray[Any]) -> None:
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"{what} must hold no masked entries, got {int(array.mask.sum())}; fill them "
            "with filled(value), or drop their rows"
        )
    kind = array.dtype.kind
    if kind in "biu" or array.dtype.type in ARRAY_FLOATS:
        return
    if kind == "f":
        raise TypeError(
            f"{what} must hold numbers of 64 bits at most, got {array.dtype}; round them with "
            "astype(numpy.float64)"
        )
    if kind != "O":
        raise TypeError(
            f"{what} must hold real numbers, got an array of {str(array.dtype)[:LONGEST]}; encode "
            "them as numbers"
        )
    for place, entry in np.ndenumerate(array):
        if not isinstance(entry, Real):
            position = ", ".join(map(str, place))
            raise TypeError(
                f"{what} must hold real numbers, got {shown(entry)} at position ({position}); "
                "encode it as a number, or drop its row or column"
            )
    raise TypeError(
        f"{what} must hold numbers of one type, got an array of Python objects; convert it with "
        "astype(float)"
    )


def require_share(what: str, value: object, step: str) -> float:
    """A finite number of at least 0 and below 1; raises as :func:`require_amount` for another."""
    share = require_amount(what, value, step)
    if share >= 1.0:
        raise ValueError(f"{what} must be below 1, got {value}; {step}")
    return share
