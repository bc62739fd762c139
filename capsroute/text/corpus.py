# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportAttributeAccessIssue=false
# (pyarrow ships no types)
"""Labelled texts as an Arrow table: what `read_corpus` gives (reading.py) and all else takes.

    text     large_string
    label    string, or list<string> where texts may have several; absent if the source has none
    id       string, where the source has such a column

Nothing is dropped silently: which columns were guessed, how many rows were skipped and why, and how many texts are
empty is part of a corpus.

>>> corpus = Corpus.of(["good", "bad", ""], ["pos", "neg", "neg"])
>>> len(corpus), corpus.labels, corpus.empty, corpus.take([2, 0]).texts()
(3, ['pos', 'neg', 'neg'], 1, ['', 'good'])
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from capsroute.text.columns import Chosen
from capsroute.text.problems import BadRow, CorpusError, Problems
from capsroute.text.readers import CHUNK_ROWS, Chunk
from capsroute.text.rows import RowBuilder, one_label
from capsroute.text.storage import TableWriter, take_rows

Rows = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with their labels, if they have any.

    Args:
        file: what was read, as it is shown to the user.
        format: its format; "memory" for lists.
        text_column: where the text came from; "title+description" for two columns that were joined.
        guessed: which of "text" and "label" were guessed and not given.
        skipped: rows left out because they could not be used; `bad_rows` are the first ten of them.
    """

    table: pa.Table
    file: str
    format: str
    files: tuple[str, ...] = ()
    text_column: str = "text"
    label_column: str | None = None
    guessed: tuple[str, ...] = ()
    skipped: int = 0
    bad_rows: tuple[BadRow, ...] = ()

    @staticmethod
    def of(
        texts: Sequence[str],
        labels: Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        file: str = "memory",
    ) -> "Corpus":
        """A corpus of lists."""
        columns = [texts, *([] if labels is None else [labels]), *([] if ids is None else [ids])]
        if any(len(column) != len(texts) for column in columns):
            raise CorpusError(
                f"lists of one length are needed, but here are {' and '.join(str(len(c)) for c in columns)}."
            )
        chosen = Chosen(("text",), None if labels is None else "label", None if ids is None else "id", ())
        builder = RowBuilder(chosen, (), Problems("fail"))
        writer = TableWriter()
        for start in range(0, max(len(texts), 1), CHUNK_ROWS):
            cells: list[list[object]] = [list(column[start : start + CHUNK_ROWS]) for column in columns]
            lines = list(range(start + 1, start + 1 + len(cells[0])))
            batch = builder.batch(Chunk(lines, cells), {}, "the lists given", "item")
            if batch is not None:
                writer.add(batch)
        table = writer.finish()
        if table is None:
            raise CorpusError("there are no texts.")
        if labels is not None and not builder.several:
            table = one_label(table)
        return Corpus(table, file, "memory", label_column=None if labels is None else "label")

    def __len__(self) -> int:
        return self.table.num_rows

    def __iter__(self) -> Iterator[str]:
        """The texts, read block by block."""
        for start in range(0, len(self), CHUNK_ROWS):
            yield from self.texts(start, start + CHUNK_ROWS)

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """The texts of the rows [start, stop)."""
        column = self.table.column("text")
        return column.slice(start, None if stop is None else max(0, stop - start)).to_pylist()

    @property
    def has_labels(self) -> bool:
        return "label" in self.table.column_names

    @property
    def several_labels(self) -> bool:
        """Whether a text may have several labels, or none."""
        return self.has_labels and pa.types.is_list(self.table.schema.field("label").type)

    @property
    def labels(self) -> list[str] | list[list[str]]:
        """The label of each row, or its list of labels."""
        if not self.has_labels:
            raise CorpusError(f"'{self.file}' has no label column: name it with label=... (--label).")
        return self.table.column("label").to_pylist()

    def column(self, name: str) -> list[str]:
        """Another column that was kept, such as the id."""
        if name not in self.table.column_names:
            raise CorpusError(f"the corpus of '{self.file}' has no column '{name}': name it in keep=... on reading.")
        return self.table.column(name).to_pylist()

    @property
    def empty(self) -> int:
        """How many texts hold nothing but white space."""
        return sum(
            pc.sum(pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(chunk)), 0)).as_py() or 0
            for chunk in self.table.column("text").chunks
        )

    def relabel(self, names: Mapping[str, str]) -> "Corpus":
        """The same texts with labels called otherwise; a label that has no other name keeps its own."""
        if self.several_labels:
            return self._with_labels([[names.get(name, name) for name in row] for row in self.labels])
        return self._with_labels([names.get(name, name) for name in cast("list[str]", self.labels)])

    def only_labels(self, names: Collection[str]) -> "Corpus":
        """The same texts, of several labels each, without their other labels."""
        if not self.several_labels:
            raise CorpusError(f"'{self.file}' has one label a text: no label can be taken off.")
        return self._with_labels([[name for name in row if name in names] for row in self.labels])

    def _with_labels(self, labels: list[str] | list[list[str]]) -> "Corpus":
        at = self.table.schema.get_field_index("label")
        column = pa.array(labels, self.table.schema.field(at).type)
        return replace(self, table=self.table.set_column(at, "label", column))

    def take(self, rows: Rows) -> "Corpus":
        """These rows, in this order."""
        at = np.asarray(rows, dtype=np.int64)
        if at.size and not (at.min() >= 0 and at.max() < len(self)):
            raise IndexError(f"rows must lie in [0, {len(self)}), but reach from {at.min()} to {at.max()}.")
        return replace(self, table=take_rows(self.table, at))

    def describe(self) -> str:
        """One line that says what was read and what was guessed."""
        label = "no labels" if self.label_column is None else f"label from '{self.label_column}'"
        text = f"text from '{self.text_column}'"
        text, label = (
            part + (" (guessed)" if name in self.guessed else "") for name, part in (("text", text), ("label", label))
        )
        skipped = f"; {self.skipped:,} rows skipped, the first: {self.bad_rows[0]}" if self.skipped else ""
        return f"{self.file}: {len(self):,} rows of {self.format}, {text}, {label}{skipped}"
