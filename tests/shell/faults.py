"""System calls that fail at a chosen one of them: before it, after it, half-way, for good, or by a kill."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field, fields

from memprov.shell.workspace import CALLS, Calls

__all__ = ["FAILURES", "KILLS", "Faults", "Killed"]

FAILURES = ("before", "after", "torn", "from here on")
KILLS = ("kill before", "kill after", "kill torn")  # torn: half a write; any other call does not happen


class Killed(BaseException):
    """The process is gone: nothing it would have done later happens."""


@define
class Faults:
    """Counts calls, and makes number ``at`` go wrong. ``trace`` is what was called, with its first argument.

    Nothing waits for the disk: what was not durable is not lost here, so the order of calls is tested instead.
    """

    at: int = -1
    mode: str = "before"
    code: int = 5
    trace: list[tuple[str, Any]] = field(factory=list)
    dead: bool = False
    unclosed: set[int] = field(factory=set)

    def calls(self) -> Calls:
        real = evolve(CALLS, sync=lambda _fd: None)
        return Calls(**{f.name: self._wrapped(f.name, getattr(real, f.name)) for f in fields(Calls)})

    def release(self) -> None:
        """Close what a killed process would have left to the system."""
        for fd in self.unclosed:
            os.close(fd)
        self.unclosed.clear()

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise Killed
            number = len(self.trace)
            self.trace.append((name, args[0]))
            if number == self.at or (number > self.at >= 0 and self.mode == "from here on"):
                self._fail(name, real, args, options)
            return self._done(name, args, real(*args, **options))

        return call

    def _done(self, name: str, args: tuple[Any, ...], result: Any) -> Any:
        if name == "open":
            self.unclosed.add(result)
        elif name == "close":
            self.unclosed.discard(args[0])
        return result

    def _fail(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self.mode.endswith("after"):
            self._done(name, args, real(*args, **options))
        elif self.mode.endswith("torn") and name == "write":
            fd, data = args
            real(fd, data[: len(data) // 2])
        if self.mode.startswith("kill"):
            self.dead = True
            raise Killed
        raise OSError(self.code, os.strerror(self.code))
