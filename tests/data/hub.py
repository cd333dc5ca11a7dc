"""Parquet files of images as the Hugging Face hub keeps them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.parquet import write_table

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def hub_file(
    file: Path,
    images: Sequence[bytes | None],
    labels: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    *,
    image: str = "image",
    label: str = "label",
    kind: Any = STRUCT,
    **others: Sequence[Any],
) -> Path:
    """A file with a row for each image; the schema states ``names`` of classes."""
    cells = images if kind != STRUCT else [None if b is None else {"bytes": b} for b in images]
    columns: dict[str, Any] = {image: pa.array(cells, kind)}
    if labels is not None:
        columns[label] = pa.array(labels)
    columns |= {name: pa.array(other) for name, other in others.items()}
    table = pa.table(columns)
    if names is not None:
        features = {image: {"_type": "Image"}, label: {"_type": "ClassLabel", "names": [*names]}}
        stated = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": stated})
    file.parent.mkdir(parents=True, exist_ok=True)
    write_table(table, file)
    return file
