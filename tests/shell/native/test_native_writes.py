"""Observed writes: who wrote which memory file, the chain of digests, and that nothing here raises trust."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from memprov import CuratedWrite, Selectors, SessionRecord, forget, preview
from memprov.core.records import Origin, OriginClass
from memprov.core.text import digest, promotion_marker
from memprov.core.writing import RecordArtifact, RecordOrigins, ReleaseArtifact, ReplaceText
from memprov.errors import ConflictError, InputError, SelectorError
from memprov.shell.native import NativeStore, ObservedWrite, open_store
from tests.shell.native.loading import NOW, Clock, copied, fresh_store, hasty, rows, unhurried


@pytest.fixture
def store(tmp_path: Path) -> NativeStore:
    return fresh_store(tmp_path / "store")


def file(store: NativeStore, path: str = "MEMORY.md") -> Path:
    found = Path(store._layout.workspace) / path
    found.parent.mkdir(parents=True, exist_ok=True)
    return found


def observe(
    store: NativeStore, session: str = "s1", path: str = "MEMORY.md", *, attested: bool = False
) -> ObservedWrite:
    """A write of the owner's, in a turn that nothing tainted."""
    return store.observe_write(session, path, sender_is_owner=True, tainted=False, attested=attested)


def verdict(write: ObservedWrite) -> tuple[str, str | None]:
    return write.origin_class.value, write.reason and write.reason.value


def test_a_chain_of_writes_keeps_its_class(store: NativeStore) -> None:
    for number in range(3):
        with observe(store, f"s{number}") as write:
            file(store).write_text(f"version {number}\n")
        assert verdict(write) == ("agent", None)
    record = store.file_records()["MEMORY.md"]
    assert (record.record.origin_class, record.record.file_hash) == ("agent", digest("version 2\n"))
    assert (record.session_id, record.observed_at_ms, record.edited) == ("s2", NOW, False)


@pytest.mark.parametrize(
    ("owner", "tainted"),
    [(None, None), (True, None), (True, True), (False, False), (None, False), ("yes", False), (1, 0)],
)
def test_a_write_is_untrusted_unless_it_is_known_to_be_the_owners_and_untainted(
    store: NativeStore, owner: object, tainted: object
) -> None:
    with store.observe_write("s1", "MEMORY.md", sender_is_owner=owner, tainted=tainted) as write:
        file(store).write_text("x\n")
    assert verdict(write) == ("untrusted", "writer_untrusted")
    with observe(store) as write:
        file(store).write_text("y\n")
    assert verdict(write) == ("untrusted", "earlier_untrusted")  # once untrusted, always so


def test_B26_a_hand_edit_breaks_the_chain_visibly_until_the_owner_attests_it(store: NativeStore) -> None:
    with observe(store):
        file(store).write_text("by the agent\n")
    file(store).write_text("by the agent\nby hand\n")
    assert store.file_records()["MEMORY.md"].edited
    with observe(store, "s2") as write:
        file(store).write_text("by the agent\nby hand\nmore\n")
    assert verdict(write) == ("untrusted", "hash_chain_broken")
    record = store.file_records()["MEMORY.md"]
    assert (record.record.origin_class, record.reason, record.edited) == ("untrusted", "hash_chain_broken", False)
    with observe(store, "s3", attested=True) as write:
        file(store).write_text("all of it read by the owner\n")
    assert verdict(write) == ("agent", None)
    with store.observe_write("s4", "MEMORY.md", attested=True) as write:
        file(store).write_text("a stranger's\n")
    assert verdict(write) == ("untrusted", "writer_untrusted")


def test_B28_a_write_is_reserved_before_and_released_when_it_fails(store: NativeStore) -> None:
    file(store).write_text("old\n")

    def write() -> None:
        with observe(store):
            assert [(w.path, w.session_id) for w in store.snapshot().ledger_writes] == [("MEMORY.md", "s1")]
            assert not store.file_records()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert store.snapshot().ledger_writes == ()


def test_B28_a_write_that_failed_half_way_counts(store: NativeStore) -> None:
    file(store).write_text("old\n")

    def write() -> None:
        with observe(store):
            file(store).write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert store.file_records()["MEMORY.md"].record.file_hash == digest("half")


