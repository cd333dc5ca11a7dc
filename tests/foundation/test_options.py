"""Options: judged whenever they are made, in one line."""

import numpy as np
import pytest
from pydantic import PositiveInt, ValidationError

from unitmargin.foundation.options import Options


class Inner(Options):
    steps: PositiveInt = 3
    rate: float = 0.5


class Outer(Options):
    name: str
    inner: Inner = Inner()


def test_a_section_changes_by_single_options() -> None:
    changed = Outer(name="a").changed(name="b", inner={"steps": 5})
    assert changed == Outer(name="b", inner=Inner(steps=5))
    assert Inner(rate=1) == Inner(rate=1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "name must be given, got nothing; add it"),
        ({"name": 3}, "name must be a valid string, got 3; correct the value"),
        ({"name": "a", "innr": {}}, "innr is no option, known: name, inner; did you mean 'inner'?"),
        ({"name": "a", "self": 3}, "self is no option, known: name, inner; choose one"),
        ({"name": "a", "inner": {"self": 3}}, "inner.self is no option, known: steps, rate"),
        ({"name": "a", "inner": 3}, "inner must be a table, got 3; correct the value"),
        ({"name": "a", "inner": {"steps": True}}, "inner.steps must be a valid integer, got True"),
        ({"name": "a", "inner": {"steps": 0}}, "inner.steps must be greater than 0, got 0"),
        ({"name": "a", "inner": {"rate": float("inf")}}, "inner.rate must be a finite number"),
        ({"name": 10**5000}, "name must be a valid string, got int of many digits; correct"),
        ({"name": "a", "inner": {"colour": 1}}, "inner.colour is no option, known: steps, rate"),
    ],
)
def test_mistakes_are_one_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=".") as raised:
        Outer(**values)
    assert not isinstance(raised.value, ValidationError)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_options_are_frozen() -> None:
    inner = Inner(steps=3)
    message = r"steps must stay as it was given, got 4 assigned; take what \.changed\(steps=...\)"
    with pytest.raises(AttributeError, match=message):
        inner.steps = 4  # type: ignore[misc]
    with pytest.raises(AttributeError, match="steps must stay as it was given, got it deleted"):
        del inner.steps
    assert inner.steps == 3


@pytest.mark.parametrize("number", [np.int64(5), np.uint8(5)])
def test_whole_numbers_of_numpy_are_whole_numbers(number: int) -> None:
    assert Inner(steps=number) == Inner(steps=5) == Inner().changed(steps=number)
    assert type(Inner(steps=number).steps) is int
    assert Outer(name="a", inner={"steps": number}) == Outer(name="a", inner=Inner(steps=5))
    with pytest.raises(ValueError, match="steps must be a valid integer, got np.True_"):
        Inner(steps=np.True_)
