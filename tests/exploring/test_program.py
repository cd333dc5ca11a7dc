"""The network as data of a page: nodes, and all numbers to the last bit."""

import numpy as np
import pytest
import torch

import unitmargin as um
from unitmargin.deployment.program import write_program
from unitmargin.exploring import program
from unitmargin.exploring.program import page_program
from unitmargin.frozen import Dense, FrozenNetwork


@pytest.fixture
def frozen() -> FrozenNetwork:
    torch.manual_seed(0)
    return um.freeze(um.UGNN(in_shape=(1, 8, 8), n_classes=3))


def test_numbers_are_those_of_the_graph(frozen: FrozenNetwork) -> None:
    graph, claims = write_program(frozen)
    found = page_program(frozen)
    assert found.description["claims"] == claims
    assert len(found.description["nodes"]) == len(graph.nodes)
    kinds = {"f4": "<f4", "f8": "<f8", "i4": "<i4"}
    for name, (kind, shape, offset, size) in found.description["stored"].items():
        assert offset % 8 == 0
        read = np.frombuffer(found.numbers, kinds[kind], size, offset).reshape(shape)
        assert np.array_equal(read, graph.stored[name])
    weights = [array for array in graph.stored.values() if array.dtype == np.float32]
    assert sum(array.size for array in weights) > 100


def test_a_network_that_is_too_large_is_refused_with_its_size(
    frozen: FrozenNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = sum(buffer.numel() for buffer in frozen.network.buffers())
    page = sum(array.size for array in write_program(frozen)[0].stored.values())
    monkeypatch.setattr(program, "MOST_NUMBERS", page)
    page_program(frozen)
    for size in (page, network):  # of the latter before the proof is made
        monkeypatch.setattr(program, "MOST_NUMBERS", size - 1)
        expected = f"at most {size - 1:,} stored numbers, which a page can hold, got {size:,}"
        with pytest.raises(ValueError, match=expected):
            page_program(frozen)


def test_the_tables_of_many_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = FrozenNetwork([Dense(torch.eye(40), torch.zeros(40))], (40,))
    buffers = sum(buffer.numel() for buffer in frozen.network.buffers())
    monkeypatch.setattr(program, "MOST_NUMBERS", buffers + 40 * 40)
    with pytest.raises(ValueError, match="stored numbers, which a page can hold, got"):
        page_program(frozen)


def test_a_page_holds_the_network_that_init_proposes_for_photos() -> None:
    with torch.device("meta"):
        model = um.MixingUGNN((3, 64, 64), 200)
    assert sum(parameter.numel() for parameter in model.parameters()) < program.MOST_NUMBERS
