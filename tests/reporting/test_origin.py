"""The date of a page: today, or the one that builds agree on."""

from datetime import UTC, datetime

import pytest

from unitmargin.reporting.origin import EPOCH, written_on


def test_the_date_is_todays_or_the_stated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EPOCH, raising=False)
    before, found, after = datetime.now(UTC).date(), written_on(), datetime.now(UTC).date()
    assert found in (before.isoformat(), after.isoformat())
    monkeypatch.setenv(EPOCH, "1000000000")
    assert written_on() == "2001-09-09"


@pytest.mark.parametrize("text", ["today", "1e9", "9" * 30])
def test_another_date_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EPOCH, text)
    with pytest.raises(ValueError, match=f"{EPOCH} must be whole seconds since 1970, got"):
        written_on()
