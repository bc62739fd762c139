"""Files come back as they were written, a change is noticed, and they are on the disk before they are in place."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from capsroute.training.files import BrokenFileError, load_tensors, read_about, replace_text, save_tensors


def test_any_byte_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "tensors.safetensors"
    save_tensors(path, {"a": torch.arange(3.0)}, {"b": 1})
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        with pytest.raises(BrokenFileError):
            load_tensors(path)


def test_tensors_of_every_kind_come_back(tmp_path: Path) -> None:
    tensors: dict[str, Tensor] = {
        "long": torch.tensor(7),
        "double": torch.rand(2, 3, dtype=torch.float64),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "float": torch.rand(3, 4).T,  # not in one piece
        "brain": torch.rand(3).bfloat16(),
        "bool": torch.tensor([True, False]),
        "empty": torch.zeros(0, 4),
    }
    path = tmp_path / "tensors.safetensors"
    save_tensors(path, tensors, {"text": "ü", "number": 0.1})
    assert read_about(path) == {"text": "ü", "number": 0.1}
    for found in (load_tensors(path), load_file(path)):  # ours and the library's own
        assert all(torch.equal(found[name], tensors[name]) for name in tensors)
        assert all(found[name].dtype == tensors[name].dtype for name in tensors)


def test_a_file_is_on_the_disk_before_it_is_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that loses power keeps a rename, but not what the renamed file holds, unless that came first."""
    path, calls = tmp_path / "file", list[str]()
    path.write_text("old")
    sync, replace = os.fsync, os.replace

    def watched_sync(handle: int) -> None:
        what = os.fstat(handle)
        calls.append(f"sync {what.st_size} bytes" if stat.S_ISREG(what.st_mode) else "sync folder")
        sync(handle)

    def watched_replace(*arguments: Any) -> None:
        assert path.read_text() == "old"
        calls.append("replace")
        replace(*arguments)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_replace)
    replace_text(path, "newer")
    assert calls == ["sync 5 bytes", "replace", "sync folder"]
    assert path.read_text() == "newer"
