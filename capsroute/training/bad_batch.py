"""The batch on which training broke down, kept for a look."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from capsroute.training.data import TextBatch
from capsroute.training.files import save_tensors

NAME = "bad_batch.safetensors"


class BatchError(ValueError):
    """A batch that cannot be learned from: its loss or gradient is not finite, or the network refuses it.

    Args:
        reason: what is wrong, without a full stop.
        batch: its texts.
    """

    def __init__(self, reason: str, batch: TextBatch) -> None:
        self.reason = reason
        self.batch = batch
        self.place = ""
        self.saved: Path | None = None
        super().__init__(reason)

    def __str__(self) -> str:
        where = f"the batch is in {self.saved}" if self.saved else "the batch is in this error's `batch`"
        return (
            f"training stopped{self.place}: {self.reason} ({where}); "
            "if the texts are as they should be, try a lower learning_rate or a smaller clip."
        )

    def keep(self, folder: Path | None, *, epoch: int, step: int) -> None:
        """Say where it happened, and write ids, targets and rows into the folder of the run."""
        self.place = f" in epoch {epoch} after {step} steps"
        if folder is None:
            return
        batch = self.batch
        tensors = {"ids": batch.ids, "targets": batch.targets, "rows": torch.tensor(batch.rows)}
        about = {"epoch": epoch, "step": step, "reason": self.reason, "rows": batch.rows.tolist()}
        with suppress(OSError):  # a full disk must not hide what happened; the message says where the batch is
            save_tensors(folder / NAME, tensors, about)
            self.saved = folder / NAME


@contextmanager
def refusal_of(batch: TextBatch) -> Generator[None, None, None]:
    """Name the batch to which a network says no: on the CPU capsule networks look for NaN themselves."""
    try:
        yield
    except ValueError as error:
        raise BatchError(str(error).rstrip("."), batch) from error
