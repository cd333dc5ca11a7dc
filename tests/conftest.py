"""What all tests share: seeds, checks of types, and the hypothesis profile."""

import checked
import pytest
import torch
from hypothesis import settings

from unitmargin.training import precision

# Derandomised and without a database: a failure on one machine is a failure on all. No deadline:
# a busy machine is no reason to fail.
settings.register_profile(
    "unitmargin", derandomize=True, database=None, deadline=None, max_examples=20
)
settings.load_profile("unitmargin")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Before the fixtures of a test, those of its module included."""
    checked.begin()


@pytest.fixture
def multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings in bfloat16 where it is asked for, however slow the processor is in it."""
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: True)


@pytest.fixture(autouse=True)
def seed() -> None:
    """Every test draws the same numbers, alone or in the suite. Of the processor alone:
    ``torch.manual_seed`` notes for each device that was not used where it was called from."""
    torch.default_generator.manual_seed(0)
