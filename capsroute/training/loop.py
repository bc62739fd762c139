"""The training loop: batches in, trained weights out, able to stop at any moment and to go on as if it had not.

    seed_everything(config.seed)
    network = CapsuleNetwork(...)
    result = train(network, batches, config=config, valid=valid, folder="runs/first")

What a step, a validation and a checkpoint are stands in run.py.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from torch import nn

from capsroute.training.bad_batch import BatchError
from capsroute.training.config import TrainingConfig
from capsroute.training.data import BatchSource, TextBatch
from capsroute.training.interruption import stop_requests
from capsroute.training.loggers import Logger
from capsroute.training.optimizers import sparse_gradients
from capsroute.training.progress import ProgressName, shown
from capsroute.training.run import Run, TrainingResult


def train(
    network: nn.Module,
    batches: BatchSource,
    *,
    config: TrainingConfig,
    valid: BatchSource | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: ProgressName = "auto",
    loggers: Sequence[Logger] = (),
    stop_event: Event | None = None,
) -> TrainingResult:
    """Train a network in place: afterwards it has the best weights and is in evaluation mode.

    Args:
        batches: the texts to learn from. Whoever makes them gives them config.batch_size and config.seed.
        valid: the texts to choose the best epoch on, and to stop early.
        folder: where checkpoints, history.jsonl and training.json go; None: nothing is written.
        resume: go on from the checkpoint in the folder, or start if there is none. A finished run is not run again.
        loggers: get every row of the history, and are closed at the end.
        stop_event: set from another thread, it stops the run as Ctrl-C does.

    Raises:
        Interrupted: by SIGINT, SIGTERM or the event; the run is saved.
        BatchError: the loss or the gradient of a batch is not finite.
        CheckpointError: the folder cannot be written to, or holds something else than this run.
    """
    run = Run(network, batches, valid, config=config, folder=folder, resume=resume)
    try:
        with (
            stop_requests(stop_event) as stop,
            sparse_gradients(network),
            shown(progress, epochs=config.epochs, batches=len(batches)) as view,
        ):
            while not run.over:
                network.train()
                for batch, waited in timed(run.batches_left()):
                    loss = run.step(batch, waited=waited)
                    view.step(run.state.epoch, run.state.batch, loss)
                    run.save_if_due(stop)
                measures, seconds = run.validate(stop)
                run.save_if_due(stop)  # asked to stop, it has measured on a part of the texts: resumed, on all
                row = run.end_epoch(measures, seconds=seconds)
                view.epoch(row, best=run.state.best_epoch == row.epoch)
                for logger in loggers:
                    logger.log(row)
                run.save_if_due(stop)
        return run.finish()
    except BatchError as error:
        error.keep(run.folder, epoch=run.state.epoch, step=run.steps_done)
        raise
    finally:
        network.eval()
        for logger in loggers:
            logger.close()


def timed(batches: Iterator[TextBatch]) -> Iterator[tuple[TextBatch, float]]:
    """Each batch with the seconds that it was waited for."""
    while True:
        started = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            return
        yield batch, time.perf_counter() - started
