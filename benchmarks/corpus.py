"""Real texts: how fast they become batches, how long steps wait for them, documents a second beside the plain step.

The texts are AG News where its files are given (`--data`), else the VADER snippets, which come in a package. The
plain step reads texts padded to 200 tokens, which is what the public code of capsule networks does.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.step import plain_case, train_on
from capsroute.plan import make_plan
from capsroute.text.batches import Batches
from capsroute.text.catalog import SOURCES
from capsroute.text.sources import find_files, load_source
from capsroute.text.tokens import Tokenizer
from capsroute.training.loop import timed
from capsroute.training.losses import make_loss
from capsroute.training.optimizers import Optimizer

PADDED = 200


def run(*, smoke: bool = False, folder: Path | None = None) -> list[dict[str, Any]]:
    """Tokens and batches alone, then steps with them."""
    texts, labels, name = _texts(folder)
    if smoke:
        texts, labels = texts[:200], labels[:200]
    started = time.perf_counter()
    tokenizer = Tokenizer.train(texts)
    learned = time.perf_counter()
    encoded = tokenizer.encode(texts).limited(PADDED)
    split = time.perf_counter()
    classes, targets = np.unique(labels, return_inverse=True)
    batches = Batches(encoded, torch.as_tensor(targets), batch_size=32)
    made = time.perf_counter()
    for _ in batches.epoch(1):
        pass
    rate = len(texts) / (time.perf_counter() - made)
    plain_step = plain_case(20 if smoke else PADDED)
    trained, waited, plain = _steps(batches, len(tokenizer), len(classes), plain_step, steps=3 if smoke else 200)
    facts = {"question": "corpus", "corpus": name, "mean tokens": float(encoded.lengths.mean())}
    return [
        {**facts, "case": "words learned", "docs/s": len(texts) / (learned - started)},
        {**facts, "case": "split into tokens", "docs/s": len(texts) / (split - learned)},
        {**facts, "case": "made into batches", "docs/s": rate},
        {**facts, "case": "graph steps, paper's sizes", "docs/s": trained, "waiting %": 100 * waited},
        {**facts, "case": f"plain steps, padded to {PADDED}", "docs/s": 32 / plain},
        {**facts, "case": "faster than plain", "times": trained * plain / 32},
    ]


def _steps(
    batches: Batches, vocabulary: int, classes: int, plain_step: Callable[[], None], *, steps: int
) -> tuple[float, float, float]:
    """Documents a second of training, the share of its time that it waited for batches, and the median seconds of
    plain steps, one in between every tenth of ours."""
    torch.manual_seed(0)
    network = make_plan("paper").build(vocabulary=vocabulary, classes=classes, max_length=PADDED)
    loss, optimizer = make_loss("margin"), Optimizer(network, weight_decay=0.0, clip=1.0)
    waiting = working = documents = 0.0
    plain: list[float] = []
    for number, (batch, waited) in enumerate(islice(timed(batches.epoch(1)), steps)):
        if number % 10 == 0:
            plain.append(_seconds(plain_step))
        working += _seconds(partial(train_on, network, loss, optimizer, batch.ids, batch.targets))
        waiting += waited
        documents += len(batch.ids)
    seconds = working + waiting
    return documents / seconds, waiting / seconds, statistics.median(plain)


def _seconds(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def find(folder: Path | None) -> str:
    """The name of the corpus, whose files are there, or an error that says where to get them."""
    name = "vader" if folder is None else "ag_news_26k"
    find_files(SOURCES[name], folder)
    return name


def _texts(folder: Path | None) -> tuple[list[str], list[Any], str]:
    name = find(folder)
    corpus = load_source(name, folder).train
    return list(corpus.texts()), list(corpus.labels), name
