"""What a run's files must be, and the error of one that is missing, damaged or foreign."""

from pathlib import Path

from unitmargin.foundation.files import file_sha256


class RunError(RuntimeError):
    """A step that cannot run yet, with the command that must come first."""


def require_hash(name: str, stored: str, file: Path) -> None:
    """Raise a ValueError unless a stored SHA-256 is that of the file as it lies there."""
    found = file_sha256(file)
    if stored != found:
        raise ValueError(f"{name} must be {found}, that of {file.name}, got {stored}")
