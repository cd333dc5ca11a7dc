"""What the columns of a Parquet file of images are: images, labels, and what labels are called."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from unitmargin.data.cells import is_bytes, not_installed
from unitmargin.data.files import DataError, unreadable
from unitmargin.data.split_options import LABELS
from unitmargin.foundation.choice import advice
from unitmargin.foundation.numbers import shown

FEATURES = b"huggingface"
"""Under which the hub's library states in a schema what columns are."""

IMAGE_NAMES = ("image", "img")
"""What the column of images is called where several might be."""


class ImageColumns(NamedTuple):
    """Of a Parquet file: the columns of images and of labels, and what labels are called.

    Attributes:
        label: None where no column is told to be it.
        names: of the numbers in it, where the schema states them.
    """

    image: str
    label: str | None
    names: tuple[str, ...]


@contextmanager
def opened(file: Path) -> Iterator[Any]:
    """A Parquet file; what pyarrow says of a damaged one while it is read is one line.

    Raises:
        DataError: a damaged file, or pyarrow is missing.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise not_installed(file, "pyarrow", error) from None
    try:
        with ParquetFile(file) as stream:
            yield stream
    except (ArrowException, OSError, UnicodeError) as fault:
        raise unreadable(file, fault, "a whole Parquet file") from fault


def image_columns(file: Path) -> list[str]:
    """The columns of images in a Parquet file: those of structs with bytes, and those of plain
    bytes that are called or stated so or whose first row holds an image.

    Raises:
        DataError: a damaged file, or pyarrow is missing.
    """
    with opened(file) as stream:
        schema = stream.schema_arrow
        told = {*_stated(schema, "Image"), *IMAGE_NAMES}
        kinds = {field.name: field.type for field in schema}
        return [
            name
            for name in _image_columns(schema)
            if name in told or _is_struct(kinds[name]) or _begins_with_image(stream, name)
        ]


def find_columns(schema: Any, file: Path, label: str | None) -> ImageColumns:
    """The columns of a file of images by types, by what the schema states, and by names.

    Raises:
        DataError: no column of images or several, or labels that are neither numbers nor words.
    """
    names = ", ".join(map(shown, schema.names))
    found = _image_columns(schema)
    if len(found) != 1:
        got = f"several ({', '.join(found)})" if found else f"the columns {names}"
        step = 'call one "image"' if found else "write the bytes of encoded images, or another file"
        raise DataError(
            f"{file}: must have one column of images, of bytes or of a struct with bytes, got "
            f"{got}; {step}"
        )
    if label is not None and label not in schema.names:
        raise DataError(
            f"{file}: label must be one of {names}, got {shown(label)}; "
            f"{advice(label, schema.names)}"
        )
    chosen = _label_column(schema) if label is None else label
    if chosen is None:
        return ImageColumns(found[0], None, ())
    kind = schema.field(chosen).type
    if not _holds_labels(kind):
        raise DataError(
            f"{file}: {shown(chosen)} must hold whole numbers or words, the labels, got {kind}; "
            "name another label column, or leave it out"
        )
    return ImageColumns(found[0], chosen, _stated(schema, "ClassLabel").get(chosen, ()))


def _stated(schema: Any, kind: str) -> dict[str, tuple[str, ...]]:
    """The columns that the schema states to be of that kind of the hub, with their class names."""
    try:
        features = json.loads((schema.metadata or {})[FEATURES])["info"]["features"]
        return {
            name: tuple(map(str, feature.get("names") or ()))
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == kind
        }
    except (LookupError, TypeError, ValueError, AttributeError):
        return {}  # other tools write other statements


def _image_columns(schema: Any) -> list[str]:
    """The column of images, or all that may be."""
    found = [field.name for field in schema if _holds_bytes(field.type)]
    stated = [name for name in found if name in _stated(schema, "Image")]
    named = [name for name in found if name.lower() in IMAGE_NAMES]
    return next((names for names in (stated, named) if len(names) == 1), found)


def _label_column(schema: Any) -> str | None:
    named = [name for name in schema.names if name.lower() in LABELS]
    stated = [name for name in schema.names if name in _stated(schema, "ClassLabel")]
    return next((names[0] for names in (named, stated) if len(names) == 1), None)


def _is_struct(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_struct(kind)) and any(
        field.name == "bytes" and is_bytes(field.type) for field in kind
    )


def _holds_bytes(kind: Any) -> bool:
    return is_bytes(kind) or _is_struct(kind)


def _holds_labels(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_string,
        types.is_large_string, types.is_string_view, types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _begins_with_image(stream: Any, name: str) -> bool:
    from PIL import Image

    from unitmargin.data.pixels import FORMATS

    batch = next(stream.iter_batches(1, columns=[name]), None)
    content = batch.column(0)[0].as_py() if batch is not None and len(batch) else None
    try:
        with Image.open(io.BytesIO(content or b""), formats=FORMATS):
            return True
    except Exception:  # decoders meet bytes that are no image with errors of many types
        return False
