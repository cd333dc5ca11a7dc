"""What all tests share: seeds, and the hypothesis profile."""

import pytest
import torch
from hypothesis import settings

# Derandomised and without a database: a failure on one machine is a failure on all. No deadline:
# a busy machine is no reason to fail.
settings.register_profile(
    "unitmargin", derandomize=True, database=None, deadline=None, max_examples=20
)
settings.load_profile("unitmargin")


@pytest.fixture(autouse=True)
def seed() -> None:
    """Every test draws the same numbers, alone or in the suite."""
    torch.manual_seed(0)
