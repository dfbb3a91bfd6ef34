"""Full text in scripts that put no blanks between words, or particles without any (F65)."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.text import query_terms
from memprov.shell.index import reconcile, search, sync_index
from memprov.shell.native import open_store
from memprov.shell.native.schema import AGENT_LEDGER
from tests.shell.index.world import World
from tests.shell.native.loading import fresh_store, hasty, rows

CHINESE = "备用钥匙在蓝色花盆下面"
GLUED = "我的iPhone在桌上, 用AI写诗, 我喝茶"
JAPANESE = "予備の鍵は青い植木鉢の下にあります"
KOREAN = "여분의 열쇠는 파란 화분 아래에 있어요"
THAI = "กุญแจสำรองอยู่ใต้กระถางต้นไม้สีฟ้า"
LAO = "ກະແຈຢູ່ພາຍໃຕ້ໝໍ້"
ENGLISH = "The spare key is under the blue flowerpot"
SAID = (CHINESE, GLUED, JAPANESE, KOREAN, THAI, LAO, ENGLISH)


def talking(directory: Path) -> World:
    world = World(fresh_store(directory / "store"))
    for number, text in enumerate(SAID):
        world.say(f"s{number}", text)
    sync_index(world.store, reader=world.reader)
    return world


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> World:
    return talking(tmp_path_factory.mktemp("talk"))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("钥匙", CHINESE), ("花盆", CHINESE), ("下面", CHINESE), ("备用钥匙在哪里?", CHINESE), ("备", CHINESE),
        ("iPhone", GLUED), ("iphone", GLUED), ("AI", GLUED), ("茶", GLUED), ("写诗", GLUED),
        ("植木鉢", JAPANESE), ("予備", JAPANESE), ("鍵", JAPANESE), ("열쇠", KOREAN), ("화분", KOREAN),
        ("กุญแจ", THAI), ("กระถาง", THAI), ("สีฟ้า", THAI), ("ກະແຈ", LAO), ("ໝໍ້", LAO), ("flowerpot", ENGLISH),
    ],
)  # fmt: skip
def test_F65_a_word_is_found_inside_a_clause_of_its_script(talk: World, query: str, text: str) -> None:
    assert search(talk.store, query)[0].text == f"User: {text}"


@pytest.mark.parametrize("query", ["咖啡", "시계", "โทรศัพท์", "pot", "。", "็"])
def test_F65_what_nobody_said_is_not_found(talk: World, query: str) -> None:
    assert search(talk.store, query) == ()


def test_F65_a_word_that_is_only_part_of_another_ranks_behind_the_word(tmp_path: Path) -> None:
    world = World(fresh_store(tmp_path / "store"))
    world.say("a1", "键盘 keyboard 在桌上")
    world.say("b2", "the keyboard is on the desk")
    world.say("c3", "the key is under the pot")
    sync_index(world.store, reader=world.reader)
    assert [hit.path for hit in search(world.store, "key")] == [f"sessions/main/{name}.jsonl" for name in ("c3", "a1")]
    assert search(world.store, "ke") == ()


def test_F65_a_purge_takes_the_pieces_along_and_leaves_no_byte_of_them(tmp_path: Path) -> None:
    world = talking(tmp_path)
    assert len(rows(world.store._layout.ledger, "chunks_text_pieces_docsize")) == len(SAID) - 1
    for number, text in enumerate(SAID[:4]):
        world.forget(f"s{number}")
        assert search(world.store, text[:2]) == ()
    assert len(rows(world.store._layout.ledger, "chunks_text_pieces_docsize")) == 2
    with world.store._layout.ledger.writing() as connection:
        list(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    data = Path(world.store._layout.ledger.path).read_bytes()
    assert not [piece for piece in ("钥匙在", "植木鉢", "열쇠는", "iph") if piece.encode() in data]
    assert "กุญ".encode() in data, "the control: what stays is seen"
    assert reconcile(world.store).sound


def test_F65_a_ledger_of_the_earlier_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    world = talking(tmp_path)
    ledger = world.store._layout.ledger
    connection = apsw.Connection(ledger.path)
    pieces = ("TRIGGER unspaced_inserted", "TRIGGER unspaced_deleted", "VIEW unspaced_chunks")
    later = (
        *("TABLE transcripts", "TRIGGER sources_deleted"),
        *(f"INDEX {name}" for name in ("sessions_by_key", "sessions_by_parent", "chunks_of_runs", "chunks_of_system")),
    )
    for statement in (*pieces, *later):
        connection.execute(f"DROP {statement}")
    connection.execute("DROP TABLE chunks_text_pieces; PRAGMA user_version = 2")
    connection.close()
    assert AGENT_LEDGER.version == 4
    store = hasty(open_store(world.store._layout.directory))
    assert [hit.text for hit in search(store, "花盆")] == [f"User: {CHINESE}"]
    assert reconcile(store).sound


def test_F65_pieces_that_are_missing_or_left_over_are_told_and_mended(tmp_path: Path) -> None:
    world = talking(tmp_path)
    with world.store._layout.ledger.writing() as connection:
        connection.execute("INSERT INTO chunks_text_pieces (rowid, text) VALUES (999, '没有人说过')")
        connection.execute("CREATE TEMP TABLE t AS SELECT chunk_rowid AS n, text FROM unspaced_chunks LIMIT 1")
        connection.execute(
            "INSERT INTO chunks_text_pieces (chunks_text_pieces, rowid, text) SELECT 'delete', n, text FROM temp.t"
        )
    report = reconcile(world.store, repair=True)
    assert report.full_text_orphans == (999,)
    assert len(report.full_text_missing) == 1
    assert reconcile(world.store).sound
    assert search(world.store, "花盆")
    assert search(world.store, "没有人") == ()


@given(st.text(alphabet=st.sampled_from("a B_1é钥匙花盆가나กุ\u0301\"'*()- \0\ud83d\ude00"), max_size=24))
def test_any_text_is_a_query(talk: World, query: str) -> None:
    assert len(query_terms(query).pieces) <= 64
    assert isinstance(search(talk.store, query), tuple)
