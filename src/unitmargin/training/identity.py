"""What a training is: its data by their content, its network by its layers, its options."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unitmargin.data import Samples, TarShards
from unitmargin.foundation.options import Options
from unitmargin.models import Classifier, describe_network, without_settings
from unitmargin.training.options import TrainingOptions
from unitmargin.training.schedules import same_so_far

ABSENT = "nothing"
"""Stands for a layer that one of two networks lacks, and for test samples where there are none."""

LENGTHS = frozenset(("epochs", "steps"))
"""Options that say how long a training is."""

STEP = "go on as it was begun, or train in another folder"


class DataIdentity(Options):
    """Data by their content.

    Attributes:
        train_sha256, test_sha256: of the samples; see :attr:`Samples.sha256`.
        classes: their names; none where they have none.
    """

    train_sha256: str
    test_sha256: str
    classes: list[str]

    def require(self, other: "DataIdentity", file: Path) -> None:
        """Raise a ValueError unless ``file`` is of the other data."""
        if self.classes:  # files of before state none where a data set has some
            require_classes(other.classes, self.classes, file)
        for split, stored, found in (
            ("training", self.train_sha256, other.train_sha256),
            ("test", self.test_sha256, other.test_sha256),
        ):
            if stored != found:
                raise ValueError(
                    f"{file} is of other {split} samples: their SHA-256 is {stored}, not {found}; "
                    "pass the data that it was begun with, or train in another folder"
                )


class Identity(Options):
    """What a training is; kept with every checkpoint and with trained weights.

    Attributes:
        data: on what.
        network: the layers; see :func:`unitmargin.models.describe_network`.
        options: how.
    """

    data: DataIdentity
    network: dict[str, str]
    options: TrainingOptions

    def require(self, other: "Identity", file: Path) -> None:
        """Raise a ValueError unless ``file`` is of the other training, of any length."""
        self.require_network(other.network, file)
        self.data.require(other.data, file)
        self.require_options(other.options, file, LENGTHS)

    def require_network(self, network: Mapping[str, str], file: Path) -> None:
        """Raise a ValueError unless ``file`` is of this network; it names the first difference."""
        for name in {**self.network, **network}:
            there, here = self.network.get(name, ABSENT), network.get(name, ABSENT)
            # Files of before have no settings of trainable layers: those are of either network.
            if there not in (here, without_settings(here)):
                raise ValueError(
                    f"{file} is of another model: {name} is {there}, not {here}; {STEP}"
                )

    def require_options(
        self, options: TrainingOptions, file: Path, apart: frozenset[str] = frozenset()
    ) -> None:
        """Raise a ValueError unless ``file`` is of these options, ``apart`` from some."""
        for name in sorted(self.options.changes(options) - apart):
            there, here = getattr(self.options, name), getattr(options, name)
            raise ValueError(f"{file} was trained with {name} = {there!r}, not {here!r}; {STEP}")


def identify(
    model: Classifier,
    train: Samples | TarShards,
    test: Samples | None,
    options: TrainingOptions,
    classes: Sequence[str] = (),
) -> Identity:
    """The identity of a training. Cost: one hash of all samples."""
    data = identify_data(train, test, classes)
    return Identity(data=data, network=describe_network(model), options=options)


def identify_data(
    train: Samples | TarShards, test: Samples | None, classes: Sequence[str] = ()
) -> DataIdentity:
    """The identity of data. Cost: one hash of all samples."""
    tested = ABSENT if test is None else test.sha256
    digests = {"train_sha256": train.sha256, "test_sha256": tested}
    return DataIdentity(**digests, classes=list(classes))


def require_classes(data: Sequence[str], stored: Sequence[str], file: Path) -> None:
    """Raise a ValueError unless the classes of data have the names that a file knows."""
    if list(data) != list(stored):
        raise ValueError(
            f"class names of the data must be those of {file}, {', '.join(stored) or 'none'}, got "
            f"{', '.join(data) or 'none'}; rename them, or pass the data that it is of"
        )


def require_same_training(
    file: Path, stored: Identity, epochs: int, given: Identity, samples: int
) -> None:
    """Raise a ValueError unless a training in a file may go on as the given one.

    Data, network and options must be the same, but for the length: a training of another length is
    the same one so far if all that was made is part of it, with the rates that it was made with.

    Args:
        file: where it is stored, for the message.
        stored: what it is of.
        epochs: how many of them are made.
        given: what is to be trained.
        samples: how many training samples there are.
    """
    stored.require(given, file)
    schedule = given.options.schedule
    had, wanted = (one.options.count_steps(samples) for one in (stored, given))
    done = epochs * stored.options.epoch_steps(samples)
    if had == wanted:
        return
    made = f"{file} holds {min(done, had)} steps of a training of {had}"
    if wanted < min(done, had):
        raise ValueError(f"{made}, more than the {wanted} of the one that is asked for; {STEP}")
    if done > min(had, wanted):
        raise ValueError(
            f"{made}, whose last epoch is not whole: a longer training has other samples there; "
            f"{STEP}, with a length in epochs if it may have to be extended"
        )
    if not same_so_far(schedule, done, had, wanted):
        raise ValueError(
            f"{made}, which under the schedule {schedule!r} are no part of one of {wanted}; "
            f"{STEP}, under the schedule 'constant' if it may have to be extended"
        )
