"""What the tests of data share: a cache folder of their own, and two classes of images."""

from pathlib import Path

import pytest
from data.tiny import png


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, also where a test passes none."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("UNITMARGIN_CACHE", str(folder))
    return folder


@pytest.fixture
def pets() -> dict[str, bytes]:
    """Two classes, out of order on purpose; every image has one value of its own."""
    return {
        "train/dog/1.png": png(30),
        "train/cat/2.png": png(20),
        "train/cat/1.png": png(10),
        "test/dog/1.png": png(60),
        "test/cat/1.png": png(40),
    }
