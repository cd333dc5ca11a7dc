"""Inputs of a guard: which arrays are taken, and how far rounding moves them."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unitmargin.guard import inputs as room
from unitmargin.guard.inputs import Inputs, require_array

X = np.array([[0.25, 0.5, 0.75], [1.0, 0.0, 0.125]], np.float32)
"""Numbers that all types hold."""

SHORT, LONG = np.dtype(np.float32), np.dtype(np.float64)
"""Types of networks."""


def judged(batch: np.ndarray, dtype: np.dtype = SHORT) -> Inputs:
    with np.errstate(all="ignore"):
        return room.judged(batch, dtype)


HELD = {
    "float64": X.astype(np.float64),
    "float16": X.astype(np.float16),
    "big-endian": X.astype(">f4"),
    "big-endian float64": X.astype(">f8"),
    "fortran": np.asfortranarray(X),
    "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "every other": np.repeat(X, 2, axis=1)[:, ::2],
    "unmasked": np.ma.masked_array(X, mask=False),
    "tensor": torch.from_numpy(X),
    "frame": pandas.DataFrame(X),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [SHORT, LONG], ids=str)
@pytest.mark.parametrize("kind", HELD)
def test_arrays_of_all_kinds_are_the_same_numbers(kind: str, dtype: np.dtype) -> None:
    inputs = judged(require_array(HELD[kind], (3,)), dtype)
    assert inputs.x.dtype == dtype
    assert inputs.x.dtype.isnative
    assert inputs.x.flags.c_contiguous
    np.testing.assert_array_equal(inputs.x, X)
    assert inputs.moved == [0.0, 0.0]
    assert all(inputs.finite)
    assert (inputs.lowest, inputs.highest) == ([0.25, 0.0], [0.75, 1.0])


def test_float32_arrays_are_not_copied_and_nothing_is_written_to_them() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert np.shares_memory(judged(require_array(x, (3,))).x, x)
    spoiled = np.array([[np.nan, 1.0, 2.0]], np.float32)
    assert judged(spoiled).x.tolist() == [[0.0, 0.0, 0.0]]
    assert np.isnan(spoiled[0, 0])


def test_a_network_of_float64_takes_numbers_as_they_are() -> None:
    x = np.array([[0.1, 1e300, 5e-324], [0.1, np.inf, 0.2]])
    inputs = judged(x, LONG)
    assert inputs.x.tolist() == [[0.1, 1e300, 5e-324], [0.0, 0.0, 0.0]]
    assert inputs.finite == [True, False]
    assert inputs.moved == [0.0, 0.0]
    assert judged(x, SHORT).finite == [False, False]


def test_an_empty_batch_is_an_array_of_nothing() -> None:
    inputs = judged(require_array(np.zeros((0, 2, 2)), (2, 2)))
    assert inputs.x.shape == (0, 2, 2)
    assert [len(column) for column in inputs] == [0] * 5


@given(
    arrays(np.float64, (2, 5), elements=st.floats(-3e38, 3e38))
    | arrays(np.float64, (2, 5), elements=st.floats(-1e-37, 1e-37))
    | arrays(np.float64, (2, 5), elements=st.floats(-1.0, 1.0))
)
def test_the_bound_of_a_rounding_is_none_below_the_truth(x: np.ndarray) -> None:
    inputs = judged(x)
    assert all(inputs.finite)
    for row, held, bound in zip(x, inputs.x, inputs.moved, strict=True):
        pairs = zip(row.tolist(), held.tolist(), strict=True)
        truth = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
        assert Fraction(bound) ** 2 >= truth
        assert (bound == 0.0) == (truth == 0)
        assert Fraction(bound) ** 2 <= 6 * truth + Fraction(2) ** -2100


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("entry", "finite"),
    [
        (np.nan, False), (np.inf, False), (-np.inf, False), (1e300, False), (-1e39, False),
        (LARGEST * (1 + 2.0**-24), False), (LARGEST * (1 + 2.0**-26), True), (-LARGEST, True),
        (5e-324, True), (1e-40, True), (-0.0, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ">f8", ">f2"])
def test_what_is_not_finite_in_float32_is_known_and_not_evaluated(
    entry: float, finite: bool, dtype: type
) -> None:
    with np.errstate(all="ignore"):
        x = np.array([[0.5, entry], [0.25, 0.75]]).astype(dtype)
        finite = bool(np.isfinite(x.astype(np.float32)).all())
        inputs = judged(x)
    assert inputs.finite == [finite, True]
    assert np.isfinite(inputs.x).all()
    assert np.isfinite(inputs.moved).all()
    assert inputs.x[1].tolist() == [0.25, 0.75]


def test_signalling_nan_is_not_finite() -> None:
    for bits in (np.array([[0x7F800001]], np.uint32), np.array([[0x7FF0000000000001]], np.uint64)):
        assert judged(bits.view(f"f{bits.itemsize}")).finite == [False]


def test_a_tensor_with_a_graph_says_what_to_pass() -> None:
    x = torch.ones(1, 3, requires_grad=True)
    with pytest.raises(TypeError, match=r"got Tensor, which says .*detach.*\(\)$"):
        require_array(x, (3,))


@pytest.mark.parametrize("given", [torch.rand(2, 3).double().requires_grad_(), X.astype(object)])
def test_the_step_of_a_message_loses_no_number(given: Any) -> None:
    """What is rounded before a guard sees it is not taken off the radius."""
    with pytest.raises(TypeError, match="; ") as told:
        require_array(given, (3,))
    step = re.search(r"(x\.detach.*|astype.*)$", str(told.value))
    assert step is not None
    expression = step[1] if step[1].startswith("x.") else f"x.{step[1]}"
    array = eval(expression, {"numpy": np}, {"x": given})
    assert require_array(array, (3,)).dtype == np.float64
    assert (array == (given if given is X else np.asarray(given.tolist()))).all()
