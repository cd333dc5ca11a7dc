"""Exit statuses: whatever happens, to streams too, the status says what kind of thing it was."""

import errno
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from unitmargin.foundation.statuses import INTERRUPTED, MISTAKE, UNREAD, WRONG, exit_status

PROGRAM = "from unitmargin.foundation.statuses import exit_status\n"


def source(body: str) -> str:
    """A program that runs the body as a command."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import sys\n{PROGRAM}def act():\n{lines}    return 0\nsys.exit(exit_status(act))\n"


def program(body: str, redirected: str = "") -> subprocess.CompletedProcess[str]:
    """The body as a command of its own in a shell: its status, stdout and stderr."""
    words = ["sh", "-c", f'"$0" -c "$1" {redirected}', sys.executable, source(body)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("status", [0, 1])
def test_the_commands_own_status_is_kept(status: int) -> None:
    assert exit_status(lambda: status) == status


def fail(error: BaseException) -> int:
    raise error


def test_a_foreseeable_failure_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(lambda: fail(ValueError("a must be b, got\nc"))) == WRONG
    assert capsys.readouterr().err == "unitmargin: a must be b, got c\n"


def test_a_mistake_shows_its_traceback_and_asks_for_a_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_status(lambda: fail(KeyError("weight"))) == MISTAKE
    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[-1] == "KeyError: 'weight'"
    assert last.startswith("unitmargin: this is a mistake of unitmargin, not yours; open an issue")
    assert "torch" in last


def test_statuses_of_usage_pass_through() -> None:
    with pytest.raises(SystemExit) as exited:
        exit_status(lambda: fail(SystemExit(2)))
    assert exited.value.code == 2


def test_an_interrupt_is_one_line_and_the_handler_of_before_returns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert exit_status(lambda: os.kill(os.getpid(), signal.SIGINT) or 0) == INTERRUPTED
    assert capsys.readouterr().err.startswith("unitmargin: interrupted; a training goes on")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_package_that_takes_an_interrupt_for_a_missing_part_does_not_hide_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "greedy.py").write_text(
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    len('')\n"
        "except BaseException:\n    pass\n"
    )
    done = program(f"sys.path.append({str(tmp_path)!r})\nprint('before')\nimport greedy")
    assert done.returncode == INTERRUPTED
    assert done.stdout == "before\n"
    assert done.stderr.startswith("unitmargin: interrupted; ")


def test_an_interrupt_that_the_process_ignores_is_ignored() -> None:
    done = program("import os\nos.kill(os.getpid(), 2)\nprint('done')", "& wait $!")
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp932", "utf-8"])
def test_what_an_encoding_lacks_is_escaped_as_toml_reads_it(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of columns go into a file by ``init > mine.toml``."""
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    name = "年, é, \N{SNOWFLAKE}, \N{PILE OF POO}"
    words = [sys.executable, "-c", source(f"print('name = \"' + {name!a} + '\"')")]
    done = subprocess.run(words, capture_output=True, check=True)
    assert tomllib.loads(done.stdout.decode(encoding)) == {"name": name}


@pytest.mark.parametrize("length", [1, 1_000_000])
def test_output_that_nobody_reads_ends_quietly(length: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-c", source(f"print('x' * {length})")]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_a_closed_standard_output_is_refused_before_anything_is_done() -> None:
    done = program("print('never', file=sys.stderr)", ">&-")
    assert done.returncode == WRONG
    assert done.stderr.startswith("unitmargin: standard output: it is closed; redirect it")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_standard_output_is_one_line() -> None:
    done = program("print('lost')", ">/dev/full")
    assert done.returncode == WRONG
    assert f"{os.strerror(errno.ENOSPC)}; free space" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_without_standard_error_the_status_is_the_same(redirected: str) -> None:
    done = program("print('kept')\nraise ValueError('unsaid')", redirected)
    assert (done.returncode, done.stdout) == (WRONG, "kept\n")
