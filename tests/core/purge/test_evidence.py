"""Evidence that is missing is said (F05a), and evidence that is still needed is kept (F08)."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from memprov import (
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    PurgePlan,
    RecallEntry,
    RetainedText,
    Snippet,
    StoreIdentity,
    apply_to_snapshot,
    plan_purge,
)
from memprov.core.purge import DropOrigins
from memprov.core.text import promotion_marker, to_text
from tests.core.worlds import CORPUS, KEYS, corpus_line, selection

SAID = "I prefer oolong tea in the morning."
K1, K2 = KEYS[:2]


def world(**fields: Any) -> MemorySnapshot:
    return evolve(MemorySnapshot(StoreIdentity("model", "main", "/state", "/workspace")), **fields)


def origins(*pairs: tuple[str, str]) -> OriginTable:
    return OriginTable.from_rows(Origin(key, "main", session) for key, session in pairs)


def dropped(plan: PurgePlan) -> set[str]:
    return {key for effect in plan.effects if isinstance(effect, DropOrigins) for key in effect.entry_keys}


BROKEN = [
    f"- tea <!-- openclaw-memory-promotion:{K1}\n",
    f"<!-- openclaw-memory-promotion:{K1}\n- tea\n",
    f"<!--\nopenclaw-memory-promotion:{K1} -->\n- tea\n",
    f"<!-- openclaw-memory-promotion {K1} -->\n- tea\n",
    f"<!-- openclaw-memory-promotion:\n{K1} -->\n- tea\n",
    f"<!-- OpenClaw-Memory-Promotion = {K1} -->\n- tea\n",
    f"<!- openclaw-memory-promotion:{K1} ->\n- tea\n",
    f"&lt;!-- openclaw-memory-promotion:{K1} --&gt;\n- tea\n",
    f"<!-- trigger: a <!-- openclaw-memory-promotion:{K1} -->\n- tea\n",
]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("above", ["", "# Notes\n\n", f"{promotion_marker(K1)}\n- an entry that can be read\n\n"])
def test_F08_a_marker_that_cannot_be_read_keeps_the_origins_and_is_named(broken: str, above: str) -> None:
    snapshot = world(
        files=(MemoryFile("MEMORY.md", above + broken),), origins=origins((K1, "s1"), (K2, "s1"), (K2, "s2"))
    )
    plan = plan_purge(snapshot, selection("s1"))
    line = above.count("\n") + broken[: broken.lower().index("openclaw-memory")].count("\n") + 1
    assert any(w.startswith(f"MEMORY.md line {line} holds a marker of {K1} ") for w in plan.report.warnings)
    assert dropped(plan) == {K2}
    assert plan.report.artifacts.origin_rows == 2
    assert plan.report.entry_keys == (K1, K2)
    after = apply_to_snapshot(snapshot, plan)
    assert after.files[0].text.endswith(broken)
    again = plan_purge(after, selection("s1"))
    assert again.removes_nothing
    assert any("cannot be read" in w for w in again.report.warnings)
    mended = evolve(after, files=(MemoryFile("MEMORY.md", f"{promotion_marker(K1)}\n- tea\n"),))
    last = plan_purge(mended, selection("s1"))
    assert dropped(last) == {K1}
    assert apply_to_snapshot(mended, last).files[0].text == ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_F08_a_marker_in_UTF_16_is_none_that_can_be_read(encoding: str) -> None:
    text = f"{promotion_marker(K1)}\n- tea\n".encode(encoding).decode("utf-8", "surrogateescape")
    snapshot = world(files=(MemoryFile("memory/copy.md", text),), origins=origins((K1, "s1")))
    plan = plan_purge(snapshot, selection("s1"))
    assert dropped(plan) == set()
    assert any("memory/copy.md line 1 " in w for w in plan.report.warnings)


@pytest.mark.parametrize(
    "text",
    [
        f"`<!-- openclaw-memory-promotion:{K1} -->` is how it looks\n",
        f"```\n<!-- openclaw-memory-promotion:{K1}\n```\n",
        f"- <\\!-- openclaw-memory-promotion:{K1} --\\> said somebody\n",
        f"<!-- openclaw-memory-promotion:{K1}0\n",
        f"<!-- openclaw-memory-promotion:{K2}\n",
        f"{K1} without a marker\n",
        "",
    ],
)
def test_F08_what_shows_a_marker_or_names_another_key_keeps_nothing(text: str) -> None:
    snapshot = world(files=(MemoryFile("MEMORY.md", text),), origins=origins((K1, "s1")))
    plan = plan_purge(snapshot, selection("s1"))
    assert dropped(plan) == {K1}
    assert not any("cannot be read" in w for w in plan.report.warnings)


def lost(snapshot: MemorySnapshot, *ids: str) -> list[str]:
    """The warnings of corpus lines that are missing."""
    warnings = plan_purge(snapshot, selection(*ids)).report.warnings
    return [warning for warning in warnings if warning.startswith("no corpus line is left of session")]


RECALLED = RecallEntry(K1, CORPUS, f"[main/sessions/main/s1#L2] User: {SAID}", 1, 1)


@pytest.mark.parametrize(
    "known", [{"origins": origins((K1, "s1"))}, {"recall": (RECALLED,)}, {"seen_scopes": ("main:sessions/main/s1",)}]
)
def test_F05a_evidence_that_the_files_lack_is_a_warning(known: dict[str, Any]) -> None:
    snapshot = world(**known)
    assert len(lost(snapshot, "s1")) == 1
    assert "cannot be found" in lost(snapshot, "s1")[0]
    assert lost(snapshot, "s2") == []
    there = evolve(snapshot, corpus=(MemoryFile(CORPUS, corpus_line("s1", SAID)),))
    assert lost(there, "s1") == []
    other = evolve(snapshot, corpus=(MemoryFile(CORPUS, corpus_line("s2", SAID)),))
    assert len(lost(other, "s1", "s2")) == 1
    read = evolve(snapshot, retained=(RetainedText("s1", (Snippet(SAID),)),))
    assert "known from transcripts" in lost(read, "s1")[0]
    after = apply_to_snapshot(snapshot, plan_purge(snapshot, selection("s1")))
    assert lost(after, "s1") == []


def test_F05a_many_sessions_are_one_sentence() -> None:
    ids = ("s1", "s2", "s3", "s1-b")
    (warning,) = lost(world(origins=origins(*((K1, name) for name in ids))), *ids)
    assert "sessions s1, s1-b, s2, s3" in warning


UNREADABLE = [
    f"- {SAID}\n".encode("utf-16"),
    f"- {SAID}\n".encode("utf-16-le"),
    f"- {SAID}\n".encode("utf-32-be"),
    "- 我早上喜欢喝乌龙茶\n".encode("gbk"),
    "- Zoë likes oat milk\n".encode("latin-1"),
    b"- a line\n\0",
]


@pytest.mark.parametrize("data", UNREADABLE)
@pytest.mark.parametrize("path", ["memory/copy.md", CORPUS])
def test_F06_what_is_not_readable_as_text_is_named_and_stays(data: bytes, path: str) -> None:
    file = MemoryFile(path, to_text(data))
    snapshot = world(corpus=(file,)) if path == CORPUS else world(files=(file,))
    plan = plan_purge(snapshot, selection("s1"))
    assert plan.removes_nothing
    (warning,) = plan.report.warnings
    assert warning.startswith(f"{path} is not readable as text")


@pytest.mark.parametrize("data", [b"", b"- a line\r\n", "- Zoë \ufeff\u2028 喜欢\n".encode(), b"\xef\xbb\xbf- a line"])
def test_F06_text_is_readable(data: bytes) -> None:
    assert plan_purge(world(files=(MemoryFile("MEMORY.md", to_text(data)),)), selection("s1")).report.warnings == ()
