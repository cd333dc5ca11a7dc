"""The cache folder: where it lies, and what cannot be one."""

from pathlib import Path

import pytest

from unitmargin.data.cache import cache_folder
from unitmargin.data.files import DataError


def test_the_argument_goes_before_the_variable_and_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "variable"))
    assert cache_folder(tmp_path / "argument") == tmp_path / "argument"
    assert cache_folder() == tmp_path / "variable"
    monkeypatch.delenv("UNITMARGIN_CACHE")
    assert cache_folder() == tmp_path / ".cache/unitmargin"
    assert cache_folder().is_dir()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cache: must be a folder .*set UNITMARGIN_CACHE"):
        cache_folder(tmp_path / "file" / "cache")
