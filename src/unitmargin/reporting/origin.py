"""Where a page comes from: its date, and of which model, data and program it is."""

import os
from datetime import UTC, datetime
from typing import NamedTuple

from unitmargin import __version__
from unitmargin.foundation.files import file_sha256
from unitmargin.runs.folder import RunFolder

EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable that fixes the date, in seconds: what builds that are compared agree on."""


class Provenance(NamedTuple):
    """What identifies the subject of a page; an empty text where no file says it.

    Attributes:
        date: on which the page is written, in UTC.
        version: of unitmargin, which writes it.
        model_sha256, certificates_sha256: of the files.
        train_sha256, test_sha256: of the samples, by content.
    """

    date: str
    version: str
    model_sha256: str
    certificates_sha256: str
    train_sha256: str
    test_sha256: str


def read_provenance(folder: RunFolder) -> Provenance:
    """What identifies a certified run.

    Raises:
        RunError: a file is missing or damaged.
    """
    data = folder.origin().identity.data if folder.weights_file.is_file() else None
    return Provenance(
        date=written_on(),
        version=__version__,
        model_sha256=folder.hashed_frozen()[1],
        certificates_sha256=file_sha256(folder.certificates_file),
        train_sha256="" if data is None else data.train_sha256,
        test_sha256="" if data is None else data.test_sha256,
    )


def written_on() -> str:
    """The date in UTC, or the one that ``SOURCE_DATE_EPOCH`` states.

    Raises:
        ValueError: that variable holds no whole number of seconds that is a date.
    """
    stated = os.environ.get(EPOCH)
    if not stated:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(stated), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{EPOCH} must be whole seconds since 1970, got {stated!r}; unset it"
        ) from None
