"""A world per test, in memory where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shell.index.world import World
from tests.shell.native.loading import scratch


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with scratch() as directory:
        yield directory.resolve()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path)
