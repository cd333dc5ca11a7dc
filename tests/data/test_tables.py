"""Tables as data sets: labels, columns, statistics of the training rows, and every wrong cell."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
import torch
from pyarrow.parquet import write_table

from unitmargin.data import (
    DataError,
    Dataset,
    TableOptions,
    holds_splits,
    load_dataset,
    read_inputs,
    usable,
)
from unitmargin.data.encoding import Column, Encoding

ROWS = 40


def text(label: str = "class", **columns: list[Any]) -> str:
    table = {
        "age": [20.5 + row for row in range(ROWS)],
        "colour": [("red", "blue")[row % 2] for row in range(ROWS)],
        label: [("yes", "no")[row % 3 == 0] for row in range(ROWS)],
    } | columns
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    return "\n".join(lines) + "\n"


def load(folder: Path, content: str, **options: Any) -> Dataset:
    path = folder / "a.csv"
    path.write_text(content)
    return load_dataset("table", path, table=TableOptions(**options))


def test_features_have_mean_0_and_deviation_1_in_the_training_rows_alone(tmp_path: Path) -> None:
    dataset = load(tmp_path, text(), scale="features")
    age = dataset.train.inputs[:, 0].double()
    assert float(age.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(age.std(correction=0)) == pytest.approx(1.0, abs=1e-6)
    assert abs(float(dataset.test.inputs[:, 0].double().mean())) > 1e-3
    assert dataset.encoding is not None
    column = dataset.encoding.columns[0]
    both = torch.cat((dataset.train.inputs, dataset.test.inputs))[:, 0].double()
    given = (both * column.unit + column.shift).sort().values.numpy()
    assert np.allclose(given, np.arange(ROWS) + 20.5, atol=1e-5)


def test_columns_are_as_they_are_or_in_their_units(tmp_path: Path) -> None:
    plain = load(tmp_path, text())
    scaled = load(tmp_path, text(), scale="units", units={"age": 5.0})
    assert torch.equal(plain.train.inputs[:, 0] / 5, scaled.train.inputs[:, 0])
    assert torch.equal(plain.train.inputs[:, 1:], scaled.train.inputs[:, 1:])
    assert plain.in_shape == (3,)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"], ("a", "b")),
        (["10", "9"], ("9", "10")),
        (["1.0", "0.0"], ("0", "1")),
        (["-1", "1"], ("-1", "1")),
        (["True", "False"], ("False", "True")),
        (["2", "neither"], ("2", "neither")),
    ],
)
def test_classes_are_the_sorted_values(
    tmp_path: Path, labels: list[str], classes: tuple[str, ...]
) -> None:
    column = [labels[row % 2] for row in range(ROWS)]
    same = column if labels == ["b", "a"] else [row % 2 for row in range(ROWS)]
    dataset = load(tmp_path, text("Target", Target=column, colour=same))
    assert dataset.classes == classes
    for part in (dataset.train, dataset.test):
        if same is column:
            assert torch.equal(part.labels == 0, part.inputs[:, 1] > 0)


def test_categories_may_be_numbers(tmp_path: Path) -> None:
    column = [row % 3 for row in range(ROWS)]
    dataset = load(tmp_path, text(colour=column), categories=["colour"])
    assert dataset.encoding is not None
    assert dataset.encoding.columns[1].categories == ["0", "1", "2"]
    assert dataset.in_shape == (4,)


@pytest.mark.parametrize(
    ("cells", "options"),
    [(["1,5", "2,5"], {"categories": ["age"]}), (["1,5", "a,b"], {}), (["1,2,3.4.5", "1,2 %"], {})],
)
def test_categories_may_have_commas(
    tmp_path: Path, cells: list[str], options: dict[str, Any]
) -> None:
    column = [f'"{cell}"' for cell in cells] * (ROWS // 2)
    dataset = load(tmp_path, text(age=column), **options)
    assert dataset.encoding is not None
    assert dataset.encoding.columns[0].categories == sorted(cells)


def test_a_table_of_test_rows_is_encoded_as_the_training_table(tmp_path: Path) -> None:
    other = tmp_path / "b.csv"
    other.write_text("class,colour,age\nno,red,39\nyes,blue,41\n")
    dataset = load(tmp_path, text(), scale="features", test=str(other))
    assert len(dataset.train) == ROWS
    assert dataset.test.labels.tolist() == [0, 1]
    assert dataset.test.inputs[:, 0].tolist() == pytest.approx([-1 / 11.543, 1 / 11.543], rel=1e-3)
    gone = r"c\.csv: must be a \.csv or .* found none; .*, or state where both lie: .* --set"
    with pytest.raises(DataError, match=gone):
        load(tmp_path, text(), test=str(tmp_path / "c.csv"))
    for content, rule in (
        ("class,colour,age\nno,red,39\nmaybe,blue,41\n", "'class' in line 3 must be a class"),
        ("class,colour,age\nno,pink,39\n", "'colour' in line 2 must be a category"),
        ("class,age\nno,39\n", "got a table without 'colour'"),
        ("colour,age\nred,39\n", "it must have the label column 'class', got the columns"),
    ):
        other.write_text(content)
        with pytest.raises(DataError, match=r"b\.csv: .*") as fault:
            load(tmp_path, text(), test=str(other))
        assert rule in str(fault.value)


@pytest.mark.parametrize(
    ("ages", "options"),
    [
        ([1_700_000_000 + row for row in range(ROWS)], {}),
        ([(1 + row) * 1e-50 for row in range(ROWS)], {}),
        ([5e6 + 0.01 * row for row in range(ROWS)], {"scale": "units", "units": {"age": 2.0}}),
    ],
)
def test_numbers_that_float32_does_not_tell_apart_are_no_inputs(
    tmp_path: Path, ages: list[float], options: dict[str, Any]
) -> None:
    """A radius around the rounded number would not hold around the number itself."""
    with pytest.raises(DataError, match=r"'age' must keep its digits in float32, .*\"features\""):
        load(tmp_path, text(age=ages), **options)
    scaled = load(tmp_path, text(age=ages), scale="features").train.inputs[:, 0]
    assert len(scaled.unique()) == len(scaled)
    assert len(load(tmp_path, text(age=[16_777_216.0 + 2 * row for row in range(ROWS)])).train)
    assert len(load(tmp_path, text(age=[0.1] * ROWS)).train)  # nothing to be told apart


def spoilt(column: str, row: int, cell: str) -> str:
    lines = text().splitlines()
    cells = lines[row + 1].split(",")
    cells[lines[0].split(",").index(column)] = cell
    lines[row + 1] = ",".join(cells)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("content", "options", "rule"),
    [
        (spoilt("age", 3, ""), {}, "'age' in line 5 must have a value, got an empty cell"),
        (spoilt("colour", 3, "NaN"), {}, "'colour' in line 5 must have a value, got 'NaN'"),
        (spoilt("class", 3, ""), {}, "'class' in line 5 must have a value"),
        (spoilt("age", 3, "-inf"), {}, "'age' in line 5 must be finite, got '-inf'"),
        (spoilt("age", 3, "old"), {}, "'age' in line 5 must be a number, got 'old'"),
        (spoilt("age", 3, "1e300"), {}, "'age' in line 5 must fit into float32"),
        (spoilt("class", 3, "maybe"), {}, "class 'maybe' must have two different rows"),
        (text(age=[7] * ROWS, x=range(ROWS)), {"scale": "features"}, "'age' must differ among"),
        (text(age=[0.1] * ROWS, x=range(ROWS)), {"scale": "features"}, "got '0.1' in all of them"),
        (text(colour=["red"] * ROWS), {"scale": "features"}, "'colour' must differ among the"),
        (text(age=[-1e308, 1e308] * 20, x=range(ROWS)), {"scale": "features"}, "'age' must have a"),
        (text(**{"class": ["no"] * ROWS}), {}, "'class' must hold two classes at least"),
        (text(**{"class": [0.5, 1] * 20}), {}, "'class' in line 2 must be a whole number or a"),
        (text(age=['"1,5"', '"2,25"'] * 20), {}, "'age' in line 2 must be a number with a decimal"),
        (text(age=['"1,234.5"', '"1.234,5"'] * 20), {}, "'age' in line 2 must be a number with a"),
        (text(age=["NA", *['"-1,234,567"'] * 39]), {}, "'age' in line 3 must be a number with a"),
        (text("kind"), {}, "label must name the column of the classes"),
        (text(y=[1, 2] * 20), {}, "label must name the column of the classes"),
        (text(), {"label": "kind"}, "label must be one of age, colour, class, got 'kind'"),
        (text(), {"ignore": ["ages"]}, "ignore must name columns ('age', 'colour'), got 'ages'"),
        (text(), {"ignore": ["age", "colour"]}, "a column beside the label must be left"),
        (text(), {"categories": ["class"]}, "categories must name columns"),
        (text(), {"scale": "units", "units": {"agee": 1.0}}, "did you mean 'age'?"),
        ("a,class\n" + "1,x\n" * 5 + "1,y\n" * 5, {}, "class 'x' must have two different rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    tmp_path: Path, content: str, options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(DataError) as fault:
        load(tmp_path, content, **options)
    assert rule in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_stray_quote_swallows_no_rows(tmp_path: Path) -> None:
    """A hundred of them, up to the next cell that begins with a quote."""
    notes = {3: '"sic!', 103: '"so, so"'}
    rows = [f"{row}.5,{row % 2},{notes.get(row, 'none')}" for row in range(200)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x,class,note", *rows]))
    known = Encoding(label="class", columns=[Column(name="x")], ignored=["note"])
    for read in (
        lambda: load_dataset("table", path, table=TableOptions(ignore=["note"])),
        lambda: list(read_inputs(path, (1,), ("0", "1"), 7, encoding=known)),
    ):
        with pytest.raises(
            DataError, match="line 5 must be a row .* that reaches line 105 .* quote"
        ):
            read()


@pytest.mark.parametrize("suffix", [".CSV", ".Parquet"])
def test_suffixes_may_be_large(tmp_path: Path, suffix: str) -> None:
    first = load(tmp_path, text())
    pd.read_csv(tmp_path / "a.csv").to_parquet(tmp_path / "a.parquet")
    path = (tmp_path / f"a{suffix.lower()}").rename(tmp_path / f"b{suffix}")
    dataset = load_dataset("table", path)
    assert torch.equal(dataset.train.inputs, first.train.inputs)
    (batch,) = read_inputs(path, (3,), dataset.classes, ROWS, encoding=dataset.encoding)
    assert len(batch.inputs) == ROWS
    assert not holds_splits(path)


@pytest.mark.parametrize("options", [{"test_share": 0.5}, {"split_seed": 3}])
def test_options_of_a_split_are_left_out_beside_a_table_of_test_rows(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be left out where test names a table"):
        load(tmp_path, text(), test="b.csv", **options)


def test_options_fit_each_other() -> None:
    for options, rule in (
        ({"units": {"age": 5.0}}, "units must be left out under the scale 'none'"),
        ({"test": "b.csv", "test_share": 0.5}, "test_share must be left out where test names"),
    ):
        with pytest.raises(ValueError, match=rule):
            load_dataset("table", "a.csv", table=TableOptions(**options))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="table must be left out for data set 'digits', got TableOptions"
    ):
        load_dataset("digits", table=TableOptions())
    with pytest.raises(ValueError, match="path must be given for data set 'table'"):
        load_dataset("table")


def test_columns_of_no_use_are_ignored_on_demand(tmp_path: Path) -> None:
    many = [f"c{row}" for row in range(ROWS)]
    path = tmp_path / "a.csv"
    path.write_text(text(same=[1] * ROWS, many=many, x=[0.1] * ROWS))
    found, left = usable(path, TableOptions(scale="features", ignore=["colour"]))
    assert found.ignore == ["colour", "same", "x"]
    encoding = load_dataset("table", path, table=found).encoding
    assert encoding is not None
    assert left == [column.name for column in encoding.columns]


def test_a_column_may_be_of_no_use_in_the_split_that_is_left(tmp_path: Path) -> None:
    """It is constant but for one row, which is a test row once the first column is ignored."""
    path = tmp_path / "a.csv"
    for row in range(ROWS):
        odd = [int(other == row) for other in range(ROWS)]
        path.write_text(text(same=[1] * ROWS, odd=odd))
        found, left = usable(path, TableOptions(scale="features"))
        assert found.ignore == ["same"] + ["odd"] * ("odd" not in left)
        assert load_dataset("table", path, table=found).in_shape == (len(left) + 1,)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e150, 1e300])
def test_deviations_are_right_at_every_magnitude(tmp_path: Path, scale: float) -> None:
    column = [repr(scale * (1 + row)) for row in range(ROWS)]
    dataset = load(tmp_path, text(age=column), scale="features")
    assert dataset.encoding is not None
    unit = dataset.encoding.columns[0].unit
    train = dataset.train.inputs[:, 0].double().numpy()
    assert np.std(train) == pytest.approx(1.0, abs=1e-6)
    assert unit / scale == pytest.approx(ROWS / 12**0.5, rel=0.2)


def test_a_column_of_lists_may_be_ignored_and_is_no_category(tmp_path: Path) -> None:
    columns = {
        "age": range(20),
        "embedding": [[n, 1.0] for n in range(20)],
        "class": ["a", "b"] * 10,
    }
    path = tmp_path / "a.parquet"
    write_table(pyarrow.table(columns), path)
    with pytest.raises(
        DataError, match="'embedding' must hold numbers or words, got list<.*ignore"
    ):
        load_dataset("table", path)
    options = TableOptions(ignore=["embedding"])
    assert load_dataset("table", path, table=options).in_shape == (1,)
