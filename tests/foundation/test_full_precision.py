"""Functions that compute in the types of their tensors, with all of their bits."""

import pytest
import torch

from unitmargin.foundation.full_precision import float32_products, in_full_precision


def type_of_a_product(x: torch.Tensor) -> torch.dtype:
    return (x @ x).dtype


def test_a_function_computes_in_the_type_of_its_tensors() -> None:
    x = torch.eye(2)
    with torch.autocast("cpu", torch.bfloat16):
        assert type_of_a_product(x) == torch.bfloat16
        assert in_full_precision(type_of_a_product)(x) == torch.float32
        assert type_of_a_product(x) == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert in_full_precision(type_of_a_product)(x) == torch.float32


def test_a_failure_leaves_autocast_as_it_was() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(ValueError, match="invalid literal"):
            in_full_precision(int)("x")
        assert torch.is_autocast_enabled("cpu")


def test_the_function_keeps_its_name() -> None:
    assert in_full_precision(type_of_a_product).__name__ == "type_of_a_product"


@pytest.mark.parametrize("general", ["highest", "high", "medium"])
def test_a_function_multiplies_all_bits_and_the_setting_comes_back(general: str) -> None:
    torch.set_float32_matmul_precision(general)
    try:
        assert in_full_precision(torch.get_float32_matmul_precision)() == "highest"
        with float32_products("high"):
            assert torch.get_float32_matmul_precision() == "high"
            assert in_full_precision(torch.get_float32_matmul_precision)() == "highest"
            assert torch.get_float32_matmul_precision() == "high"
        assert torch.get_float32_matmul_precision() == general
    finally:
        torch.set_float32_matmul_precision("highest")
