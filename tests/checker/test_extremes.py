"""The checker is never wrong on networks and inputs of extreme numbers: a sweep."""

import pytest
from sweeps import parts, swept


@pytest.mark.parametrize(("seeds", "inputs"), parts(200), ids=str)
def test_nothing_that_is_proved_of_extreme_networks_is_contradicted(
    seeds: range, inputs: int
) -> None:
    """Each layer's own and deployed errors and its norm, differences of logits, and labels inside
    the balls."""
    found, met = swept("checked_extremes", seeds, inputs)
    assert not found
    assert met["networks"] >= len(seeds) // 2  # the others are refused: no file may hold them
    assert met["networks with a radius"] >= len(seeds) // 2
    assert met["evaluations compared"] >= inputs * met["networks"]
