"""What tests of trainings share."""

import pytest

from unitmargin.training import precision


@pytest.fixture
def multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products in bfloat16, however slow they are here."""
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: True)