def test_a_write_whose_process_died_is_reviewed_and_is_no_link_of_the_chain(store: NativeStore, tmp_path: Path) -> None:
    with observe(store):
        file(store).write_text("one\n")
    observe(store, "s2")
    file(store).write_text("two\n")
    left = copied(store, tmp_path / "left")  # it died before it could say that it was done
    assert {w.session_id for w in left.snapshot().ledger_writes} == {"s1", "s2"}
    with observe(left, "s3") as write:
        file(left).write_text("three\n")
    assert verdict(write) == ("untrusted", "hash_chain_broken")


def test_without_a_block_the_end_is_said_once(store: NativeStore) -> None:
    write = observe(store)
    file(store).write_text("x\n")
    write.done()
    file(store).write_text("y\n")
    write.done()
    write.failed()
    assert store.file_records()["MEMORY.md"].record.file_hash == digest("x\n")
    write = observe(store, "s2")
    write.failed()
    write.done()
    assert len(rows(store._layout.shared, "writes")) == 1


def test_of_two_writes_at_once_neither_raises_trust(store: NativeStore) -> None:
    first, second = observe(store, "s1"), store.observe_write("s2", "MEMORY.md")
    file(store).write_text("of the second\n")
    second.done()
    file(store).write_text("of the first\n")
    first.done()
    assert verdict(first) == ("untrusted", "earlier_untrusted")
    record = store.file_records()["MEMORY.md"]
    assert (record.record.origin_class, record.session_id) == ("untrusted", "s1")


def test_a_reservation_outlives_the_records_that_spoke_against_it(store: NativeStore) -> None:
    with store.observe_write("s1", "MEMORY.md"):
        file(store).write_text("a stranger's\n")
    pending = observe(store, "s2")
    with observe(store, "s3"):
        file(store).unlink()
    file(store).write_text("written on top of what was a stranger's\n")
    pending.done()
    assert verdict(pending) == ("untrusted", "earlier_untrusted")


def test_a_file_that_is_deleted_takes_its_records_along(store: NativeStore) -> None:
    with store.observe_write("s1", "MEMORY.md"):
        file(store).write_text("x\n")
    with observe(store, "s2"):
        file(store).unlink()
    assert not rows(store._layout.shared, "writes")
    with observe(store, "s3") as write:
        file(store).write_text("new\n")
    assert verdict(write) == ("agent", None)


@pytest.mark.parametrize(
    "spelling",
    [
        lambda ws: "memory/notes/a.md",
        lambda ws: "./memory//x/../notes/a.md",
        lambda ws: ws / "memory/notes/a.md",
        lambda ws: ws.parent / "alias" / "memory/notes/a.md",
        lambda ws: "memory/link.md",
        lambda ws: "memory/linked/a.md",
    ],
)
def test_B28_a_file_has_one_identity_whatever_leads_to_it(
    store: NativeStore, spelling: Callable[[Path], str | Path]
) -> None:
    workspace = Path(store._layout.workspace)
    file(store, "memory/notes/a.md").write_text("x\n")
    (workspace.parent / "alias").symlink_to("workspace")
    (workspace / "memory" / "link.md").symlink_to("notes/a.md")
    (workspace / "memory" / "linked").symlink_to("notes")
    with store.observe_write("s1", spelling(workspace)):
        file(store, "memory/notes/a.md").write_text("y\n")
    assert list(store.file_records()) == ["memory/notes/a.md"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\x00b",
        "notes.md",
        "../MEMORY.md",
        "/etc/passwd",
        "memory/x.txt",
        "DREAMS.md",
        "memory/dreaming/rem/x.md",
        "memory/.dreams/session-corpus/x.md",
        "users/a/b/USER.md",
        "memory/out.md",
        ".",
    ],
)
def test_what_is_no_memory_file_is_refused(store: NativeStore, path: str) -> None:
    file(store, "memory/out.md").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match=r"no memory file|no path"):
        observe(store, path=path)
    assert not rows(store._layout.shared, "writes")


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "USER.md", "users/ann/USER.md", "memory/a/.b/c.md"])
def test_every_memory_file_is_recorded(store: NativeStore, path: str) -> None:
    with observe(store, path=path):
        file(store, path).write_text("x\n")
    assert list(store.file_records()) == [path]


