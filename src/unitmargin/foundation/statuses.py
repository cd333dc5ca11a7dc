"""Exit statuses: one place where a command ends, whatever happened in it."""

import codecs
import errno
import io
import os
import platform
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from unitmargin import __version__
from unitmargin.foundation.failures import describe

WRONG = 2
"""A wrong input, or an environment that lacks what is needed."""

MISTAKE = 70
"""A mistake of the program itself (EX_SOFTWARE of sysexits.h)."""

INTERRUPTED = 130
"""After Ctrl-C, as shells report a process ended by SIGINT."""

UNREAD = 141
"""Nobody reads the output any more, as shells report a process ended by SIGPIPE."""

OUTPUT = "standard output"

ESCAPED = "unitmargin.escaped"
"""How characters are written that the encoding of a stream does not have."""

STOPPED = "unitmargin: interrupted; a training goes on after its last whole epoch if called again"

IMPORTS = "<frozen importlib._bootstrap>"
"""File name of the frames of an import."""


def exit_status(command: Callable[[], int]) -> int:
    """Run a command; its own status, or that of what went wrong, which is said on stderr.

    A foreseeable failure is one line (:func:`describe`); a mistake of the program is its traceback
    and one line that asks for a report. What was printed is written out before the status is known.
    """
    with _interruptible():
        try:
            _open_streams()
            try:
                return command()
            finally:
                _flush()
        except KeyboardInterrupt:
            _say(STOPPED)
            return INTERRUPTED
        except BrokenPipeError:
            return UNREAD
        except Exception as error:
            line = describe(error)
            _say(_report(error) if line is None else f"unitmargin: {line}")
            return MISTAKE if line is None else WRONG


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends imports too, unless the process does with it what it wants."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTS:
            # Packages take an interrupt for a missing part of theirs, and go on without it.
            with suppress(OSError, RuntimeError):
                _flush()
            _say(STOPPED)
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _open_streams() -> None:
    """Raise unless results can be printed; what an encoding lacks is written as TOML escapes it."""
    if sys.stderr is None:  # else print takes standard output in its place
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed", OUTPUT)
    codecs.register_error(ESCAPED, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Python's own ``backslashreplace`` would write \\xe9, which TOML does not read."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    codes = [ord(sign) for sign in error.object[error.start : error.end]]
    return "".join(f"\\U{c:08x}" if c > 0xFFFF else f"\\u{c:04x}" for c in codes), error.end


def _flush() -> None:
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter tries again when it ends, and would end with a status of its own.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def _say(text: str) -> None:
    with suppress(OSError):  # nowhere is left to say it; the status does
        print(text, file=sys.stderr, flush=True)


def _report(error: BaseException) -> str:
    trace = "".join(traceback.format_exception(error))
    torch = getattr(sys.modules.get("torch"), "__version__", "not imported")
    return (
        f"{trace}unitmargin: this is a mistake of unitmargin, not yours; open an issue with the "
        f"command and the lines above (unitmargin {__version__}, torch {torch}, Python "
        f"{platform.python_version()})"
    )
