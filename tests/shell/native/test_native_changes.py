"""Sweeps follow what changed: a host says when, and nothing is asked for that did not change (I6, I10)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    AdmissionPolicy,
    InputError,
    Message,
    Selectors,
    SessionRecord,
    backfill,
    forget,
    ingest,
    open_store,
    rollback_backfill,
)
from memprov.shell.native import NativeStore
from tests.shell.native.loading import rows

START = 1_795_597_200_000


def session(name: str, changed: str | float | None = None, **known: str) -> SessionRecord:
    return SessionRecord("main", name, f"agent:main:{name}", changed=changed, **known)  # type: ignore[arg-type]


class Host:
    """Transcripts, and which of them were asked for."""

    def __init__(self, directory: Path, *names: str, length: int = 3) -> None:
        self.store = open_store(directory)
        self.texts = {name: [self.said(name, n) for n in range(1, length + 1)] for name in names}
        self.asked: list[str] = []
        for name in names:
            self.store.record_session(session(name, changed=length))

    @staticmethod
    def said(name: str, number: int) -> Message:
        text = f"In {name} the sentence of number {number} is said."
        return Message("user", text, number, START + number, sender_is_owner=True)

    def grow(self, name: str) -> None:
        self.texts[name].append(self.said(name, len(self.texts[name]) + 1))
        self.store.record_session(session(name, changed=len(self.texts[name])))

    def sweep(self, **options: object) -> int:
        self.asked.clear()
        report = ingest(self.store, self, now_ms=START, **options)  # type: ignore[arg-type]
        return sum(count for _, count in report.lines)

    def __call__(self, session: SessionRecord, /) -> list[Message]:
        self.asked.append(session.session_id)
        return self.texts[session.session_id]


def marks(store: NativeStore) -> dict[object, object]:
    return {row[0]: row[3] for row in rows(store._layout.ledger, "transcripts")}


def test_what_did_not_change_is_not_asked_for_and_changes_no_byte(tmp_path: Path) -> None:
    host = Host(tmp_path, "a", "b")
    assert (host.sweep(), host.asked) == (6, ["a", "b"])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert (host.sweep(), host.asked) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    host.grow("b")
    assert (host.sweep(), host.asked) == (1, ["b"])


def test_a_session_of_which_the_host_says_nothing_is_looked_at_every_time(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")
    host.store.record_session(session("silent"))
    host.texts["silent"] = []
    for expected in (["a", "silent"], ["silent"], ["silent"]):
        host.sweep()
        assert host.asked == expected


def test_a_change_while_the_transcript_is_read_is_looked_at_by_the_next_sweep(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")

    def reader(asked: SessionRecord, /) -> list[Message]:
        known = list(host.texts["a"])
        host.grow("a")
        return known

    ingest(host.store, reader, now_ms=START)
    assert (host.sweep(), host.asked) == (1, ["a"])


def test_a_transcript_that_cannot_be_read_or_is_not_read_to_its_end_is_asked_for_again(tmp_path: Path) -> None:
    host = Host(tmp_path, "a", "b", length=40)

    def broken(asked: SessionRecord, /) -> list[Message]:
        raise OSError

    assert [name for name, _ in ingest(host.store, broken, now_ms=START).failed] == ["a", "b"]
    assert (host.sweep(max_lines=30), host.asked) == (20, ["a", "b"])
    assert (host.sweep(max_lines=300), host.asked) == (60, ["a", "b"])
    assert (host.sweep(), host.asked) == (0, [])


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.record_session(session("p", kind="cron")),
        lambda store: store.delete_session("p"),
        lambda store: store.record_session(session("p", parent_key="agent:main:nobody")),
    ],
)
def test_B14_what_becomes_known_of_a_session_is_news_of_all_that_descend_from_it(
    tmp_path: Path, change: Callable[[NativeStore], None]
) -> None:
    host = Host(tmp_path, "p", "c", "g", "other")
    host.store.record_session(session("c", parent_key="agent:main:p"))
    host.store.record_session(session("g", parent_key="agent:main:c"))
    host.sweep()
    change(host.store)
    report = ingest(host.store, host, now_ms=START)
    assert {admission.session_id for admission in report.excluded} >= {"c", "g"}
    host.grow("g")
    host.asked.clear()
    assert (host.sweep(), host.asked) == (0, [])


def test_another_policy_looks_at_everything_and_what_it_lets_in_is_read(tmp_path: Path) -> None:
    host = Host(tmp_path, "a", "b")
    host.store.record_session(session("b", hook_source="gmail"))
    strict = AdmissionPolicy(hook_sources=["gmail"])
    assert (host.sweep(policy=strict), host.asked) == (3, ["a"])
    assert (host.sweep(policy=strict), host.asked) == (0, [])
    assert (host.sweep(), host.asked) == (3, ["b", "a"])


def test_I6_forgetting_takes_the_mark_and_nothing_comes_back(tmp_path: Path) -> None:
    host = Host(tmp_path, "a", "b")
    host.sweep()
    stale = host.store.unfollowed("ingested", AdmissionPolicy().digest)
    assert not stale
    assert all(marks(host.store).values())
    forget(host.store, Selectors(sessions=["a"]))
    assert (marks(host.store)["a"], bool(marks(host.store)["b"])) == (None, True)
    report = ingest(host.store, host, now_ms=START)
    assert [(admission.session_id, admission.reason) for admission in report.excluded] == [("a", "forgotten")]
    host.grow("a")
    assert (host.sweep(), host.asked) == (0, [])
    assert "In a " not in "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.txt"))


def test_B40_what_a_rollback_takes_back_is_read_again(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")
    backfill(host.store, host, mode="apply")
    assert host.sweep() == 0
    rollback_backfill(host.store)
    assert host.sweep() == 3


def test_a_checkpoint_goes_with_its_session_though_the_others_did_not_change(tmp_path: Path) -> None:
    host = Host(tmp_path, "a", "b")
    host.sweep()
    host.store.delete_session("a")
    host.grow("b")
    host.sweep()
    assert [row[0] for row in rows(host.store._layout.shared, "checkpoints")] == ["main:sessions/main/b"]


def test_sweeps_of_any_length_bring_the_same_lines(tmp_path: Path) -> None:
    corpora = []
    for number, lines in enumerate((7, 240, 1000)):
        host = Host(tmp_path / str(number), *"abcdef", length=20)
        while ingest(host.store, host, now_ms=START, max_lines=lines).more:
            pass
        files = sorted((tmp_path / str(number)).rglob("*.txt"))
        corpora.append(sorted(line for path in files for line in path.read_text("utf-8").splitlines()))
    assert len(corpora[0]) == 120
    assert corpora[0] == corpora[1] == corpora[2]


def test_a_sweep_reads_no_further_than_its_limit(tmp_path: Path) -> None:
    host = Host(tmp_path, *"abcdef", length=20)
    assert (host.sweep(max_lines=36), host.asked) == (36, ["a", "b", "c"])
    assert (host.sweep(max_lines=36), host.asked) == (36, ["a", "b", "c", "d"])


def test_a_sweep_looks_at_more_sessions_where_the_first_say_nothing_and_reads_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memprov.shell.sweeps._LOOKED_AT", 2)
    names = [f"s{number:02}" for number in range(20)]
    host = Host(tmp_path, *names, length=0)
    host.texts["s11"] = [host.said("s11", 1)]
    host.store.delete_session("s19")
    assert host.sweep(max_lines=2) == 1
    assert sorted(host.asked) == names[:-1]
    assert host.sweep() == 0
    assert host.asked == []
    for name in names[:6]:
        host.grow(name)
    assert host.sweep(max_lines=2) == 2
    assert len(host.asked) == 2
    assert host.sweep() == 4


@pytest.mark.parametrize("value", ["", True, b"x", ["1"]])
def test_a_word_that_says_nothing_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="changed"):
        session("a", changed=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("lines", [0, -1, 1.5, True])
def test_a_sweep_of_no_lines_is_refused(tmp_path: Path, lines: object) -> None:
    host = Host(tmp_path, "a")
    with pytest.raises(InputError, match="max_lines"):
        host.sweep(max_lines=lines)
    assert not host.asked


NAMES = [f"s{number}" for number in range(5)]
TREES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from([None, *(f"agent:main:{name}" for name in (*NAMES, "nobody"))]),
        st.sampled_from(["interactive", "cron", "subagent"]),
    ),
    max_size=8,
)


@given(TREES, st.sets(st.sampled_from(NAMES)))
def test_B14_a_few_sessions_have_the_kinds_that_they_have_among_all(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, str | None, str]], some: set[str]
) -> None:
    store = open_store(tmp_path_factory.mktemp("store"))
    for name, parent, kind in tree:
        store.record_session(SessionRecord("main", name, f"agent:main:{name}", kind, parent_key=parent))
    assert store.sessions(some) == tuple(record for record in store.catalogue() if record.session_id in some)
