"""The convex combination of a deployed network."""

import pytest
import torch
from jacobians import jacobian

from unitmargin.auditing.audit import layer_rows
from unitmargin.frozen import ConvexCombination, Dense, FrozenNetwork, load, save
from unitmargin.layers.activations import Abs


def combination(share: float, *matrices: torch.Tensor) -> ConvexCombination:
    layers = [Dense(m, torch.zeros(m.shape[0], dtype=m.dtype)) for m in matrices]
    return ConvexCombination(torch.tensor(share, dtype=torch.float64), layers)


def test_the_norm_is_reached_where_both_paths_agree() -> None:
    eye = torch.eye(3, dtype=torch.float64)
    layer = combination(0.25, 2.0 * eye, 3.0 * eye)
    assert layer.norm() == 0.25 + 0.75 * 6.0
    matrix = jacobian(layer, torch.randn(3, dtype=torch.float64))
    assert float(torch.linalg.matrix_norm(matrix, 2)) == pytest.approx(layer.norm(), abs=1e-14)


def test_the_audit_bounds_every_singular_value() -> None:
    for share in (0.2, 0.7):
        rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
        layer = combination(share, rotation)
        outer, inner = layer_rows("layer", layer)
        values = torch.linalg.svdvals(jacobian(layer, torch.zeros(4, dtype=torch.float64)))
        assert outer.smallest - 1e-12 <= float(values.min())
        assert float(values.max()) <= outer.largest + 1e-12
        assert (outer.promise.name, outer.kept, outer.gnp) == ("1-Lipschitz", True, False)
        assert (inner.name, inner.promise.name, inner.kept) == ("layer.branch.0", "GNP", True)


def test_a_branch_that_stretches_is_seen() -> None:
    layer = combination(0.5, 1.01 * torch.eye(2, dtype=torch.float64))
    outer, inner = layer_rows("layer", layer)
    assert not outer.kept
    assert not inner.kept
    assert outer.largest == pytest.approx(1.005)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_outside_the_unit_interval_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share of a convex combination must be one number in"):
        combination(share)


def test_a_branch_that_changes_the_shape_is_refused() -> None:
    """A sum that broadcasts is no convex combination: here its norm would be the root of three."""
    layer = combination(0.5, torch.ones(1, 3))
    with pytest.raises(ValueError, match=r"must keep the shape \(3,\) of its input, got \(1,\)"):
        layer(torch.ones(2, 3))


def network() -> FrozenNetwork:
    inner = ConvexCombination(torch.tensor(0.3), [Abs()])
    layers = [Dense(torch.randn(3, 3), torch.randn(3)), inner, Abs()]
    outer = ConvexCombination(torch.tensor(0.6), layers)
    return FrozenNetwork([outer, Dense(torch.randn(2, 3), torch.zeros(2))], (3,))


def test_nested_combinations_come_back_from_a_file(tmp_path) -> None:
    frozen = network()
    save(frozen, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    x = torch.randn(5, 3)
    assert torch.equal(frozen(x), again(x))
    assert torch.equal(frozen.pair_constants(), again.pair_constants())


def test_a_share_that_is_changed_changes_the_constants() -> None:
    frozen = network()
    before = frozen.pair_constants()
    frozen.layers[0].branch[0].weight.mul_(2.0)
    assert bool((frozen.pair_constants() >= before).all())
    assert not torch.equal(frozen.pair_constants(), before)


def test_an_unknown_layer_inside_a_branch_is_refused(tmp_path) -> None:
    frozen = network()
    frozen.layers[0].branch[2].kind = "mystery"
    with pytest.raises(ValueError, match="branch must be one of .* got 'mystery'"):
        save(frozen, tmp_path / "model.safetensors")
