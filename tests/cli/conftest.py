from __future__ import annotations

import pytest

from tests.cli.running import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""
    return runner(monkeypatch, capsys)
