"""Policy files: a rule that would be ignored in silence is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memprov import SessionRecord, open_store
from memprov.cli.commands import main
from tests.cli.running import runner


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"channels": ["slack"], "channels": []}', "'channels' stands twice"),
        ("{excludeSessions: {chatTypes: ['group']}, excludeSessions: {}}", "'excludeSessions' stands twice"),
        ('{"channels": ["*"]}', "channels holds '*'"),
        ('{"chatTypes": ["", " "]}', "chatTypes holds only blanks"),
    ],
)
def test_F24_a_policy_file_that_would_let_everybody_in_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, named: str
) -> None:
    open_store(tmp_path / "store").record_session(SessionRecord("main", "s1", channel="slack"))
    policy = tmp_path / "policy.json5"
    policy.write_text(text)
    words = ["memprov", "admit", "--store", str(tmp_path / "store"), "--policy", str(policy)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert (stop.value.code, printed.out) == (2, "")
    assert named in printed.err


@pytest.mark.parametrize("comma", ["", ","])
def test_F32_a_policy_of_any_depth_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, comma: str
) -> None:
    open_store(tmp_path / "store").record_session(SessionRecord("main", "s1"))
    policy = tmp_path / "policy.json5"
    policy.write_text(f'{{"channels": {"[" * 3000}{"]" * 3000}{comma}}}')
    ran = runner(monkeypatch, capsys)("admit", "--store", tmp_path / "store", "--policy", policy)
    assert (ran.code, ran.out) == (2, "")
    assert "nested too deeply" in ran.err
    assert ran.err.count("\n") == 1
