# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# (pyarrow ships no types)
"""From the name a user gives to open byte streams: which files, how they are compressed, in which format.

Compression is read from the first bytes (gzip 1f 8b, zstd 28 b5 2f fd), the format from the file's ending, and from
its first lines where the ending does not say.
"""

import io
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Literal, get_args

import pyarrow as pa

from capsroute.text.problems import CorpusError, did_you_mean

FormatName = Literal["csv", "tsv", "jsonl", "parquet", "arrow", "fasttext", "lines"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)

ENDINGS: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
}
"""`.txt` and all others are told by their first lines."""

FOREIGN = {
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or save it as csv",
    b"BZh91AY&SY": "packed with bzip2: unpack it, or pack it with gzip or zstd",
    b"\xfd7zXZ": "packed with xz: unpack it, or pack it with gzip or zstd",
}
"""First bytes of what is met and not read."""

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
HEAD = 1 << 18
"""Bytes that are looked at to tell a format, and that are read at a time."""

TRAIN_PARTS = ("train",)
TEST_PARTS = ("test", "valid", "validation", "dev")


def ending_format(path: Path) -> FormatName | None:
    """The format that a file's name tells."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    return ENDINGS.get(suffixes[-1]) if suffixes else None


def existing(path: Path) -> Path:
    """The path, or an error that names the nearest file of its folder."""
    try:
        if path.exists():
            return path
        if path.is_symlink():
            raise CorpusError(f"'{path}' is a link that leads to no file.")
        folder = path.parent
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise CorpusError(f"'{path}' cannot be opened: {error.strerror}.") from error
    if not folder.is_dir():
        raise CorpusError(f"there is no file '{path}': the folder '{folder}' does not exist.")
    raise CorpusError(f"there is no file '{path}'{did_you_mean(path.name, names) or '.'}")


def files_of_folder(folder: Path) -> list[Path]:
    """The data files of a folder by name; files of another kind (a README, a list of classes) are left alone."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] not in "._")
    known = [path for path in files if ending_format(path)]
    found = known or [path for path in files if ".txt" in path.suffixes]
    if not found:
        raise CorpusError(
            f"the folder '{folder}' holds no data file: expected are files ending in {', '.join(ENDINGS)} or .txt, "
            "each also with .gz or .zst."
        )
    formats = {format for path in found if (format := ending_format(path))}
    if len(formats) > 1:
        raise CorpusError(f"the folder '{folder}' mixes the formats {', '.join(sorted(formats))}: name one file.")
    _refuse_parts(folder, found)
    return found


def _refuse_parts(folder: Path, files: list[Path]) -> None:
    """A folder of train and test files is not one corpus."""
    train = [path.name for path in files if path.name.lower().startswith(TRAIN_PARTS)]
    test = [path.name for path in files if path.name.lower().startswith(TEST_PARTS)]
    if train and test:
        raise CorpusError(
            f"the folder '{folder}' holds parts for training and testing ('{train[0]}', '{test[0]}'): name one file."
        )


@dataclass(frozen=True)
class Opened:
    """A file being read."""

    name: str  # as errors show it
    stream: io.BufferedReader  # its bytes, decompressed
    path: Path | None  # where they lie on disk as they are; None for compressed files and stdin

    def head(self) -> bytes:
        """The first bytes, which stay unread."""
        return self.stream.peek(HEAD)[:HEAD]


@contextmanager
def open_bytes(path: Path | None) -> Generator[Opened, None, None]:
    """A file, or stdin for None."""
    with ExitStack() as stack:
        name = "stdin" if path is None else str(path)
        raw: Any = _FirstLine(sys.stdin.buffer) if path is None else _raw(path)
        stream = stack.enter_context(io.BufferedReader(raw, HEAD))
        head = stream.peek(4)
        kind = next((kind for magic, kind in COMPRESSIONS.items() if head.startswith(magic)), None)
        if kind:
            unpacked = pa.CompressedInputStream(pa.PythonFile(stream, "r"), kind)
            yield Opened(name, io.BufferedReader(unpacked, HEAD), None)
        else:
            yield Opened(name, stream, path)


def _raw(path: Path) -> io.RawIOBase:
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise CorpusError(f"'{path}' cannot be opened: {error.strerror}.") from error


@contextmanager
def open_seekable(opened: Opened) -> Generator[pa.NativeFile, None, None]:
    """The same for formats that are not read from front to back: what is no plain file is copied into one."""
    if opened.path:
        with pa.memory_map(str(opened.path)) as file:
            yield file
    else:
        with tempfile.TemporaryFile() as copy:
            copyfileobj(opened.stream, copy, HEAD)
            copy.seek(0)
            yield pa.PythonFile(copy, "r")


Pipe = BinaryIO | io.BufferedIOBase


class _FirstLine(io.RawIOBase):
    """A pipe whose first read gives at least one line, however slowly it is written: enough to tell the format."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.begun = b""
        while b"\n" not in self.begun and len(self.begun) < HEAD and (more := _read_some(pipe)):
            self.begun += more

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        view = memoryview(buffer)
        data = self.begun[: len(view)] if self.begun else _read_some(self.pipe, len(view))
        self.begun = self.begun[len(data) :]
        view[: len(data)] = data
        return len(data)


def _read_some(pipe: Pipe, size: int = HEAD) -> bytes:
    """What a pipe has, without waiting for more."""
    return pipe.read1(size) if isinstance(pipe, io.BufferedReader) else pipe.read(size)
