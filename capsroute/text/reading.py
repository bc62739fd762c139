# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# (pyarrow ships no types)
"""`read_corpus`: a file, a folder, stdin or a data set -> a Corpus.

    path                 csv, tsv, jsonl, parquet, fastText, Arrow or plain lines; each also .gz and .zst
    folder               files of one format, or what `datasets` saved to disk
    "-"                  stdin, the format is seen from its first lines
    "hf:owner/name"      the Hub, with the package `datasets`; "hf:owner/name:test" for another part than "train"
    datasets.Dataset     the object itself

A source larger than 64 MB goes into an Arrow file that is memory-mapped. With `cache` this file is kept in that
folder and found again as long as the source is unchanged; without, it is a temporary one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa

from capsroute.checks import one_of
from capsroute.text.columns import TextNames, check_columns, choose
from capsroute.text.corpus import Corpus
from capsroute.text.files import FORMATS, FormatName, existing, files_of_folder
from capsroute.text.formats import open_reader
from capsroute.text.problems import BadRow, CorpusError, OnError, Problems
from capsroute.text.readers import Reader
from capsroute.text.rows import RowBuilder, one_label
from capsroute.text.storage import TableWriter, cached_table
from capsroute.text.tables import DatasetLike, dataset_reader, saved_class_names, saved_dataset_files

LabelUse = Literal["needed", "optional", "unread"]
"""Whether a source must have labels, may have them, or has them left alone because they are to be predicted."""
LABEL_USES: tuple[LabelUse, ...] = ("needed", "optional", "unread")

STDIN = "-"
RESERVED = ("text", "label", "id")


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read; see `read_corpus`."""

    text: TextNames | None = None
    label: str | None = None
    labels: LabelUse = "optional"
    on_error: OnError = "fail"
    format: FormatName | None = None
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("labels", self.labels, LABEL_USES)
        one_of("on_error", self.on_error, ("fail", "skip"))
        if self.format is not None:
            one_of("format", self.format, FORMATS)
        if self.labels == "unread" and self.label is not None:
            raise CorpusError(f"label names the column '{self.label}', but labels='unread' leaves labels alone.")
        taken = [name for name in self.keep if name in RESERVED]
        if taken:
            raise CorpusError(f"keep names '{taken[0]}', which a corpus has of its own: rename that column.")

    @property
    def given(self) -> tuple[str, ...]:
        """The column names that the user gave."""
        texts = self.text.split("+") if isinstance(self.text, str) else self.text or ()
        return (*texts, *([] if self.label is None else [self.label]))


Source = str | Path | DatasetLike | Mapping[str, DatasetLike]


def read_corpus(
    source: Source,
    *,
    text: TextNames | None = None,
    label: str | None = None,
    labels: LabelUse = "optional",
    on_error: OnError = "fail",
    format: FormatName | None = None,
    keep: Sequence[str] = (),
    cache: str | Path | None = None,
) -> Corpus:
    """Read labelled texts.

    Args:
        text: the column of the text, or several that are joined with a space (also as "title+description");
            a file without a header line has the columns "1", "2" and so on. None: guessed.
        label: the column of the label. None: guessed.
        labels: "needed" makes a source without labels an error, "unread" leaves labels alone.
        on_error: what a row that cannot be used does: fail, or be skipped and counted.
        format: where neither the file's ending nor its first lines tell it.
        keep: further columns to keep, as strings.
        cache: a folder for the Arrow file of a source over 64 MB.
    """
    options = ReadOptions(text, label, labels, on_error, format, tuple(keep))
    origin = _origin(source)
    home = cached_table(Path(cache), origin.files, repr(options)) if cache and origin.files else None
    if home and (facts := home.facts()) is not None:
        return _from_facts(home.table(), facts)
    writer = TableWriter(home.path if home else None)
    parts = _Parts(origin, options)
    try:
        for batch in parts:
            writer.add(batch)
        table = writer.finish()
    except BaseException:
        writer.discard()
        raise
    corpus = parts.corpus(table)
    if home and home.path.exists():
        home.keep(_facts(corpus))
    return corpus


def stream_corpus(source: Source, options: ReadOptions | None = None) -> Iterator[Corpus]:
    """The same in parts of a few thousand rows, none of which is kept: to predict without end."""
    parts = _Parts(_origin(source), options or ReadOptions())
    for batch in parts:
        yield parts.corpus(pa.Table.from_batches([batch]))


@dataclass(frozen=True)
class _Origin:
    """What a source turned out to be: files, stdin or an object."""

    name: str
    files: tuple[Path, ...] = ()
    dataset: DatasetLike | None = None
    saved: Path | None = None  # the folder of a saved data set


def _origin(source: Source) -> _Origin:
    if not isinstance(source, str | Path):
        return _Origin("dataset", dataset=_one_part(source))
    if source == STDIN:
        return _Origin("stdin")
    if not str(source):
        raise CorpusError("the name of the file to read is empty.")
    if isinstance(source, str) and source.startswith("hf:"):
        return _Origin(source, dataset=_from_hub(source))
    if isinstance(source, str) and "://" in source:
        raise CorpusError(f"'{source}' is an address: download it, and name the file.")
    path = existing(Path(source))
    if not path.is_dir():
        return _Origin(str(path), (path,))
    saved = saved_dataset_files(path)
    if saved:
        return _Origin(str(path), tuple(saved), saved=path)
    return _Origin(str(path), tuple(files_of_folder(path)))


