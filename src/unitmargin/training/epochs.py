"""An epoch of a training: its steps, the evaluation after them, and its record."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from unitmargin.auditing.audit import largest_error, network_rows
from unitmargin.data import Samples
from unitmargin.frozen import FixedNetwork
from unitmargin.layers.promises import GNP
from unitmargin.models import Classifier, fixed_network
from unitmargin.training.evaluation import evaluate
from unitmargin.training.lesson import Lesson
from unitmargin.training.memory import held_memory
from unitmargin.training.trainer import Trainer

LOST_ORTHOGONALITY = 0.01
"""An error that no rounding makes: freezing would refuse the network, and training it further costs
time for nothing."""


@dataclass(frozen=True)
class EpochRecord:
    """One line of history.csv; accuracies are shares of the test samples, None where an epoch was
    not evaluated.

    ``seconds`` and ``core_seconds`` of the first epoch include those of a teacher.

    ``rate`` is samples a second in the steps, ``waiting`` the share of their time in which the
    first process waited for data, ``memory`` the bytes that it held: on a GPU at most, else at the
    end (:func:`held_memory`); ``core_seconds`` is the processor time of all threads of all
    processes that train, evaluation included, without that of processes which decode images or
    load batches for them. They are None in a history that does not have them, ``memory`` also
    where the system does not tell it.
    """

    epoch: int
    loss: float
    clean_accuracy: float | None
    certified_accuracy: float | None
    orthogonality_error: float | None
    learning_rate: float
    seconds: float
    rate: float | None = None
    waiting: float | None = None
    memory: float | None = None
    core_seconds: float | None = None

    @property
    def evaluated(self) -> bool:
        """Whether the network was evaluated after the epoch."""
        return self.orthogonality_error is not None

    def line(self, epochs: int) -> str:
        words = [f"epoch {self.epoch}/{epochs}", f"loss {self.loss:.4f}"]
        if self.clean_accuracy is not None:
            words.append(f"clean {self.clean_accuracy:.4f}")
            words.append(f"certified@36/255 {self.certified_accuracy:.4f}")
        if self.orthogonality_error is not None:
            words.append(f"|WW'-I| {self.orthogonality_error:.1e}")
        words.append(f"{self.seconds:.1f} s")
        if self.rate is not None and self.waiting is not None:
            words.append(f"{self.rate:.0f} samples/s")
            words.append(f"{self.waiting:.0%} waiting for data")
        if self.memory is not None:
            words.append(f"{self.memory / 1e9:.2f} GB")
        return "  ".join(words)


def make_records(
    trainer: Trainer,
    model: Classifier,
    test: Samples | None,
    history: list[EpochRecord],
    lesson: Lesson | None = None,
) -> Iterator[None]:
    """Make the records that a history lacks, in place; it comes back after each.

    An epoch that was not evaluated is, where it turns out to be the last. The first one includes
    the time of a lesson.
    """
    if len(history) == trainer.epochs and not history[-1].evaluated:
        history[-1] = _evaluated(trainer, model, test, history[-1])
        yield
    for epoch in range(len(history), trainer.epochs):
        before = lesson if epoch == 0 else None
        history.append(_train_epoch(trainer, model, epoch, test, before))
        yield


def _train_epoch(
    trainer: Trainer, model: Classifier, epoch: int, test: Samples | None, before: Lesson | None
) -> EpochRecord:
    """Train an epoch, and evaluate the network after it if its turn has come; its time includes
    that of the lesson before it."""
    started, worked = time.perf_counter(), time.process_time()
    loss, rate = trainer.epoch(epoch)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    if before:
        seconds, worked = seconds + before.seconds, worked + before.core_seconds
    worked = trainer.processes.total(worked, trainer.device)
    measured = *trainer.pace, held_memory(trainer.device), worked
    record = EpochRecord(epoch + 1, loss, None, None, None, rate, seconds, *measured)
    return _evaluated(trainer, model, test, record) if trainer.evaluates(epoch) else record


def _orthogonality_error(network: FixedNetwork, epoch: int) -> float:
    """The largest error over its layers; raises where it says that the training has diverged."""
    error = largest_error(network_rows(network), GNP)
    if error > LOST_ORTHOGONALITY:
        raise FloatingPointError(
            f"the weights must stay orthogonal to {LOST_ORTHOGONALITY}, got an error of "
            f"{error:.1e} after epoch {epoch}; lower the learning rate"
        )
    return error


def _evaluated(
    trainer: Trainer, model: Classifier, test: Samples | None, record: EpochRecord
) -> EpochRecord:
    """The record of an epoch with what the network is after it, and the time that this took."""
    started, worked = time.perf_counter(), time.process_time()
    network = fixed_network(model.eval())
    clean = certified = None
    if test is not None:
        clean, certified = evaluate(network, test, trainer.processes, trainer.device)
    error = _orthogonality_error(network, record.epoch)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    worked = trainer.processes.total(worked, trainer.device)
    return replace(
        record,
        clean_accuracy=clean,
        certified_accuracy=certified,
        orthogonality_error=error,
        seconds=record.seconds + seconds,
        memory=held_memory(trainer.device),
        core_seconds=None if record.core_seconds is None else record.core_seconds + worked,
    )
