"""Stores in memory: the tests of the embedded store make hundreds of them, and disks are slow to forget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shell.native.loading import scratch


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with scratch() as directory:
        yield directory.resolve()
