"""Files that are whole or not there: written beside their place, brought to the disk, then renamed into it.

Tensors go into safetensors files that end with their own checksum, a tensor named `sha256` over all bytes before it.
Any safetensors reader opens them; ours also notices a byte that changed.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

CHECKSUM = "sha256"
BLOCK = 1 << 22
DTYPES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


class BrokenFileError(ValueError):
    """A file that is not what was written: cut short, or changed."""


def replace_file(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file so that its place holds the old one or the new one, whole, whenever the machine stops."""
    draft = path.with_name(path.name + ".draft")
    try:
        with draft.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def replace_text(path: Path, text: str) -> None:
    """A text file in one piece."""

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    replace_file(path, write)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Tensors, and plain values about them, into one file.

    Written here rather than by the safetensors library because that gives no hold on the file to sync it, reports a
    full disk as text, and would need the checksum before the first byte.
    """
    # Wide numbers first, as the format's own writer does: all lie at multiples of their size.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": {"about": json.dumps(about, allow_nan=False)}}
    offset = 0
    for name in names:
        header[name], offset = _entry(tensors[name], offset)
    header[CHECKSUM], offset = _entry(torch.zeros(hashlib.sha256().digest_size, dtype=torch.uint8), offset)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)

    def write(file: BinaryIO) -> None:
        digest = hashlib.sha256()
        for piece in (len(head).to_bytes(8, "little"), head, *(_raw(tensors[name]) for name in names)):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())

    replace_file(path, write)


def read_about(path: Path) -> dict[str, Any]:
    """The plain values of a file, without its tensors and without a look at its checksum."""
    try:
        opened: Any = safe_open(path, framework="pt")
        with opened as file:
            metadata: dict[str, str] = file.metadata() or {}
        about = json.loads(metadata["about"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise BrokenFileError(f"{path} is cut short or is no file of capsroute's ({error}).") from error
    if not isinstance(about, dict):
        raise BrokenFileError(f"{path} is no file of capsroute's.")
    return about  # pyright: ignore[reportUnknownVariableType]


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, once its checksum has been found right."""
    digest, size = hashlib.sha256(), path.stat().st_size - hashlib.sha256().digest_size
    with path.open("rb") as file:
        for block in _blocks(file, size):
            digest.update(block)
        if file.read() != digest.digest():
            raise BrokenFileError(f"{path} has been changed or damaged: its checksum is wrong.")
    opened: Any = safe_open(path, framework="pt")
    with opened as file:
        return {name: file.get_tensor(name) for name in file.keys() if name != CHECKSUM}  # noqa: SIM118


def _entry(tensor: Tensor, offset: int) -> tuple[dict[str, Any], int]:
    end = offset + tensor.numel() * tensor.element_size()
    return {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}, end


def _raw(tensor: Tensor) -> memoryview:
    """The bytes of a tensor; no copy where it lies in one piece on the CPU."""
    flat: Any = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return memoryview(flat)


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (block := file.read(min(BLOCK, size))):
        size -= len(block)
        yield block


def _sync_folder(folder: Path) -> None:
    """Bring a rename to the disk. Only POSIX lets a folder be opened for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
