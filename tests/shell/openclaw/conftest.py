from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.openclaw.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """An empty installation."""
    return Lab(tmp_path)
