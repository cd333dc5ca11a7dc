"""Where a run is searched: the space of the inputs, and the one behind a normalisation."""

from pathlib import Path

import pytest
import torch

from unitmargin.certificates.spaces import INPUT, NORMALISED
from unitmargin.frozen import FrozenNetwork
from unitmargin.layers.normalize import Normalize
from unitmargin.models import UGNN, freeze
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.searching import choose_spaces, has_normalised_space


def network(*deviations: float) -> FrozenNetwork:
    shift = Normalize(torch.zeros(3), torch.tensor(deviations)) if deviations else None
    return freeze(UGNN((3, 4, 4), 2, normalize=shift))


@pytest.mark.parametrize(
    ("deviations", "both"),
    [((0.25, 0.24, 0.26), True), ((0.25, 0.25, 0.25), False), ((), False)],
    ids=["unequal", "equal", "none"],
)
def test_a_stretch_of_channels_makes_a_space(
    deviations: tuple[float, ...], both: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = network(*deviations)
    monkeypatch.setattr(RunFolder, "frozen", lambda _: frozen)
    assert has_normalised_space(RunFolder(tmp_path)) is both
    assert [space.name for space in choose_spaces(frozen, normalised=False)] == [INPUT]
    if both:
        names = [space.name for space in choose_spaces(frozen, normalised=True)]
        assert names == [INPUT, NORMALISED]
    else:
        with pytest.raises(ValueError, match="normalised must be asked of a network whose input"):
            choose_spaces(frozen, normalised=True)
