"""Types and shapes of calls are checked at run time, as often as is said."""

import checked
import pytest
import torch
from jaxtyping import TypeCheckError

from unitmargin.solvers.geometry import norm


def test_the_first_calls_of_a_test_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, right = torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(TypeCheckError, match="Float64"):
        norm(whole)
    monkeypatch.setattr(checked, "CHECKED", 3)
    checked.begin()
    norm(right)
    with pytest.raises(TypeCheckError):
        norm(whole)
    with pytest.raises(RuntimeError, match="floating point"):
        norm(whole)
    monkeypatch.setattr(checked, "CHECKED", 0)
    checked.begin()
    for _ in range(4):
        norm(right)
    with pytest.raises(TypeCheckError):
        norm(whole)
