"""Files appear whole or not at all, and JSON is strict."""

from pathlib import Path

import pytest

from unitmargin.foundation.files import read_json, write_json, write_text


def test_text_appears_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "a.txt", "ä\n")
    assert (tmp_path / "new" / "a.txt").read_text(encoding="utf-8") == "ä\n"
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert path.read_text() == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize("text", ["", "Infinity", '{"a": 1, "a": 2}', "[1,]"])
def test_what_is_no_strict_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_json(tmp_path / "a.json")
