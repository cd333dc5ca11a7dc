"""What is searched of a run: with which solvers, within which boxes, and by which process."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from unitmargin.certificates.joined import join_searches
from unitmargin.certificates.spaces import Box, Space, input_space, normalised_space
from unitmargin.certificates.tightness import Search, search_boundary
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.folder import RunFolder
from unitmargin.solvers import SOLVERS
from unitmargin.solvers.choice import Choice, read_choice
from unitmargin.training.processes import joined_processes

DEFAULT_SOLVERS = ("sphere_tracing",)

UNIT_BOX = (0.0, 1.0)
"""Where pixels live; the box of the paper's tables."""

BoxChoice = Literal["auto", "off", "only"]

Asked = tuple[Space, Tensor, Choice, Box | None]
"""A search: where, of which test samples, by which solver and within what."""


def choose_boxes(samples: Samples, choice: BoxChoice) -> list[Box | None]:
    """Without a box, and in [0, 1] where all data lie in it, as far as the choice allows.

    Raises:
        ValueError: the box alone is asked for, and some test input lies outside it.
    """
    low, high = (float(end) / samples.scale for end in samples.ends())
    fits = low >= UNIT_BOX[0] and high <= UNIT_BOX[1]
    if choice == "only" and not fits:
        span = f"from {low:g} to {high:g}"
        raise ValueError(f"box can be 'only' for inputs in [0, 1], got inputs {span}; use 'off'")
    free: list[Box | None] = [] if choice == "only" else [None]
    return [*free, UNIT_BOX] if fits and choice != "off" else free


def choose_solvers(words: Sequence[str]) -> tuple[Choice, ...]:
    """The solvers with their options, each choice once, or an error that lists the known ones."""
    if not words:
        known = ", ".join(SOLVERS)
        raise ValueError(f"solvers must be one or more of {known}, got none; choose among them")
    return tuple(dict.fromkeys(read_choice(word) for word in words))


def choose_spaces(frozen: FrozenNetwork, normalised: bool) -> list[Space]:
    """That of the inputs, and the one behind the normalisation if it is asked for.

    Raises:
        ValueError: it is asked for, and no normalisation makes another space of the inputs; see
            :func:`normalised_space`.
    """
    if not normalised:
        return [input_space(frozen)]
    behind = normalised_space(frozen)
    if behind is None:
        raise ValueError(
            "normalised must be asked of a network whose input normalisation stretches channels "
            "unequally, got one without; leave it out"
        )
    return [input_space(frozen), behind]


def has_normalised_space(folder: RunFolder) -> bool:
    """Whether :func:`choose_spaces` has a second space for the network of a run."""
    return normalised_space(folder.frozen()) is not None


def search_all(test: Samples, certificates: Certificates, asked: Sequence[Asked]) -> list[Search]:
    """What is asked, each by all processes: of its samples every one takes its share."""
    processes = joined_processes()
    answers = [
        _search(space, test, certificates, rows[processes.rank :: processes.count], choice, box)
        for space, rows, choice, box in asked
    ]
    every = zip(*processes.gather([answers]), strict=True)
    return [join_searches([part for part in parts if part is not None]) for parts in every]


def _search(
    space: Space,
    test: Samples,
    certificates: Certificates,
    chosen: Tensor,
    choice: Choice,
    box: Box | None,
) -> Search | None:
    """The search of one process beside the radii that were certified, None where there is no sample
    for it."""
    if not len(chosen):
        return None
    inputs, labels = test.batch(chosen)
    radius, options = certificates.radius[chosen], dict(choice.options)
    return search_boundary(
        space, inputs, labels, chosen, choice.name, box, radius=radius, **options
    )
