"""Saving a model to a disk that is full, and being killed while it is saved."""

import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from capsroute.classifier import CapsuleClassifier
from capsroute.store import StoreError
from tests.toy import SMALL, toy


@pytest.fixture(scope="module")
def model() -> CapsuleClassifier:
    return CapsuleClassifier(settings={**SMALL, "epochs": 2}).fit(*toy())


@pytest.fixture
def folder(model: CapsuleClassifier, tmp_path: Path) -> Path:
    return model.save_pretrained(tmp_path / "model")


def die_at(call: int) -> None:
    """Kill this process right before its so-manieth call (from 0) that opens, makes, moves or deletes a file."""
    left = iter(range(call, -1, -1))

    def mortal(event: str, _: object) -> None:
        if event in ("open", "os.mkdir", "os.rename", "os.chmod", "os.rmdir", "os.remove") and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(mortal)


def test_a_disk_that_is_really_full_keeps_what_was_there(model: CapsuleClassifier, folder: Path) -> None:
    """The operating system refuses, in whichever of the files the limit is met."""
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = sorted(len(content) for content in before.values())
    for limit in (10, sizes[0] + 1, sizes[-1] - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        try:
            with pytest.raises(StoreError, match="file too large; what was there is kept"):
                model.save_pretrained(folder, force=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
        assert [file.name for file in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("force", [False, True], ids=["new", "replaced"])
def test_a_kill_at_any_moment_of_saving_leaves_a_whole_model_or_none(
    force: bool, model: CapsuleClassifier, tmp_path: Path
) -> None:
    """A process saves and dies before the n-th call that changes the disk, for every n there is."""
    texts, _ = toy(5, seed=6)
    expected = model.predict_proba(texts)
    deaths, survived = 0, False
    while not survived:
        folder = tmp_path / str(deaths) / "model"
        if force:
            model.save_pretrained(folder)
        process = os.fork()
        if process == 0:
            die_at(deaths)
            model.save_pretrained(folder, force=force)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        survived = code == 0
        assert survived or code == -signal.SIGKILL
        if force or folder.exists():
            loaded = CapsuleClassifier.from_pretrained(folder)
            assert np.array_equal(loaded.predict_proba(texts), expected)
        model.save_pretrained(folder, force=True)  # and it can be saved there again
        assert np.array_equal(CapsuleClassifier.from_pretrained(folder).predict_proba(texts), expected)
        deaths += 1
    assert deaths > 10
