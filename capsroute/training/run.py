"""A run: the network with all that changes while it is trained, and the steps of which training consists."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import torch
from torch import Tensor, nn

from capsroute.training.bad_batch import BatchError, refusal_of
from capsroute.training.checkpoints import Checkpoint, CheckpointError, Checkpoints, State, check_same, writing
from capsroute.training.class_weights import WeightedLoss, balanced
from capsroute.training.config import TrainingConfig, half_precision, make_device
from capsroute.training.data import BatchSource, TextBatch, count_right, fingerprint
from capsroute.training.evaluate import Measures, evaluate, evaluating, forward
from capsroute.training.files import replace_text
from capsroute.training.history import HistoryFile, Row
from capsroute.training.interruption import Interrupted, StopRequest
from capsroute.training.losses import Loss, make_loss
from capsroute.training.optimizers import Optimizer, learning_rate_at
from capsroute.training.randomness import draws_nothing, random_state, seed_everything, set_random_state

WRITING_SHARE = 0.05
"""Checkpoints made by the clock take no more of the time than this."""


@dataclass(frozen=True)
class TrainingResult:
    """What came of a run."""

    history: tuple[Row, ...]
    best_epoch: int | None  # None without a validation part: the last weights were kept
    steps: int
    stopped_early: bool


class Run:
    """A training in progress. `train` in loop.py says in which order its methods are called."""

    def __init__(
        self,
        network: nn.Module,
        batches: BatchSource,
        valid: BatchSource | None,
        *,
        config: TrainingConfig,
        folder: str | Path | None,
        resume: bool,
    ) -> None:
        if resume and folder is None:
            raise ValueError("resume=True needs the folder of the run that is to go on.")
        if len(batches) == 0 or (valid is not None and len(valid) == 0):
            raise ValueError(f"there are no texts to {'train' if len(batches) == 0 else 'validate'} on.")
        self.config = config
        self.batches = batches
        self.valid = valid
        self.device = make_device(config.device)
        self.bfloat16 = half_precision(config.precision, self.device)
        self.network = network.to(self.device)
        self.optimizer = Optimizer(network, weight_decay=config.weight_decay, clip=config.clip)
        self.loss = _make_loss(config, batches, network).to(self.device)
        self.state = State()
        self.best: dict[str, Tensor] = {}
        seed_everything(config.seed)
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self._open_folder(self.folder, resume=resume)
        self.saved_at = time.monotonic()
        self.saved_step = self.steps_done
        self.saving_took = 0.0

    @property
    def steps_done(self) -> int:
        """Steps since the start of the run."""
        return (self.state.epoch - 1) * len(self.batches) + self.state.batch

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or the last ones were no better."""
        return self.state.finished or self.state.epoch > self.config.epochs or self._ran_out_of_patience

    @property
    def _ran_out_of_patience(self) -> bool:
        best, patience = self.state.best_epoch, self.config.patience
        return best is not None and patience is not None and len(self.state.history) - best >= patience

    def batches_left(self) -> Iterator[TextBatch]:
        """The batches of the epoch that have not been learned from."""
        if self.state.batch < len(self.batches):
            yield from self.batches.epoch(self.state.epoch, start=self.state.batch)
        if self.state.batch != len(self.batches):
            raise ValueError(
                f"epoch {self.state.epoch} ended after {self.state.batch} batches, but batches has the length "
                f"{len(self.batches)}: both must agree in every epoch."
            )

    def step(self, batch: TextBatch, *, waited: float) -> float:
        """Learn from a batch; its loss."""
        started = time.perf_counter()
        texts = len(batch.targets)
        if texts > self.config.batch_size:
            raise ValueError(
                f"a batch holds {texts} texts, but config.batch_size is {self.config.batch_size}: "
                "make the batches with it."
            )
        targets = batch.targets.to(self.device)
        with refusal_of(batch):
            scores, activation = forward(self.network, batch, bfloat16=self.bfloat16)
        loss = self.loss(activation, targets)
        self.optimizer.zero_grad()
        loss.backward()
        # All that is asked of the device is asked at once: each answer waits for the queue.
        wanted = (loss.detach(), self.optimizer.gradient_norm(), count_right(scores, targets))
        loss_is, norm, right = map(float, torch.stack([number.float() for number in wanted]).cpu())
        if not isfinite(loss_is):
            raise BatchError(f"the loss is {loss_is}", batch)
        if not isfinite(norm):
            raise BatchError(f"the norm of the gradient is {norm}", batch)
        self.optimizer.step(self._learning_rate(self.steps_done), norm=norm)

        state = self.state
        state.batch += 1
        state.texts += texts
        state.loss += loss_is * texts
        state.right += int(right)
        state.waited += waited
        state.seconds += waited + time.perf_counter() - started
        return loss_is

    def validate(self, stop: StopRequest) -> tuple[Measures | None, float]:
        """Measures on the validation part, None without one, and the seconds that took."""
        if self.valid is None:
            return None, 0.0
        started = time.perf_counter()
        with draws_nothing(self.device):
            batches = _until_stopped(self.valid.epoch(1), stop)
            measures = evaluate(self.network, batches, loss=self.loss, bfloat16=self.bfloat16)
        return measures, time.perf_counter() - started

    def end_epoch(self, measures: Measures | None, *, seconds: float) -> Row:
        """Write the row of the epoch, keep the weights if they are the best, and turn to the next epoch."""
        state = self.state
        row = Row(
            epoch=state.epoch,
            step=self.steps_done,
            loss=state.loss / state.texts,
            accuracy=state.right / state.texts,
            learning_rate=self._learning_rate(self.steps_done - 1),
            texts_per_second=state.texts / state.seconds,
            waiting=state.waited / state.seconds,
            seconds=state.seconds + seconds,
            valid_loss=measures and measures.loss,
            valid_accuracy=measures and measures.accuracy,
            valid_micro_f1=measures and measures.micro_f1,
            valid_macro_f1=measures and measures.macro_f1,
        )
        value = None if measures is None else measures.value(self.config.monitor)
        if value is not None and (state.best_value is None or value > state.best_value):
            state.best_epoch, state.best_value = state.epoch, value
            self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.loss.end_epoch()
        state.history.append(row)
        state.epoch, state.batch = state.epoch + 1, 0
        state.texts, state.loss, state.right, state.seconds, state.waited = 0, 0.0, 0, 0.0, 0.0
        if self.folder is not None:
            with writing(self.folder):
                self.history_file.append(row)
        return row

    def save_if_due(self, stop: StopRequest) -> None:
        """Save when it is time to; when asked to stop save and stop."""
        saved = self._save() if self.folder is not None and (stop.reason or self._due()) else None
        if stop.reason:
            raise Interrupted(reason=stop.reason, saved=saved, step=self.steps_done)

    def finish(self) -> TrainingResult:
        """Take the best weights and close the run."""
        if self.best:
            self.network.load_state_dict(self.best)
        if not self.state.finished:
            self.state.finished = True
            if self.folder is not None:
                self._save()
        return TrainingResult(
            history=tuple(self.state.history),
            best_epoch=self.state.best_epoch,
            steps=len(self.state.history) * len(self.batches),
            stopped_early=len(self.state.history) < self.config.epochs,
        )

    def _learning_rate(self, step: int) -> float:
        return learning_rate_at(step, steps=self.config.epochs * len(self.batches), config=self.config)

    def _due(self) -> bool:
        steps = self.config.checkpoint_steps
        if steps is not None and self.steps_done - self.saved_step >= steps:
            return True
        rest = max(self.config.checkpoint_seconds, self.saving_took / WRITING_SHARE)
        return time.monotonic() - self.saved_at >= rest

    def _save(self) -> Path:
        started = time.monotonic()
        tensors: dict[str, dict[str, Tensor]] = {"network": self.network.state_dict()}
        if not self.state.finished:
            tensors |= {
                "best": self.best,
                "optimizer": self.optimizer.tensors(),
                "loss": self.loss.state_dict(),
                "random": random_state(self.device),
            }
        path = self.checkpoints.save(Checkpoint(tensors, self.state, self.config, self.data))
        self.saved_at, self.saved_step = time.monotonic(), self.steps_done
        self.saving_took = self.saved_at - started
        return path

    def _open_folder(self, folder: Path, *, resume: bool) -> None:
        self.checkpoints = Checkpoints(folder)
        self.data = fingerprint(self.batches, self.valid)
        if resume:
            checkpoint = self.checkpoints.load()
            if checkpoint is not None:
                self._restore(checkpoint)
        elif self.checkpoints.exist():
            raise CheckpointError(
                f"{folder} holds a run already: go on with it by resume=True, or give another folder."
            )
        with writing(folder):
            replace_text(folder / "training.json", json.dumps(self.config.to_json(), indent=2) + "\n")
            self.history_file = HistoryFile(folder / "history.jsonl", self.state.history)

    def _restore(self, checkpoint: Checkpoint) -> None:
        check_same(checkpoint, config=self.config, data=self.data, network=self.network.state_dict())
        tensors = checkpoint.tensors
        self.state = checkpoint.state
        self.network.load_state_dict(tensors["network"])
        if not self.state.finished:
            self.best = {name: tensor.to(self.device) for name, tensor in tensors["best"].items()}
            self.optimizer.load_tensors(tensors["optimizer"])
            self.loss.load_state_dict(tensors["loss"])
            set_random_state(tensors["random"], self.device)


def _make_loss(config: TrainingConfig, batches: BatchSource, network: nn.Module) -> Loss:
    """The loss of the config, weighted if it says so."""
    loss = make_loss(config.loss, **config.loss_options)
    if config.class_weights == "none":
        return loss
    with evaluating(network):
        scores, _ = forward(network, next(batches.epoch(1)), bfloat16=False)
    return WeightedLoss(loss, balanced(batches, scores.shape[1]))


def _until_stopped(batches: Iterator[TextBatch], stop: StopRequest) -> Iterator[TextBatch]:
    """At least one batch, and no more once a stop has been asked for: the measures are then thrown away."""
    for batch in batches:
        yield batch
        if stop.reason:
            return
