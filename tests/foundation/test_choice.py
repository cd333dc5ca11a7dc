"""Choosing by name: what is chosen, and what an unknown name is told."""

import pytest

from unitmargin.foundation.choice import advice, choose, require_choice

REGISTRY = {"adam": 1, "sgd": 2, "none": None}


@pytest.mark.parametrize("name", REGISTRY)
def test_an_entry_is_chosen_by_its_name(name: str) -> None:
    assert choose("optimizer", name, REGISTRY) is REGISTRY[name]
    require_choice("optimizer", name, list(REGISTRY))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("adm", "got 'adm'; did you mean 'adam'?"),
        ("Adam", "got 'Adam'; did you mean 'adam'?"),
        ("lion", "got 'lion'; choose one"),
        ("", "got ''; choose one"),
        (None, "got None; choose one"),
        (2, "got 2; choose one"),
        (["adam"], "got ['adam']; choose one"),
    ],
)
def test_an_unknown_name_is_told_the_known_ones_and_the_closest(name: object, told: str) -> None:
    with pytest.raises(ValueError, match="^optimizer must be one of") as refused:
        require_choice("optimizer", name, REGISTRY)
    assert str(refused.value) == f"optimizer must be one of adam, sgd, none, {told}"


def test_choosing_and_requiring_refuse_in_the_same_words() -> None:
    with pytest.raises(ValueError, match="^optimizer must be one of") as chosen:
        choose("optimizer", "sdg", REGISTRY)
    with pytest.raises(ValueError, match="^optimizer must be one of") as required:
        require_choice("optimizer", "sdg", REGISTRY)
    assert str(chosen.value) == str(required.value)


def test_a_part_of_a_name_is_no_name() -> None:
    with pytest.raises(ValueError, match="got 'ada'; did you mean 'adam'"):
        choose("optimizer", "ada", REGISTRY)


def test_the_closest_of_several_close_names_is_advised() -> None:
    assert advice("sphere_tracin", ("sphere_tracking", "sphere_tracing")) == (
        "did you mean 'sphere_tracing'?"
    )
    assert advice("x", ()) == "choose one"
