"""What an exception says to the user: one line with file or argument, rule and next step."""

import errno
import os
import re
from collections.abc import Callable
from typing import Any

LONGEST = 1000
"""Characters of a line: whoever reads it needs its beginning and its end."""

OTHER_PLACE = "choose another --out or file"

STEPS = {
    errno.ENOSPC: f"free space on the disk, or {OTHER_PLACE}",
    errno.EDQUOT: f"free space within the quota, or {OTHER_PLACE}",
    errno.EFBIG: f"raise the limit of file sizes (ulimit -f), or {OTHER_PLACE}",
    errno.EACCES: f"change its permissions, or {OTHER_PLACE}",
    errno.EPERM: f"change its permissions, or {OTHER_PLACE}",
    errno.EROFS: OTHER_PLACE,
    errno.EISDIR: "name a file, or move the folder away",
    errno.ENOTDIR: "name a folder, or move the file away",
    errno.EEXIST: "name a folder, or move the file away",
    errno.ENOTEMPTY: OTHER_PLACE,
    errno.ENOTSUP: OTHER_PLACE,
    errno.ENOENT: "check the path",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "mend the links, or name the file that they should lead to",
    errno.EMLINK: OTHER_PLACE,
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs",
    errno.EBADF: "redirect it, to /dev/null if nothing else",
    errno.EIO: f"look after the disk, or {OTHER_PLACE}",
    errno.EBUSY: "try again when nothing else uses it",
    errno.ETXTBSY: "try again when nothing else uses it",
    errno.ESTALE: "try again when the disk is mounted",
}
"""What to do next when the system refuses a file."""

SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's words for no room."""

OUT_OF_MEMORY = re.compile("out of memory|not enough memory|allocate memory", re.IGNORECASE)
"""How torch words it: it has a class of its own for accelerators alone."""

TOO_LARGE = re.compile("overflow", re.IGNORECASE)
"""How torch words it, whose errors name no argument then."""

MISTAKES = re.compile(
    r"(too many|not enough) values to unpack"
    r"|(dictionary|Set) changed size during iteration|dictionary keys changed during iteration"
    r"|zip\(\) argument \d"
)
"""How Python words mistakes of a program in errors of the kinds that tell of wrong values."""

SOURCES = re.compile(r"\[enforce fail at [^\]]*\][^.]*\. |\s*Exception raised from [^;]*")
"""Where in torch's own sources an error came from; the second runs over many lines."""

LESS = "use fewer samples (--limit), a smaller batch_size or a smaller network"

SMALLER = "a number among the recipe and the options is too large: choose a smaller one"

DEEP = "use less nesting"

PACKAGE = "unitmargin."
"""How the names of the package's modules begin."""


def describe(error: BaseException) -> str | None:
    """What a foreseeable exception means, in one line; None for a mistake of the program.

    Foreseeable are wrong values, what the system refuses, exhausted memory, missing packages, and
    errors of the kind of an argument that the package itself raises. What Python says of the
    package's own lines, such as a wrong number of values to unpack, is a mistake.

    Example:
        >>> describe(FileExistsError(errno.EEXIST, "File exists", "runs/digits"))
        'runs/digits: File exists; name a folder, or move the file away'
        >>> describe(KeyError("weight")) is None
        True
    """
    if MISTAKES.match(str(error)) and _room(error).startswith(PACKAGE):
        return None
    for kind, words in WORDS.items():
        if isinstance(error, kind):
            text = words(error)
            return None if text is None else one_line(text)
    return None


def one_line(text: str) -> str:
    """The text in one line of printable characters, its middle left out where it is long.

    Example:
        >>> one_line("size mismatch:\\n\\t3 and 4\\x1b")
        'size mismatch: 3 and 4\\\\x1b'
    """
    line = " ".join(SOURCES.sub("", text).split())
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
    half = LONGEST // 2
    return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


def _system(error: OSError) -> str:
    if error.errno is None or error.strerror is None:
        return _plain(error)  # our own message
    named = isinstance(error.filename, (str, bytes))
    file = os.fsdecode(error.filename) if named else "a file or standard output"
    return f"{file}: {error.strerror}; {STEPS.get(error.errno, OTHER_PLACE)}"


def _memory(error: MemoryError) -> str:
    return f"memory must suffice, got: {_plain(error)}; {LESS}"


def _run_time(error: RuntimeError) -> str | None:
    text = _plain(error)
    if OUT_OF_MEMORY.search(text):
        return f"memory must suffice, got: {_first(text)}; {LESS}"
    if TOO_LARGE.search(text) and not _own(error):
        return f"{_first(text)}; {SMALLER}"
    if isinstance(error, RecursionError):
        return f"a file or option must not be nested so deeply: {text}; {DEEP}"
    if isinstance(error, NotImplementedError) and not _own(error):
        return None
    # What torch says goes on with where in its own sources it said it.
    foreign = type(error) is RuntimeError or type(error).__module__.startswith("torch")
    return _first(text) if foreign else text


def _import(error: ImportError) -> str | None:
    package = (error.name or "").partition(".")[0]
    if package == __name__.partition(".")[0]:
        return None
    if not package and _own(error):
        return _plain(error)
    return (
        f"every package that unitmargin needs must be installed, got: {_plain(error)}; run "
        "`pip install unitmargin` again in this environment"
    )


def _encoding(error: UnicodeEncodeError) -> str:
    return (
        f"text must be Unicode, got {error.object[:LONGEST]!a}; rename files whose names are "
        "not in the system's encoding"
    )


def _kind(error: TypeError) -> str | None:
    return _plain(error) if _own(error) else None


def _arithmetic(error: ArithmeticError) -> str | None:
    if isinstance(error, OverflowError):
        return f"{_plain(error)}; {SMALLER}"
    return _plain(error) if isinstance(error, FloatingPointError) else None


def _first(text: str) -> str:
    return text.strip().strip('"').partition("\n")[0]


def _plain(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _own(error: BaseException) -> bool:
    """Whether it was raised by the package's own code, with the rule and what it got."""
    stated = " must " in str(error) and " got " in str(error)
    return stated and _room(error).startswith(PACKAGE)


def _room(error: BaseException) -> str:
    """The name of the module in whose line it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


WORDS: dict[type[BaseException], Callable[[Any], str | None]] = {
    OSError: _system,
    MemoryError: _memory,
    RuntimeError: _run_time,
    ImportError: _import,
    UnicodeEncodeError: _encoding,
    ValueError: _plain,
    TypeError: _kind,
    ArithmeticError: _arithmetic,
}
"""What is foreseeable, the particular before the general."""
