"""``memprov demo`` is the README's first command: its output is what the README shows, and its claims are true."""

from __future__ import annotations

import re
from pathlib import Path

from memprov.cli.demo import run_demo

README = Path(__file__).resolve().parent.parent.parent / "README.md"


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```\n", README.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert "\n".join(run_demo(tmp_path)) + "\n" == shown[1]


def test_the_demos_claims_are_true_of_the_files_that_it_leaves(tmp_path: Path) -> None:
    lines = list(run_demo(tmp_path))
    assert "   did what the preview said: yes" in lines
    memory = (tmp_path / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
    assert "boiler" in memory, "the twin that must stay"
    assert "oolong" not in memory
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"Mrs. Quill" not in path.read_bytes()


def test_a_poisoned_tool_result_never_reaches_memory(tmp_path: Path) -> None:
    list(run_demo(tmp_path))
    assert "door code" not in (tmp_path / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