def _one_part(source: DatasetLike | Mapping[str, DatasetLike]) -> DatasetLike:
    if isinstance(source, Mapping):  # a datasets.DatasetDict
        if len(source) == 1:
            return next(iter(source.values()))
        names = ", ".join(f"[{name!r}]" for name in source)
        raise CorpusError(f"the data set has several parts: choose one with {names}.")
    if not isinstance(source, DatasetLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CorpusError(
            f"a corpus is read from a path or a datasets.Dataset, and not from this: {type(source).__name__}."
        )
    return source


def _from_hub(source: str) -> DatasetLike:
    """A data set of the Hub; its rows lie in the cache of `datasets` afterwards."""
    if find_spec("datasets") is None:
        raise CorpusError(f"'{source}' needs the package 'datasets': pip install datasets.")
    name, colon, part = source.removeprefix("hf:").partition(":")
    if not name or (colon and not part):
        raise CorpusError(f"'{source}' is not of the form hf:owner/name or hf:owner/name:part.")
    try:
        return cast(DatasetLike, import_module("datasets").load_dataset(name, split=part or "train"))
    except Exception as error:  # whatever the network, the Hub or the data set's own code raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorpusError(f"'{source}' could not be loaded by 'datasets' ({reason}).") from error


class _Parts:
    """The batches of a source, and then what is known of it."""

    def __init__(self, origin: _Origin, options: ReadOptions) -> None:
        self.origin = origin
        self.options = options
        self.problems = Problems(options.on_error)
        self.builder: RowBuilder | None = None
        self.format = ""
        self.reached = ""  # how far a file was read when it turned out to be damaged

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.origin.dataset is not None:
            yield from self._batches(dataset_reader(self.origin.dataset))
            return
        for path in self.origin.files or (None,):
            self.reached = ""
            try:
                yield from self._of_file(path)
            except (OSError, pa.ArrowException) as error:
                reason = str(error).splitlines()[0]
                name = path or self.origin.name
                raise CorpusError(f"'{name}' is damaged or cut short{self.reached} ({reason}).") from error

    def _of_file(self, path: Path | None) -> Iterator[pa.RecordBatch]:
        format: FormatName | None = "arrow" if self.origin.saved else self.options.format
        with open_reader(path, format, self.options.given) as reader:
            if self.origin.saved:
                reader.class_names = {**reader.class_names, **saved_class_names(self.origin.saved)}
            yield from self._batches(reader)

    def _batches(self, reader: Reader) -> Iterator[pa.RecordBatch]:
        builder = self._prepared(reader)
        for chunk in reader.chunks(builder.wanted, self.problems):
            self.reached = f" after {reader.unit} {chunk.lines[-1]}" if chunk.lines else self.reached
            batch = builder.batch(chunk, reader.class_names, reader.name, reader.unit)
            if batch is not None:
                yield batch

    def _prepared(self, reader: Reader) -> RowBuilder:
        """The columns, chosen at the first file and demanded of the others."""
        self.format = reader.format
        if self.builder is None:
            options = self.options
            unread = options.labels == "unread"
            chosen = choose(reader, options.text, options.label, unread=unread, needed=options.labels == "needed")
            self.builder = RowBuilder(chosen, options.keep, self.problems)
        check_columns(reader.columns, self.builder.wanted, reader.name)
        return self.builder

    def corpus(self, table: pa.Table | None) -> Corpus:
        name, problems = self.origin.name, self.problems
        if table is None or self.builder is None:
            if problems.count:
                raise CorpusError(
                    f"'{name}' has no usable row: {problems.count} were skipped, the first: {problems.first[0]}."
                )
            raise CorpusError(f"'{name}' is empty: it has no rows.")
        chosen = self.builder.chosen
        return Corpus(
            one_label(table) if chosen.label is not None and not self.builder.several else table,
            file=name,
            format=self.format,
            files=tuple(map(str, self.origin.files)),
            text_column=chosen.text_name,
            label_column=chosen.label,
            guessed=chosen.guessed,
            skipped=problems.count,
            bad_rows=tuple(problems.first),
        )


def _facts(corpus: Corpus) -> dict[str, object]:
    """All of a corpus but its table, as JSON can hold it."""
    facts = {field.name: getattr(corpus, field.name) for field in fields(corpus) if field.name != "table"}
    bad_rows = [asdict(row) for row in corpus.bad_rows]
    return {**facts, "bad_rows": bad_rows, "one_label": corpus.has_labels and not corpus.several_labels}


def _from_facts(table: pa.Table, facts: Mapping[str, Any]) -> Corpus:
    stored: dict[str, Any] = {**facts}
    if stored.pop("one_label"):
        table = one_label(table)  # the file holds lists
    stored["bad_rows"] = tuple(BadRow(**row) for row in facts["bad_rows"])
    stored.update({name: tuple(facts[name]) for name in ("files", "guessed")})
    return Corpus(table, **stored)
