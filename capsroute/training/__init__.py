"""Training: a network, batches and a config in; the best weights, a history and checkpoints out.

config.py         every setting               losses.py          what is made small
loop.py, run.py   the loop and its steps      optimizers.py      how weights move
checkpoints.py    stop and go on              interruption.py    by whom it is stopped
evaluate.py       scores and measures         metrics.py         accuracy, F1, calibration
history.py        rows, file, curves          progress.py        what a person sees
hold_out.py       a part to validate on       thresholds.py      from when on a label is given
calibration.py    scores made probabilities
"""

from capsroute.training.bad_batch import BatchError
from capsroute.training.checkpoints import CheckpointError, Checkpoints
from capsroute.training.config import TrainingConfig
from capsroute.training.evaluate import evaluate, predict
from capsroute.training.history import draw_curves, read_history
from capsroute.training.hold_out import hold_out
from capsroute.training.interruption import Interrupted
from capsroute.training.loggers import TensorBoardLogger, WandbLogger
from capsroute.training.loop import train
from capsroute.training.randomness import seed_everything
from capsroute.training.run import TrainingResult

__all__ = [
    "BatchError",
    "CheckpointError",
    "Checkpoints",
    "Interrupted",
    "TensorBoardLogger",
    "TrainingConfig",
    "TrainingResult",
    "WandbLogger",
    "draw_curves",
    "evaluate",
    "hold_out",
    "predict",
    "read_history",
    "seed_everything",
    "train",
]
