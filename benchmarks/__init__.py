"""Speed and memory, as ratios to a textbook implementation and to what this machine can do at most.

One file a question; each has `run(smoke)`, which measures, and returns rows. `capsroute bench` runs them, prints the
rows as a table and appends them to results/bench/, with the machine, its own limits and the commit.

    routing      a routing layer, forward and backward, against the same layer as a textbook has it
    step         a training step at the paper's sizes, against the plain reading and the machine's matrix product
    corpus       documents a second on real texts, and how long a step waits for them
    vocabulary   does a step cost more with more words?
    classes      does it cost more than in proportion with more classes?
    predict      bulk and single predictions, loading, importing

Times are medians of interleaved rounds: what disturbs the machine disturbs all cases alike. They are never a test.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

QUESTIONS = ("routing", "step", "corpus", "vocabulary", "classes", "predict")


def run(
    questions: Sequence[str],
    *,
    out: Path | None,
    smoke: bool = False,
    threads: int | None = None,
    data: Path | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Measure each question; with `out`, append its rows and draw its curve there."""
    import torch

    from benchmarks.measure import machine_limits
    from benchmarks.report import CURVES, draw, write_rows
    from capsroute.machine import provenance

    # Places that are wrong show before anything is measured.
    if "corpus" in questions:
        import_module("benchmarks.corpus").find(data)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        facts = {**provenance(), **machine_limits(smoke=smoke)}
        for question in questions:
            module = import_module(f"benchmarks.{question}")
            rows = module.run(smoke=smoke, folder=data) if question == "corpus" else module.run(smoke=smoke)
            if out is not None:
                write_rows(rows, facts, out / f"{question}.jsonl")
                if question in CURVES:
                    draw(rows, out / f"{question}.png")
            yield rows
    finally:
        torch.set_num_threads(before)
