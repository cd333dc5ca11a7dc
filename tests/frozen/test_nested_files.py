"""The file of a network with branches: what is refused inside them (T16)."""

from pathlib import Path

import pytest
import torch
from model_files import header, rewrite
from safetensors.torch import load_file

from unitmargin.frozen import ConvexCombination, Dense, FrozenNetwork, ModelFileError, load, save
from unitmargin.frozen.files import LARGEST
from unitmargin.layers.activations import GroupSort


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """A combination within a combination."""
    torch.manual_seed(0)
    inner = ConvexCombination(torch.tensor(0.3), [Dense(torch.randn(3, 3), torch.randn(3))])
    outer = ConvexCombination(torch.tensor(0.6), [GroupSort(3), inner])
    head = Dense(torch.randn(2, 3), torch.zeros(2))
    save(FrozenNetwork([outer, head], (3,)), tmp_path / "nested.safetensors")
    return tmp_path / "nested.safetensors"


INSIDE = "0.branch.1.branch.0."
"""Prefix of the tensors of the innermost layer of ``nested``."""


def test_tensors_of_branches_have_the_names_of_their_places(nested: Path) -> None:
    names = {"0.share", "0.branch.1.share", INSIDE + "weight", INSIDE + "bias"}
    assert set(load_file(nested)) == {*names, "1.weight", "1.bias"}


@pytest.mark.parametrize("name", ["0.share", "0.branch.1.share", INSIDE + "weight"])
def test_an_edit_inside_a_branch_is_found_by_the_hash(nested: Path, name: str) -> None:
    rewrite(nested, tensors={name: load_file(nested)[name] * (1 - 2**-20)}, rehash=False)
    with pytest.raises(ModelFileError, match="SHA-256 is not that of its content"):
        load(nested)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"size": 3', '"size": 2'),
        ('"size": 3', '"size": 3.0'),
        ('"groupsort", "configuration": {"size": 3}', '"normalize", "configuration": {}'),
        ('"groupsort", "configuration": {"size": 3}', '"relu", "configuration": {}'),
        ('{"size": 3}', '{"size": 3, "norm": 0.5}'),
        ('{"size": 3}}', '{"size": 3}, "norm": 0.5}'),
        ('"branch": [{"kind": "dense"', '"branch": [{"kind": "abs"'),
        ('"branch": [{"kind": "dense", "configuration": {}}]', '"branch": []'),
        ('"branch": [{"kind": "dense", "configuration": {}}]', '"branch": 3'),
        ('"branch": [{"kind": "dense", "configuration": {}}]', '"tree": []'),
    ],
)
@pytest.mark.parametrize("rehash", [False, True])
def test_another_configuration_of_a_branch_is_refused(
    nested: Path, old: str, new: str, rehash: bool
) -> None:
    text = header(nested)["layers"]
    assert old in text
    rewrite(nested, {"layers": text.replace(old, new)}, rehash=rehash)
    with pytest.raises(ModelFileError, match=r"(?s)inconsistent: .*; freeze it again"):
        load(nested)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("0.share", torch.tensor(1.5)),
        ("0.share", torch.tensor([0.5])),
        ("0.branch.1.share", torch.tensor(-0.5)),
        (INSIDE + "weight", torch.zeros(3, 4)),
        (INSIDE + "weight", torch.zeros(1, 3)),
        (INSIDE + "bias", torch.tensor([0.0, torch.nan, 0.0])),
        (INSIDE + "bias", torch.tensor([0.0, 3 * LARGEST, 0.0])),
        (INSIDE + "other", torch.zeros(3)),
        ("0.branch.0.weight", torch.zeros(3)),
        ("0.branch.7.weight", torch.zeros(3)),
        ("0.branch.1.branch.7.weight", torch.zeros(3)),
    ],
)
def test_another_tensor_inside_a_branch_is_refused(
    nested: Path, name: str, tensor: torch.Tensor
) -> None:
    rewrite(nested, tensors={name: tensor})
    with pytest.raises(ModelFileError, match=r"(?s)inconsistent: .*; freeze it again"):
        load(nested)


def test_branches_without_end_are_refused(nested: Path) -> None:
    layer = '{"kind": "convex_combination", "configuration": {"branch": ['
    rewrite(nested, {"layers": "[" + layer * 2000 + "]}}" * 2000 + "]"})
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(nested)
