"""A guard: every input gets a label with a radius above a threshold, or a reason for none."""

import math
import os
import sys
from collections import Counter
from functools import partial
from numbers import Real
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from unitmargin.foundation.files import require_path
from unitmargin.guard.answer import (
    BELOW_THRESHOLD,
    CERTIFIED,
    NO_CLAIM,
    NOT_ENCODED,
    NOT_FINITE,
    OUTCOMES,
    OUTSIDE_DOMAIN,
    Answer,
    too_small,
)
from unitmargin.guard.inputs import FLOATS, judged, require_array
from unitmargin.guard.onnx_model import SMALLEST_NORMAL
from unitmargin.guard.opening import open_model
from unitmargin.guard.rows import Row, RowReader, require_entries, rows_of

CHUNK = 2**20
"""Numbers that are evaluated at once, 340 images of CIFAR-10: memory does not follow the batch."""

NO_RADIUS = (NOT_ENCODED, NOT_FINITE, OUTSIDE_DOMAIN)
"""Outcomes whose radii are of no input in the network's units."""


class Guard:
    r"""Answers an input with its class where no change of norm at most ``reject_below`` alters it.

    Called with one input of shape ``in_shape`` it gives an :class:`Answer`, with a batch
    ``(n, *in_shape)`` a list of n answers. Inputs are NumPy arrays or what gives itself as one
    (``__array__``, as tensors on the CPU do), of float32, float64 or float16. Where the network was
    trained on a table, rows of it are taken as they are, in the columns' own units: a mapping from
    columns to cells, a list of them, or a data frame; they are encoded as the file states, to
    float32, and radii are lengths of what they are encoded to.

    Guarantee: an answer has a label if and only if the input is finite and in the domain of the
    network, and its radius is *above* ``reject_below``. A certificate holds for changes of norm
    below its radius, so then no change of norm at most ``reject_below`` makes the network predict
    another class, whoever evaluates it (docs/soundness.md). Where the network takes float32, as
    exported ones do by default, a float64 input x is rounded, and :math:`\|x - fl(x)\|`, bounded
    from above, is taken off its radius, which so holds around x itself, for all changed inputs that
    the network takes; the margin is that of the rounded input. A changed float64 input is rounded
    as well: one that rounding carries out of the radius may be *predicted* otherwise, but another
    class is certified for none closer than the sum of both radii.

    The value of an input never raises: NaN, infinity, numbers outside of the domain, missing values
    and unknown categories are rejections with a reason. Another shape, type or kind always raises,
    and so does a row without a column of the table, or with another one.

    Thread-safe. It answers in the process that opened it alone: threads of the evaluation do not
    outlive a fork, so a fork is refused, and so is pickling.

    Sealed (the default), it compares the file with the hash in it when it opens it, and nothing
    afterwards. That finds damage, not malice: whoever changes a file can write its hash anew. It
    then assumes that nobody writes to the memory in which the network lies. The guard reads that
    network from the file and shares it with nobody, so only a fault of the machine, or code that
    reaches into ``guard.model``, could. ``sealed=False`` compares all weights at every call,
    and raises where they changed; only those of a model file can be compared again.

    Attributes:
        reject_below: the threshold; it may be set.
        model: the network: its ``classes``, ``in_shape``, ``domain``, ``dtype``, ``profile``,
            ``model_sha256``, ``units``.

    Args:
        path: an exported network (``.onnx``, which needs NumPy and onnxruntime alone), or a model
            file (``.safetensors``, which needs torch).
        reject_below: radius that an answer has to exceed, in units of the inputs.
        profile: whose certificates are issued; default: that of the file. An exported network has
            only its own.
        sealed: whether the network is compared once, when the file is opened.
        threads: of one evaluation by onnxruntime; default: its own choice.

    Raises:
        TypeError: an argument of another kind; when called, what is no array of real numbers and no
            row of a table, or to a network of a table integers; of a model file, a hook of the
            forward pass of all modules.
        ValueError: a negative or infinite threshold, a file of another kind or a damaged one, an
            option that the file does not have; when called, integers, another shape, or other
            columns than those of the table.
        FileNotFoundError: no such file.
        ImportError: onnxruntime is not installed.
        RuntimeError: denormal numbers are flushed to zero; when called, a fork of the process; not
            sealed, weights that changed in memory; ``ProfileError``, an environment that breaks
            the profile's arithmetic.

    Cost: one evaluation, and a small part of a millisecond; of a row of a table 0.006 ms a column
        more.
    Source: the paper, section 4.3, observation on certifiable robustness.

    Example:
        >>> import tempfile
        >>> from unitmargin import DenseUGNN, freeze, save
        >>> file = tempfile.mkdtemp() + "/model.safetensors"
        >>> save(freeze(DenseUGNN((2,), 3), domain=(0, 1)), file)
        >>> guard = Guard(file, reject_below=36 / 255)
        >>> guard(np.array([0.5, 255.0])).reason
        'outside the domain [0.0, 1.0]: entries from 0.5 to 255.0'
    """

    def __init__(
        self,
        path: str | Path,
        reject_below: float = 0.0,
        *,
        profile: str | None = None,
        sealed: bool = True,
        threads: int | None = None,
    ) -> None:
        self.reject_below = reject_below
        file = require_path("path", path)
        self.model = open_model(file, profile, sealed, threads)
        self._name = file.stem
        self._domains = _domains(self.model.domain)
        stated = self.model.encoding
        self._reader = None if stated is None else RowReader(stated, self.model.in_shape)
        sentence = f"not finite in {self.model.dtype}"
        self._unreadable = Answer(None, None, 0.0, sentence, NOT_FINITE, None, None, 0.0)
        self._process = os.getpid()
        self._lock = Lock()
        self._counts = dict.fromkeys(OUTCOMES, 0)
        self._observe: Any = None

    def __call__(self, x: object) -> Answer | list[Answer]:
        started = perf_counter()
        if os.getpid() != self._process:
            raise RuntimeError(
                "a guard must answer in the process that opened it, got a call in a fork; open it "
                "after the fork"
            )
        batch, rows, reasons, single = self._read(x)
        length = max(1, CHUNK // math.prod(self.model.in_shape))
        answers: list[Answer] = []
        with np.errstate(all="ignore"):  # what overflows or is NaN is rejected
            for first in range(0, len(batch), length):
                answers += self._answers(batch[first : first + length])
            for place, row in enumerate(rows):
                answers[place] = self._of_row(answers[place], row, batch[place], reasons[place])
        self._count(answers, started)
        return answers[0] if single else answers

    @property
    def reject_below(self) -> float:
        """The threshold; another one is judged as the first."""
        return self._reject_below

    @reject_below.setter
    def reject_below(self, value: float) -> None:
        self._reject_below = _require_threshold(value)

    @property
    def counters(self) -> dict[str, int]:
        """Answers so far by outcome, all of ``OUTCOMES``: a copy, taken between two calls."""
        with self._lock:
            return dict(self._counts)

    def export_metrics(self, registry: Any = None, name: str | None = None) -> None:
        """Have prometheus-client count the answers from here on, besides ``counters``.

        Metrics are ``unitmargin_guard_answers_total`` by outcome, ``unitmargin_guard_radius`` of
        finite inputs in the domain, and ``unitmargin_guard_seconds`` of a call, all with the label
        ``guard``.

        Args:
            registry: where they are registered; default: prometheus-client's own.
            name: value of the label; default: the name of the file without its suffix.

        Raises:
            ImportError: prometheus-client is not installed.
            TypeError: no registry, or a name that is no str.
        """
        from unitmargin.guard.metrics import metrics_of

        label = self._name if name is None else name
        if not isinstance(label, str):
            raise TypeError(f"name must be a str, got {type(name).__name__}; name the guard")
        metrics = metrics_of(registry)
        metrics.begin(label)
        self._observe = partial(metrics.observe, label)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a guard must be opened where it answers, got one to be pickled or copied; pass the "
            "path of its file"
        )

    def _read(self, x: object) -> tuple[NDArray[Any], list[Row], list[str], bool]:
        """The batch, the rows of a table that it was, why some are no inputs, and whether one input
        was given."""
        if self._reader is not None:
            if (given := rows_of(x, self._reader.names)) is not None:
                rows, single = given
                batch, reasons = self._reader.encode(rows)
                return batch, rows, reasons, single
            require_entries(x)
        array = require_array(x, self.model.in_shape)
        single = array.ndim == len(self.model.in_shape)
        return array[None] if single else array, [], [], single

    def _of_row(self, answer: Answer, row: Row, entries: NDArray[Any], reason: str) -> Answer:
        """The answer to a row of a table, with the cell that is at fault."""
        if reason:
            return Answer(None, None, 0.0, reason, NOT_ENCODED, None, None, 0.0)
        if self._reader is None or self.model.domain is None or answer.outcome != OUTSIDE_DOMAIN:
            return answer
        return answer._replace(reason=self._reader.outside(row, entries, self.model.domain))

    def _answers(self, batch: NDArray[Any]) -> list[Answer]:
        """Answers of a batch, which is evaluated at once.

        What is judged of one input is judged in Python: a dozen more calls of NumPy would take as
        long as a small network.
        """
        inputs = judged(batch, self.model.dtype)
        known = zip(*inputs[1:], strict=True)
        claims = zip(*(column.tolist() for column in self.model.certify(inputs.x)), strict=True)
        kind = batch.dtype.type
        return [
            self._answer(kind(low), kind(high), moved, claim) if finite else self._unreadable
            for (low, high, finite, moved), claim in zip(known, claims, strict=True)
        ]

    def _answer(
        self, low: Any, high: Any, moved: float, claim: tuple[int, int, float, float]
    ) -> Answer:
        """The answer to a finite input whose entries are from ``low`` to ``high``."""
        predicted, runner_up, margin, radius = claim
        radius = _around(radius, moved) if predicted >= 0 else 0.0
        outcome, reason = self._verdict(low, high, radius)
        label = predicted if outcome == CERTIFIED else None
        name = None if label is None else self.model.classes[label]
        found = predicted if predicted >= 0 else None
        second = runner_up if runner_up >= 0 else None
        return Answer(label, name, radius, reason, outcome, found, second, margin)

    def _verdict(self, low: Any, high: Any, radius: float) -> tuple[str, str]:
        lowest, highest = self._domains[type(low)]
        if low < lowest or high > highest:
            domain = list(self.model.domain or ())
            return OUTSIDE_DOMAIN, f"outside the domain {domain}: entries from {low!s} to {high!s}"
        if not radius > 0.0:
            return NO_CLAIM, "no claim"
        threshold = self._reject_below
        if radius > threshold:
            return CERTIFIED, CERTIFIED
        return BELOW_THRESHOLD, too_small(radius, threshold)

    def _count(self, answers: list[Answer], started: float) -> None:
        counts = Counter(answer.outcome for answer in answers)
        with self._lock:
            for outcome, count in counts.items():
                self._counts[outcome] += count
        if self._observe is not None:
            radii = [answer.radius for answer in answers if answer.outcome not in NO_RADIUS]
            self._observe(counts, radii, perf_counter() - started)


def _around(radius: float, moved: float) -> float:
    """A radius around the given input, rounded down; 0 where nothing is claimed, as of numbers that
    are rounded in absolute terms."""
    lowered = math.nextafter(radius - moved, -math.inf) if moved else radius
    return lowered if lowered >= SMALLEST_NORMAL else 0.0


def _domains(domain: tuple[float, float] | None) -> dict[type[Any], tuple[Any, Any]]:
    """The domain in each type of inputs: whoever rounds inputs of the domain to it stays inside."""
    low, high = domain or (-math.inf, math.inf)
    with np.errstate(all="ignore"):
        return {kind: (kind(low), kind(high)) for kind in FLOATS}


def _require_threshold(value: Any) -> float:
    step = "give a radius in the units of the inputs"
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number:
        raise TypeError(f"reject_below must be a number, got {type(value).__name__}; {step}")
    if not 0 <= value <= sys.float_info.max:
        long = isinstance(value, int) and abs(value) > 10**400  # Python prints no longer ones
        shown = "a whole number of many digits" if long else str(value)[:40]
        raise ValueError(f"reject_below must be finite and >= 0, got {shown}; {step}")
    return float(value)
