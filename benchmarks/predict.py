"""Predictions: many beside TextCNN, one alone, the time to load a model, the time to import the package."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import interleaved
from capsroute import CapsuleClassifier

WORDS = ("the", "film", "plot", "cast", "is", "was", "thin", "lovely", "dull", "bright", "sad", "slow", "but", "and")
IMPORTS = {
    "import capsroute": ("", "capsroute"),
    "import torch": ("", "torch"),
    "import sklearn.base, torch imported": ("import torch;", "sklearn.base"),
}
"""What is imported before the clock starts, and after."""


def run(*, smoke: bool = False) -> list[dict[str, Any]]:
    """All of them."""
    texts = [" ".join(WORDS[(at * step) % len(WORDS)] for step in range(1, 30)) for at in range(1, 65)] * 4
    labels = ["good", "bad"] * (len(texts) // 2)
    settings = {"epochs": 1, "patience": None}
    capsule = CapsuleClassifier(settings=settings).fit(texts, labels)
    rival = CapsuleClassifier(network="textcnn", settings={**settings, "word_dim": 200}).fit(texts, labels)
    many = texts * (1 if smoke else 16)
    rounds = 1 if smoke else 9
    bulk = interleaved(
        {"graph": lambda: capsule.predict(many), "textcnn": lambda: rival.predict(many)}, rounds=rounds
    )
    single = interleaved({"one": lambda: capsule.predict(texts[:1])}, rounds=3 if smoke else 200)["one"]
    rows = [
        {"question": "predict", "case": f"{name}, {len(many)} texts", "docs/s": len(many) / seconds}
        for name, seconds in bulk.items()
    ]
    rows.append({"question": "predict", "case": "graph beside textcnn", "times": bulk["graph"] / bulk["textcnn"]})
    rows.append({"question": "predict", "case": "one short text, median", "ms": 1e3 * single})
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        capsule.save_pretrained(model)
        load = (
            "import torch, time; a = time.perf_counter(); from capsroute import CapsuleClassifier; "
            f"CapsuleClassifier.from_pretrained({str(model)!r}); print(time.perf_counter() - a)"
        )
        rows.append(
            {"question": "predict", "case": "load a model, torch imported", "ms": 1e3 * _printed(load, rounds)}
        )
    for name, (before, module) in IMPORTS.items():
        timing = f"import time; {before} a = time.perf_counter(); import {module}; print(time.perf_counter() - a)"
        rows.append({"question": "predict", "case": name, "ms": 1e3 * _printed(timing, rounds)})
    return rows


def _printed(code: str, rounds: int) -> float:
    """Median of the seconds that fresh processes print."""
    command = [sys.executable, "-c", code]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(rounds))
    return statistics.median(float(done.stdout) for done in runs)
