"""Stopping a run from outside: by Ctrl-C, by a termination signal, or from another thread."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A run that was asked to stop and did, between two steps.

    A KeyboardInterrupt, so that a caller that skips over failed fits (a grid search) stops too.

    Args:
        reason: "SIGINT", "SIGTERM" or "stop_event".
        saved: the checkpoint to go on from; None without a folder.
        step: steps that were made.
    """

    def __init__(self, *, reason: str, saved: Path | None, step: int) -> None:
        self.reason = reason
        self.saved = saved
        self.step = step
        where = f"saved in {saved}; resume=True goes on from there" if saved else "not saved, as it had no folder"
        super().__init__(f"training was stopped by {reason} after {step} steps: {where}.")


class StopRequest:
    """Whether a run has been asked to stop, and by what."""

    def __init__(self, event: threading.Event | None) -> None:
        self._event = event
        self._signal: str | None = None

    @property
    def reason(self) -> str | None:
        """What asked; None: nothing did."""
        if self._signal is None and self._event is not None and self._event.is_set():
            return "stop_event"
        return self._signal

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Take note of a signal; a second one has its usual effect, at once."""
        self._signal = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)


@contextmanager
def stop_requests(event: threading.Event | None = None) -> Generator[StopRequest, None, None]:
    """Listen for SIGINT and SIGTERM, and put the handlers back afterwards.

    Python lets only the main thread do that; elsewhere the event is all there is. A signal that the program ignores
    (as under nohup) stays ignored.
    """
    request = StopRequest(event)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():
        before = {}
    ours = {number: old for number, old in before.items() if old not in (signal.SIG_IGN, None)}
    for number in ours:
        signal.signal(number, request.receive)
    try:
        yield request
    finally:
        for number, old in ours.items():
            signal.signal(number, old)
