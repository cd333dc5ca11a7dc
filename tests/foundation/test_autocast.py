"""Functions that compute in the types of their tensors."""

import pytest
import torch

from unitmargin.foundation.autocast import outside_autocast


def type_of_a_product(x: torch.Tensor) -> torch.dtype:
    return (x @ x).dtype


def test_a_function_computes_in_the_type_of_its_tensors() -> None:
    x = torch.eye(2)
    with torch.autocast("cpu", torch.bfloat16):
        assert type_of_a_product(x) == torch.bfloat16
        assert outside_autocast(type_of_a_product)(x) == torch.float32
        assert type_of_a_product(x) == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert outside_autocast(type_of_a_product)(x) == torch.float32


def test_a_failure_leaves_autocast_as_it_was() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(ValueError, match="invalid literal"):
            outside_autocast(int)("x")
        assert torch.is_autocast_enabled("cpu")


def test_the_function_keeps_its_name() -> None:
    assert outside_autocast(type_of_a_product).__name__ == "type_of_a_product"
