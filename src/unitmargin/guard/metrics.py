"""What a guard tells a Prometheus server: answers by outcome, radii, seconds of a call."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from unitmargin.guard.answer import OUTCOMES

RADII = tuple(2.0**power for power in range(-20, 11))
"""Upper ends of the buckets of radii, 1e-6 to 1024: networks have units of their own."""

SECONDS = tuple(1e-4 * 2.0**power for power in range(15))
"""Upper ends of the buckets of latencies: 0.1 ms to 1.6 s."""


class Metrics:
    """Counters and histograms of all guards of one registry, told apart by the label ``guard``.

    prometheus-client's own objects, so that its mode for several processes covers them.
    """

    def __init__(self, registry: Any) -> None:
        from prometheus_client import Counter, Histogram

        self.answers = Counter(
            "unitmargin_guard_answers", "Answers by outcome", ["guard", "outcome"],
            registry=registry,
        )  # fmt: skip
        self.radii = Histogram(
            "unitmargin_guard_radius", "Certified radii of inputs in the domain, in their units",
            ["guard"], registry=registry, buckets=RADII,
        )  # fmt: skip
        self.seconds = Histogram(
            "unitmargin_guard_seconds", "Seconds of a call of a guard, whatever its batch",
            ["guard"], registry=registry, buckets=SECONDS,
        )  # fmt: skip

    def begin(self, guard: str) -> None:
        """Show all outcomes of a guard before its first call: what never happened is 0."""
        self.observe(guard, dict.fromkeys(OUTCOMES, 0), (), None)

    def observe(
        self, guard: str, counts: Mapping[str, int], radii: Iterable[float], seconds: float | None
    ) -> None:
        """Take in one call; none without seconds."""
        for outcome, count in counts.items():
            self.answers.labels(guard, outcome).inc(count)
        histogram = self.radii.labels(guard)
        for radius in radii:
            histogram.observe(radius)
        timed = self.seconds.labels(guard)
        if seconds is not None:
            timed.observe(seconds)


_METRICS: WeakKeyDictionary[Any, Metrics] = WeakKeyDictionary()
"""Of each registry, which refuses a second metric of the same name."""

_LOCK = Lock()


def metrics_of(registry: Any = None) -> Metrics:
    """The metrics of a registry; default: that of prometheus-client.

    Raises:
        ImportError: prometheus-client is not installed.
        TypeError: no registry.
    """
    try:
        from prometheus_client import REGISTRY, CollectorRegistry
    except ImportError:
        raise ImportError(
            "prometheus-client must be installed to export metrics, got none; run "
            "`pip install unitmargin[monitor]`"
        ) from None
    chosen = REGISTRY if registry is None else registry
    if not isinstance(chosen, CollectorRegistry):
        raise TypeError(
            f"registry must be a CollectorRegistry, got {type(registry).__name__}; leave it out "
            "for that of prometheus-client"
        )
    with _LOCK:
        if chosen not in _METRICS:
            _METRICS[chosen] = Metrics(chosen)
        return _METRICS[chosen]
