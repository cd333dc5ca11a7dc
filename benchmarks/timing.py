"""How every benchmark measures: calls interleaved in one run, medians after a warm-up."""

import statistics
from collections.abc import Callable, Mapping


def interleaved_medians(
    calls: Mapping[str, Callable[[], float]], warm_up: int, rounds: int
) -> dict[str, float]:
    """Median of the seconds that each call returns; the first ``warm_up`` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(warm_up + rounds):
        for name, call in calls.items():
            elapsed = call()
            if repetition >= warm_up:
                times[name].append(elapsed)
    return {name: statistics.median(values) for name, values in times.items()}
