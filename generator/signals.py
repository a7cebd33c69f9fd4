"""What Ctrl-C and kill do: end the run with the exit code that shells know, and without a word."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Callable, NoReturn

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # by nohup, say
            signal.signal(number, handler)


def _end(number: int, _: object) -> NoReturn:
    os._exit(128 + number)


def _unwind(number: int, _: object) -> NoReturn:
    _handle(lambda *_: None)  # a second one would only interrupt what the first one began
    sys.exit(128 + number)


def end_at_once() -> None:
    """Where nothing is left behind: an exception would show up wherever Python cannot raise one."""
    _handle(_end)


def unwind() -> None:
    """As an exception, so that temporary files go."""
    _handle(_unwind)
