"""A command, run in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from memprov.cli.commands import main

__all__ = ["Ran", "Run", "runner"]


@frozen
class Ran:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs ``memprov`` with these words."""

    def call(*words: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["memprov", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Ran(stop.value.code, printed.out, printed.err)

    return call
