"""The page: one file that opens from the file system and needs no network."""

import base64
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from unitmargin import __version__
from unitmargin.data import Samples
from unitmargin.exploring.program import page_program
from unitmargin.exploring.scripts import bundle
from unitmargin.exploring.subject import (
    WORDS,
    chosen_samples,
    describe,
    input_numbers,
    kind_of,
    units_of,
)
from unitmargin.frozen import FrozenNetwork

STYLE = files("unitmargin.exploring") / "templates/explore.css"

SAMPLES = 200
"""Test samples in a page, where they are not too long."""


def explore_page(
    frozen: FrozenNetwork, samples: Samples, name: str, model_sha256: str, count: int = SAMPLES
) -> str:
    """The text of ``explore.html``: the network, test samples, and the program that evaluates them.

    Guarantee: labels and radii that the page shows are those of
    ``certify(frozen, x, "float64", domain="any")``, sound for every evaluation in doubles
    (docs/soundness.md); of test samples it compares both, and says so.

    Raises:
        ValueError: more stored numbers than a page can hold, or a layer that has no nodes.

    Cost: the proof of the network and one evaluation of the samples.
    """
    program = page_program(frozen)
    index = chosen_samples(samples, count)
    subject = describe(frozen, samples, index)
    numbers = sum(array[3] for array in program.description["stored"].values())
    content = {
        "name": name,
        "kind": kind_of(frozen),
        "words": WORDS[kind_of(frozen)],
        "size": " × ".join(str(length) for length in frozen.in_shape[1:]),
        "colour": frozen.in_shape[0] == 3,
        "columns": subject["columns"],
        "units": units_of(frozen),
        "version": __version__,
        "model_sha256": model_sha256,
        "numbers": f"{numbers:,}",
        "samples": len(index),
        "style": Markup(STYLE.read_text("utf-8")),
        "subject": _json(subject),
        "inputs": _text(input_numbers(samples, index)),
        "description": _json(program.description),
        "numbers_text": _text(program.numbers),
        "worker": Markup(bundle("worker/main.js")),
        "script": Markup(bundle("page/main.js")),
    }
    environment = Environment(
        loader=PackageLoader("unitmargin.exploring"),
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("explore.html.jinja").render(content)


def _json(value: Any) -> Markup:
    """JSON that ends no element of a page, whatever names are in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _text(numbers: bytes) -> Markup:
    return Markup(base64.b64encode(numbers).decode("ascii"))
