# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# (pyarrow ships no types)
"""An Arrow table that grows batch by batch: in memory while it is small, else in a file that is memory-mapped.

The file is Arrow IPC. It is written under another name and renamed when it is complete; a temporary one is unlinked
as soon as it is mapped, so that nothing is left behind whatever happens.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from capsroute.text.problems import CorpusError

IN_MEMORY = 64 << 20
"""Bytes above which a table goes to a file."""
BLOCK = 8192


class TableWriter:
    """Collects batches of one schema.

    Args:
        keep: the file to keep a large table in; None for a temporary file.
    """

    def __init__(self, keep: Path | None = None) -> None:
        self._keep = keep
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._path: Path | None = None
        self._file: pa.RecordBatchFileWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        try:
            if self._file is None:
                self._batches.append(batch)
                self._size += batch.nbytes
                if self._size > IN_MEMORY:
                    self._spill(batch.schema)
            else:
                self._file.write_batch(batch)
        except OSError as error:
            self.discard()
            raise self._unwritable(error) from error

    def finish(self) -> pa.Table | None:
        """The table; None if nothing was added."""
        if self._file is None:
            return pa.Table.from_batches(self._batches) if self._batches else None
        assert self._path is not None
        try:
            self._file.close()
            if self._keep:
                os.replace(self._path, self._keep)
            return mapped(self._keep or self._path)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Drop what was written and is not kept."""
        if self._path:
            with suppress(OSError):  # Windows keeps a mapped file; the system clears its folder of temporary files
                self._path.unlink(missing_ok=True)

    def _spill(self, schema: pa.Schema) -> None:
        if self._keep:
            self._keep.parent.mkdir(parents=True, exist_ok=True)
        folder = self._keep.parent if self._keep else None
        handle, name = tempfile.mkstemp(prefix="capsroute-", suffix=".arrow", dir=folder)
        os.close(handle)
        self._path = Path(name)
        self._file = pa.ipc.new_file(name, schema)
        for batch in self._batches:
            self._file.write_batch(batch)
        self._batches = []

    def _unwritable(self, error: OSError) -> CorpusError:
        folder = self._keep.parent if self._keep else Path(tempfile.gettempdir())
        return CorpusError(
            f"a corpus too large for memory cannot be kept in '{folder}' ({error.strerror or error}): "
            "name a folder with room with cache=..."
        )


def mapped(path: Path) -> pa.Table:
    """An Arrow file as a table that stays on disk."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def take_rows(table: pa.Table, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    """Rows of a table in the order given, block by block, so that neither table needs to fit into memory."""
    batches = table.to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    writer = TableWriter()
    for begin in range(0, len(rows), BLOCK):
        writer.add(_block(batches, starts, rows[begin : begin + BLOCK]))
    taken = writer.finish()
    return table.slice(0, 0) if taken is None else taken


def _block(batches: Sequence[pa.RecordBatch], starts: np.ndarray, rows: np.ndarray) -> pa.RecordBatch:  # type: ignore[type-arg]
    homes = np.searchsorted(starts, rows, side="right") - 1
    parts: list[pa.RecordBatch] = []
    order: list[np.ndarray] = []  # type: ignore[type-arg]
    for home in np.unique(homes):
        here = np.flatnonzero(homes == home)
        parts.append(batches[home].take(pa.array(rows[here] - starts[home])))
        order.append(here)
    together = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return together.take(pa.array(np.argsort(np.concatenate(order))))


@dataclass(frozen=True)
class CachedTable:
    """A large table kept on disk; `facts` lie beside it and are written last, so they say that it is complete."""

    path: Path

    def facts(self) -> dict[str, object] | None:
        """What is known of the table, None if there is none."""
        try:
            return json.loads(self._facts_path().read_text("utf-8")) if self.path.exists() else None
        except (OSError, ValueError):
            return None

    def table(self) -> pa.Table:
        return mapped(self.path)

    def keep(self, facts: Mapping[str, object]) -> None:
        begun = self.path.with_suffix(".tmp")
        begun.write_text(json.dumps(facts), "utf-8")
        os.replace(begun, self._facts_path())

    def _facts_path(self) -> Path:
        return self.path.with_suffix(".json")


def cached_table(folder: Path, files: Sequence[Path], options: str) -> CachedTable:
    """Where the table of these files is kept: in another place when a file, or what is read of it, changes."""
    state = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    key = sha256(json.dumps([1, state, options]).encode()).hexdigest()[:16]
    return CachedTable(folder / f"{files[0].name.split('.')[0]}-{key}.arrow")