def test_a_session_may_be_given_by_its_record_or_by_its_id(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", "agent:main:x"))
    for session in ("s1", SessionRecord("main", "s2", "agent:main:y"), "unknown"):
        with store.observe_write(session, "MEMORY.md"):
            file(store).write_text(f"{session}\n")
    assert [(w.session_id, w.session_key) for w in store.snapshot().ledger_writes] == [
        ("s1", "agent:main:x"),
        ("s2", "agent:main:y"),
        ("unknown", None),
    ]
    with pytest.raises(SelectorError):
        store.observe_write(" ", "MEMORY.md")


def test_case_H1_every_file_that_a_session_wrote_is_reported_also_after_another_wrote_it(store: NativeStore) -> None:
    clock = Clock()
    store = hasty(store, clock)
    for session, path in (("s1", "USER.md"), ("s2", "USER.md"), ("s1", "memory/a.md"), ("s1", "memory/a.md")):
        with observe(store, session, path):
            file(store, path).write_text(f"{session} {clock.now}\n")
        clock.now += 1
    before = file(store, "USER.md").read_text()
    report = forget(store, Selectors(sessions=["s1"]))
    assert [(w.relative_path, w.observed_at) for w in report.curated_writes] == [
        ("USER.md", NOW),
        ("memory/a.md", NOW + 3000),
    ]
    assert file(store, "USER.md").read_text() == before


def test_I11_anothers_writes_are_not_ours(tmp_path: Path) -> None:
    a, b = fresh_store(tmp_path / "store", "a"), fresh_store(tmp_path / "store", "b")
    with observe(a):
        file(a).write_text("x\n")
    with observe(b, "s2") as write:
        file(b).write_text("y\n")
    assert verdict(write) == ("agent", None)  # but the chain is the file's
    assert a.snapshot().ledger_writes == (CuratedWrite("MEMORY.md", NOW, "s1"),)
    assert b.snapshot().ledger_writes == (CuratedWrite("MEMORY.md", NOW, "s2"),)
    assert preview(b, Selectors(sessions=["s2"])).report.curated_writes
    assert not preview(a, Selectors(sessions=["s2"])).report.curated_writes


def test_a_purge_is_no_edit_by_an_unknown_hand(store: NativeStore) -> None:
    with observe(store):
        file(store).write_text(f"# Memory\n{promotion_marker('k')}\n- secret\n- kept\n")
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k", "main", "s9"),)))
    forget(store, Selectors(sessions=["s9"]))
    assert file(store).read_text() == "# Memory\n- kept\n"
    assert not store.file_records()["MEMORY.md"].edited
    with observe(store) as write:
        file(store).write_text("# Memory\n- kept\n- new\n")
    assert verdict(write) == ("agent", None)


def test_a_promotion_is_no_edit_by_an_unknown_hand_either(store: NativeStore) -> None:
    with observe(store):
        file(store).write_text("# Memory\n")
    with unhurried(store) as writer:
        with pytest.raises(ConflictError):
            writer.write(ReplaceText("MEMORY.md", digest("another\n"), "# Memory\n- new\n"))
        assert not store.file_records()["MEMORY.md"].edited
        writer.write(ReplaceText("MEMORY.md", digest("# Memory\n"), "# Memory\n- new\n"))
    assert not store.file_records()["MEMORY.md"].edited
    file(store).write_text("by hand\n")
    with unhurried(store) as writer:
        writer.write(ReplaceText("MEMORY.md", digest("by hand\n"), "by hand\n- new\n"))
    assert store.file_records()["MEMORY.md"].edited  # what was unexplained stays so


def test_what_the_write_path_records_is_part_of_the_chain(store: NativeStore) -> None:
    with observe(store):
        file(store).write_text("one\n")
    with unhurried(store) as writer:
        for effect in (
            RecordArtifact("MEMORY.md", OriginClass.AGENT, digest("two\n")),
            RecordArtifact("MEMORY.md", OriginClass.AGENT, digest("never written\n")),
            ReleaseArtifact("MEMORY.md", digest("never written\n")),
        ):
            writer.write(effect)
        file(store).write_text("two\n")
    assert not store.file_records()["MEMORY.md"].edited
    assert [w.session_id for w in store.snapshot().ledger_writes] == ["s1"]
    with observe(store, "s2") as write:
        file(store).write_text("three\n")
    assert verdict(write) == ("agent", None)


def test_observing_needs_no_lock(store: NativeStore) -> None:
    other = hasty(open_store(store._layout.directory))
    with store.exclusive(), observe(other):
        file(other).write_text("x\n")
    assert evolve(store.file_records()["MEMORY.md"]).edited is False
