"""What a page shows of a network: its inputs in words, test samples, and the columns of a table."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from unitmargin.certificates.agreement import allowed_difference
from unitmargin.certificates.certify import Certificate, certify
from unitmargin.certificates.exhibits import is_image
from unitmargin.data import ENCODING, Encoding, Samples, read_encoding
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certifier import holds_pixels, radius_space

Kind = Literal["image", "plane", "table"]

MOST_NUMBERS = 2**20
"""Numbers of the test samples in a page, 6 MB of text."""

MOST_COLUMNS = 64
"""Sliders; a longer input can only be chosen."""

ROOM = 0.15
"""By how much a slider, or the plane, reaches beyond the test samples on either side, as a share of
their range."""

WORDS: Mapping[Kind, Mapping[str, str]] = {
    "image": {
        "input": "an image", "each": "every image", "change": "Change its pixels",
        "question": "How much can an image change before the answer does?",
    },
    "plane": {
        "input": "a point", "each": "every point of the plane", "change": "Move the point",
        "question": "How far can a point move before the answer changes?",
    },
    "table": {
        "input": "a row", "each": "every row of numbers", "change": "Change its numbers",
        "question": "How much can a row change before the answer does?",
    },
}  # fmt: skip


def kind_of(frozen: FrozenNetwork) -> Kind:
    """How inputs are shown: as pictures, in a map, or number by number."""
    if is_image(frozen.in_shape):
        return "image"
    encoding = encoding_of(frozen)
    words = encoding is not None and any(column.categories for column in encoding.columns)
    return "plane" if frozen.in_shape == (2,) and not words else "table"


def encoding_of(frozen: FrozenNetwork) -> Encoding | None:
    return read_encoding(frozen.facts.get(ENCODING), frozen.in_shape)


def units_of(frozen: FrozenNetwork) -> str:
    """What a radius is measured in, in words."""
    if holds_pixels(frozen):
        return "pixel values from 0 (black) to 1 (white)"
    return radius_space(frozen)


def chosen_samples(samples: Samples, count: int) -> Tensor:
    """Positions of as many test samples as a page shows, spread evenly."""
    room = max(1, MOST_NUMBERS // math.prod(samples.in_shape))
    index = samples.spread(min(count, room))
    return index[_mixed(samples.batch(index)[1])]


def _mixed(labels: Tensor) -> Tensor:
    """Positions by turns of class: the first of each, then the second of each."""
    seen: dict[int, int] = {}
    turns = []
    for label in labels.tolist():
        seen[label] = seen.get(label, 0) + 1
        turns.append(seen[label])
    return torch.argsort(torch.tensor(turns), stable=True)


def describe(frozen: FrozenNetwork, samples: Samples, index: Tensor) -> dict[str, Any]:
    """What the page's scripts read beside the program and the inputs of these samples.

    Predicted classes and radii are those of ``certify``, with which the page compares its own.
    """
    inputs, labels = samples.batch(index)
    found = certify(frozen, inputs, "float64", domain="any")
    kind, encoding = kind_of(frozen), encoding_of(frozen)
    short, categories = ("", "") if encoding is None else _lengths(encoding)
    ends = float(inputs.min()), float(inputs.max())
    low, high = ends if frozen.domain is None else frozen.domain
    subject: dict[str, Any] = {
        "kind": kind,
        "classes": list(frozen.classes),
        "inShape": list(frozen.in_shape),
        "low": low,
        "high": high if high > low else low + 1.0,
        "indices": index.tolist(),
        "first": int(index[_typical(found, labels)]),
        "labels": labels.tolist(),
        "predicted": found.label.tolist(),
        "radii": found.radius.tolist(),
        "apart": allowed_difference(frozen, found).tolist(),
        "short": short,
        "categories": categories,
        "columns": [] if kind == "image" else _columns(inputs.numpy(), encoding, (low, high)),
    }
    if kind == "plane":
        subject["area"] = _area(inputs.numpy())
    return subject


def _lengths(encoding: Encoding) -> tuple[str, str]:
    """What radii are measured in, for inside a sentence, and a sentence on changes of category."""
    numbers = [column.changed(categories=None) for column in encoding.columns]
    words = encoding.changed(columns=numbers).units
    rest = encoding.units.removeprefix(words).removeprefix("; ")
    return f", in {words}", f"{rest[0].upper()}{rest[1:]}." if rest else ""


def _typical(found: Certificate, labels: Tensor) -> int:
    """Position of a right prediction with a radius that is neither large nor small, if any."""
    right = (found.label == labels).nonzero().flatten()
    order = right[found.radius[right].argsort()]
    return int(order[len(order) // 2]) if len(order) else 0


def _columns(
    inputs: Float32[np.ndarray, "n ..."], encoding: Encoding | None, domain: tuple[float, float]
) -> list[dict[str, Any]]:
    """Sliders: an entry, or all entries of a column of words, in the units of the table."""
    flat = inputs.reshape(len(inputs), -1)
    plane = ["first coordinate", "second coordinate"]
    many = [f"number {place + 1}" for place in range(flat.shape[1])]
    names = plane if len(many) == len(plane) else many
    known = [(name, 0.0, 1.0, None, 1) for name in names] if encoding is None else [
        (column.name, column.shift, column.unit, column.categories, column.width)
        for column in encoding.columns
    ]  # fmt: skip
    if len(known) > MOST_COLUMNS:
        return []
    columns, place = [], 0
    for name, shift, unit, categories, width in known:
        entries = flat[:, place : place + width]
        low, high = _widened(float(entries.min()), float(entries.max()), domain)
        columns.append({
            "name": name, "place": place, "shift": shift, "unit": unit, "categories": categories,
            "entry": float(entries.max()), "lowest": domain[0], "highest": domain[1],
            "low": shift + unit * low, "high": shift + unit * high,
        })  # fmt: skip
        place += width
    return columns


def _widened(low: float, high: float, domain: tuple[float, float]) -> tuple[float, float]:
    room = ROOM * ((high - low) or 1.0)
    return max(low - room, domain[0]), min(high + room, domain[1])


def _area(inputs: Float32[np.ndarray, "n 2"]) -> list[float]:
    """A square around all points: left, right, bottom, top."""
    low, high = inputs.min(0).astype(float), inputs.max(0).astype(float)
    middle, half = (low + high) / 2, float((high - low).max()) * (0.5 + ROOM) or 1.0
    sides = (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half)
    return [float(side) for side in sides]


def input_numbers(samples: Samples, index: Tensor) -> bytes:
    """The inputs of these samples as little endian float32."""
    inputs, _ = samples.batch(index)
    return inputs.to(torch.float32).numpy().astype("<f4").tobytes()
