"""Explore: a frozen run as a page on which people play with its radii."""

from pathlib import Path

from unitmargin.exploring.page import SAMPLES, explore_page
from unitmargin.foundation.files import write_text
from unitmargin.foundation.numbers import require_whole
from unitmargin.runs.folder import RunFolder


def explore_run(folder: RunFolder, samples: int = SAMPLES, data: Path | None = None) -> str:
    """Write explore.html of a frozen run folder; the message says where.

    Args:
        folder: a frozen run.
        samples: how many test samples people may choose from, spread evenly; fewer of long ones.
        data: file or folder of the data set, if it has moved since the training.

    Raises:
        RunError: the run is not frozen.
        ValueError: other data than the run was trained on, fewer than one sample, or a network too
            large for a page.
        LockedError: another process writes into the folder.
    """
    require_whole("samples", samples, 1, "leave it out")
    frozen, sha256 = folder.hashed_frozen()
    folder.require_free()
    tests = folder.test_samples(frozen, data)
    page = explore_page(frozen, tests, folder.recipe().name, sha256, samples)
    with folder.hold():
        write_text(folder.explore_html, page)
    return f"explore: {len(page) / 1e6:.1f} MB, opens in any browser -> {folder.explore_html}"
