# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# (pyarrow ships no types)
"""The formats that are columns already: parquet, Arrow files, and datasets of Hugging Face's `datasets` library.

A folder saved by `save_to_disk` holds Arrow streams, `state.json` that lists them in order and `dataset_info.json`
with the names of class numbers; it is read without the library. A dataset object is read through its own slices, so
that a selection or a shuffle of it is respected.
"""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from capsroute.text.files import FormatName, Opened, open_seekable
from capsroute.text.problems import CorpusError, Problems
from capsroute.text.readers import CHUNK_ROWS, Chunk, Reader


@runtime_checkable
class DatasetLike(Protocol):
    """What is used of a `datasets.Dataset`."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def features(self) -> Mapping[str, object]: ...
    @property
    def format(self) -> Mapping[str, object]: ...
    def with_format(self, type: str) -> "DatasetLike": ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: slice) -> pa.Table: ...


class ColumnReader(Reader):
    """Batches of Arrow columns."""

    unit = "row"

    def __init__(self, name: str, format: FormatName, schema: pa.Schema, batches: "Batches") -> None:
        super().__init__(name, format, schema.names)
        self.class_names = _names_in_schema(schema)
        self._batches = batches

    def chunks(self, wanted: Sequence[str], problems: Problems) -> Iterator[Chunk]:  # noqa: ARG002
        row = 1
        for batch in self._batches(list(wanted)):
            for start in range(0, batch.num_rows, CHUNK_ROWS):
                part = batch.slice(start, CHUNK_ROWS)
                lines = list(range(row, row + part.num_rows))
                row += part.num_rows
                yield Chunk(lines, [_cells(part.column(name)) for name in wanted])


@runtime_checkable
class Batches(Protocol):
    """Column names -> tables or record batches that hold at least these columns."""

    def __call__(self, names: list[str]) -> Iterator[pa.Table | pa.RecordBatch]: ...


def _cells(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """A column as Python values, bytes as the text that they are; those that are not UTF-8 stay, as no text."""
    kind = column.type
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()).to_pylist()
        return [_decoded(value) for value in values]
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return [_decoded(value) for value in values] if is_binary else values


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return value.decode() if value is not None else None
    except UnicodeDecodeError:
        return value


@contextmanager
def parquet_reader(opened: Opened) -> Generator[Reader, None, None]:
    """A parquet file."""
    with open_seekable(opened) as file:
        try:
            parquet = pq.ParquetFile(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorpusError(f"'{opened.name}' is no complete parquet file ({_first_line(error)}).") from error

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            return parquet.iter_batches(CHUNK_ROWS, columns=names)

        yield ColumnReader(opened.name, "parquet", parquet.schema_arrow, batches)


@contextmanager
def arrow_reader(opened: Opened) -> Generator[Reader, None, None]:
    """An Arrow IPC file or stream."""
    is_file = opened.head().startswith(b"ARROW1")
    with open_seekable(opened) as file:
        try:
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorpusError(f"'{opened.name}' is no Arrow file ({_first_line(error)}).") from error

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG001
            if is_file:
                return (reader.get_batch(number) for number in range(reader.num_record_batches))
            return iter(reader)

        yield ColumnReader(opened.name, "arrow", reader.schema, batches)


def dataset_reader(dataset: DatasetLike) -> Reader:
    """A `datasets.Dataset` object."""
    if dataset.format.get("type") == "custom":
        raise CorpusError("the data set has a transform, which a corpus would not see: map() it over the rows first.")
    table = dataset.with_format("arrow")

    def batches(names: list[str]) -> Iterator[pa.Table]:  # noqa: ARG001
        return (table[start : start + CHUNK_ROWS] for start in range(0, len(dataset), CHUNK_ROWS))

    reader = ColumnReader(
        "dataset", "arrow", pa.schema([(name, pa.null()) for name in dataset.column_names]), batches
    )
    reader.class_names = {
        name: list(names) for name, feature in dataset.features.items() if (names := _names_of(feature)) is not None
    }
    return reader


def _names_of(feature: object) -> list[str] | None:
    """The names of a ClassLabel, also of a list of them."""
    inner = getattr(feature, "feature", feature)
    return getattr(inner, "names", None)


def saved_dataset_files(folder: Path) -> list[Path] | None:
    """The Arrow files of a folder that `save_to_disk` wrote, in order; None if the folder is another."""
    if (folder / "dataset_dict.json").is_file():
        parts = _json(folder / "dataset_dict.json").get("splits", [])
        names = ", ".join(f"'{folder / str(part)}'" for part in cast("list[object]", parts))
        raise CorpusError(f"the folder '{folder}' holds several data sets: name one of {names}.")
    if not (folder / "dataset_info.json").is_file():
        return None
    state = _json(folder / "state.json") if (folder / "state.json").is_file() else {}
    listed = cast("list[dict[str, str]]", state.get("_data_files", []))
    if state.get("_data_files") == []:
        raise CorpusError(f"the data set saved in '{folder}' is empty: it has no rows.")
    files = [folder / entry["filename"] for entry in listed] or sorted(folder.glob("*.arrow"))
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise CorpusError(f"the data set saved in '{folder}' is incomplete: {missing or 'its .arrow files'} missing.")
    if state.get("_indices_data_files"):
        raise CorpusError(f"the data set saved in '{folder}' holds a selection of rows: flatten_indices() it first.")
    return files


def saved_class_names(folder: Path) -> dict[str, list[str]]:
    """Names of class numbers as `dataset_info.json` gives them."""
    features = _json(folder / "dataset_info.json").get("features")
    return _names_in_features(features)


def _names_in_schema(schema: pa.Schema) -> dict[str, list[str]]:
    """The same from the metadata that `datasets` writes into Arrow and parquet files."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    try:
        info = json.loads(metadata) if metadata else {}
    except ValueError:
        return {}
    return _names_in_features(info.get("info", {}).get("features"))


def _names_in_features(features: object) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, feature in cast("dict[str, object]", features or {}).items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
        if isinstance(inner, dict) and isinstance(inner.get("names"), list):
            found[name] = [str(label) for label in inner["names"]]
    return found


def _json(path: Path) -> dict[str, object]:
    try:
        return cast("dict[str, object]", json.loads(path.read_text("utf-8")))
    except ValueError as error:
        raise CorpusError(f"'{path}' is not valid JSON ({error}).") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
