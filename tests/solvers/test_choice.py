"""Solvers with options as words: what is read, and what a wrong word is told."""

from typing import Literal, get_origin

import pytest

from unitmargin.solvers import SOLVERS
from unitmargin.solvers.choice import KINDS, Choice, read_choice
from unitmargin.solvers.driver import own_options


def test_words_are_read_by_the_type_of_their_option() -> None:
    read = read_choice("ddn:temperature=2,steps=30,decay=0.1,first_step=2")
    assert read.name == "ddn"
    assert dict(read.options) == {
        "steps": 30, "temperature": 2.0, "decay": 0.1, "first_step": 2.0,
    }  # fmt: skip
    assert isinstance(dict(read.options)["first_step"], float)
    assert isinstance(dict(read.options)["steps"], int)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_bare_name_and_its_written_defaults_are_the_same_choice(name: str) -> None:
    assert read_choice(name) == Choice(name, ())
    own = own_options(SOLVERS[name]).values()
    kinds = (option.annotation for option in own)
    assert all(kind in KINDS or get_origin(kind) is Literal for kind in kinds)
    written = [f"{one.name}={one.default}" for one in own if one.default is not None]
    if written:
        assert read_choice(f"{name}:{','.join(reversed(written))}") == Choice(name, ())


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("flying", "solver must be one of sphere_tracing, .*, got 'flying'; choose"),
        ("flying:steps=3", "got 'flying'"),
        ("sphere_tracing:stps=3", "OPTION among steps, n_candidates, .*, got 'stps=3'"),
        ("closed_form:steps=3", "options of closed_form must .* among none, got 'steps=3'"),
        ("alma:steps", "got 'steps'; correct 'alma:steps'"),
        ("alma:steps=", "got 'steps='"),
        ("alma:", "got ''; correct 'alma:'"),
        ("alma:steps=3,steps=4", "each once, .* got 'steps=4'"),
        ("alma:steps=few", "steps of alma must be a whole number, got 'few'; its default is 100"),
        ("alma:steps=3.5", "steps of alma must be a whole number, got '3.5'"),
        ("alma:first_step=x", "first_step of alma must be a number above 0, got 'x'; its default"),
        ("alma:first_step=0", "first_step must be above 0, got 0.0; leave it out for the default"),
        ("ddn:temperature=0", "temperature must be above 0"),
        ("iterative_penalty:rate=0", "rate must be above 0"),
        ("margin_ddn:loss=cross_entropy", "OPTION among steps, .*, got 'loss=cross_entropy'"),
        ("alma:steps=0", "steps must be >= 1, got 0"),
        ("alma:first_step=nan", "first_step must be finite"),
    ],
)
def test_a_wrong_word_is_told_what_its_solver_takes(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_choice(word)


def test_a_solver_that_settles_an_option_of_another_is_its_name() -> None:
    assert read_choice("ddn:loss=margin") == read_choice("margin_ddn") == Choice("margin_ddn", ())
    assert str(read_choice("ddn:steps=30,loss=margin")) == "margin_ddn:steps=30"
    assert read_choice("ddn:loss=cross_entropy") == Choice("ddn", ())


@pytest.mark.parametrize("word", ["alma:smoothing=1", "ddn:decay=1.5", "fmn:decay=1e300"])
def test_shares_are_below_one(word: str) -> None:
    name = word.partition(":")[2].partition("=")[0]
    with pytest.raises(ValueError, match=f"{name} must be below 1, got .*; leave it out"):
        read_choice(word)


@pytest.mark.parametrize("word", ["ddn", "ddn:steps=30", "sphere_tracing:steps=300,n_candidates=9"])
def test_a_choice_prints_as_it_is_read(word: str) -> None:
    assert str(read_choice(word)) == word
    assert read_choice(str(read_choice(word))) == read_choice(word)
