"""What a page shows of a network: samples, columns in their units, words."""

import json
import math

import numpy as np
import pytest
import torch

import unitmargin as um
from unitmargin.data import ENCODING, Samples
from unitmargin.exploring.page import explore_page
from unitmargin.exploring.subject import (
    MOST_COLUMNS,
    chosen_samples,
    describe,
    input_numbers,
    kind_of,
    units_of,
)
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.runs.certifier import holds_pixels


def network(entries: int) -> FrozenNetwork:
    head = Dense(torch.eye(2, entries), torch.zeros(2))
    return FrozenNetwork([head], (entries,), facts={"head": "orthonormal"}, domain=(-5, 5))


def samples(*in_shape: int, count: int = 12, classes: int = 2) -> Samples:
    generator = torch.Generator().manual_seed(0)
    return Samples(torch.rand(count, *in_shape, generator=generator), torch.arange(count) % classes)


@pytest.mark.parametrize(
    ("in_shape", "kind"),
    [
        ((1, 8, 8), "image"), ((3, 4, 6), "image"), ((4, 4, 6), "table"), ((2,), "plane"),
        ((1,), "table"), ((3,), "table"), ((200,), "table"),
    ],
)  # fmt: skip
def test_kinds_follow_from_the_shape(in_shape: tuple[int, ...], kind: str) -> None:
    model = um.freeze(um.DenseUGNN(in_shape, 2))
    assert kind_of(model) == kind
    data = samples(*in_shape)
    described = describe(model, data, chosen_samples(data, 5))
    sliders = math.prod(in_shape) <= MOST_COLUMNS and kind != "image"
    assert len(described["columns"]) == (math.prod(in_shape) if sliders else 0)
    assert ("area" in described) == (kind == "plane")


def test_samples_are_spread_by_turns_of_class_and_begin_with_a_typical_one() -> None:
    data = Samples(torch.rand(90, 4), torch.arange(90) // 30)
    frozen = um.freeze(um.DenseUGNN((4,), 3))
    index = chosen_samples(data, 9)
    assert data.labels[index].tolist() == [0, 1, 2] * 3
    described = describe(frozen, data, index)
    certificate = um.certify(frozen, data.batch(index)[0], "float64")
    assert described["radii"] == certificate.radius.tolist()
    assert described["predicted"] == certificate.label.tolist()
    right = [row for row in range(9) if described["predicted"][row] == described["labels"][row]]
    first = index.tolist().index(described["first"])
    assert first in right or not right
    numbers = np.frombuffer(input_numbers(data, index), "<f4").reshape(9, 4)
    assert np.array_equal(numbers, data.batch(index)[0].numpy())


def test_long_samples_are_fewer() -> None:
    data = Samples(torch.zeros(20, 3, 300, 300), torch.zeros(20, dtype=torch.int64))
    assert len(chosen_samples(data, 200)) == 3
    assert len(chosen_samples(samples(4), 200)) == 12


def test_columns_of_a_table_are_in_its_units() -> None:
    frozen = network(4)
    frozen.facts[ENCODING] = {
        "label": "y", "scale": "features", "columns": [
            {"name": "age", "shift": 40.0, "unit": 10.0},
            {"name": "kind", "categories": ["a", "b", "c"]},
        ],
    }  # fmt: skip
    inputs = torch.tensor([[-1.0, 0.7, 0, 0], [1.0, 0, 0.7, 0]])
    data = Samples(inputs, torch.tensor([0, 1]))
    described = describe(frozen, data, torch.tensor([0, 1]))
    age, kind = described["columns"]
    assert (age["low"], age["high"]) == (pytest.approx(27.0), pytest.approx(53.0))
    assert (age["lowest"], age["highest"], age["place"]) == (-5.0, 5.0, 0)
    assert (kind["place"], kind["categories"]) == (1, ["a", "b", "c"])
    assert kind["entry"] == pytest.approx(0.7)
    assert units_of(frozen).startswith("standard deviations of the training rows")
    assert described["short"] == ", in standard deviations of the training rows"
    assert described["categories"] == "A change of category has the length 1."
    assert kind_of(network(2)) == "plane"


def test_lengths_are_told_apart_from_those_of_changes_of_category() -> None:
    frozen = network(3)
    data = samples(3)
    columns = [{"name": "age; years", "unit": 10.0}, {"name": "pay", "categories": ["a", "b"]}]
    frozen.facts[ENCODING] = {"label": "y", "scale": "units", "columns": columns}
    described = describe(frozen, data, torch.tensor([0, 1]))
    assert described["short"] == (
        ", in unit lengths of the columns (age; years = 10, all others 1)"
    )
    assert described["categories"] == "A change of category has the length 1."
    columns[1] = {"name": "pay", "unit": 2.0, "categories": ["a", "b"]}
    frozen.facts[ENCODING] = {"label": "y", "scale": "units", "columns": columns}
    described = describe(frozen, data, torch.tensor([0, 1]))
    assert described["short"] == ", in unit lengths of the columns (age; years = 10, pay = 2)"
    assert described["categories"] == "A change of category has the length 0.5 (pay)."
    frozen.facts[ENCODING] = {"label": "y", "columns": [{"name": name} for name in "abc"]}
    described = describe(frozen, data, torch.tensor([0, 1]))
    assert described["short"] == ", in the units of the columns"
    assert described["categories"] == ""


def test_names_end_no_element_of_the_page() -> None:
    name = "</script><script>alert(1)</script>"
    frozen = FrozenNetwork(
        [Dense(torch.eye(2, 3), torch.zeros(2))], (3,), (name, 'b"'), facts={"head": "orthonormal"}
    )
    page = explore_page(frozen, samples(3), name, "0" * 64)
    assert "alert(1)</script>" not in page
    stated = page.split('id="subject">')[1].split("</script>")[0]
    assert json.loads(stated)["classes"] == [name, 'b"']
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")


@pytest.mark.parametrize("domain", [(0.0, 1.0), (0.0, 0.5), (0.0, 2.0), (-1.0, 1.0)])
def test_units_are_pixels_where_radii_are_told_in_pixels(domain: tuple[float, float]) -> None:
    frozen = um.freeze(um.UGNN((1, 4, 4), 3, depth=1), domain=domain)
    assert (
        ("pixel values" in units_of(frozen))
        == holds_pixels(frozen)
        == (domain[1] <= 1 and domain[0] >= 0)
    )
