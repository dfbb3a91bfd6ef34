"""Does this text refer to that session? Cases A, D5, I12, reports B02, against a plain reading of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.text import SessionMatcher, references_session, session_id_from_file_name
from memprov.core.text.references import has_label
from memprov.errors import InputError
from memprov.testing.strategies import SESSION_IDS, labels, memory_texts, raw_texts
from tests.core import plain_oracles

STAMP = "2026-08-26T10-00-00.000Z"
HEX = "0123456789abcdef" * 2
UUID = "01234567-89ab-4cde-8f01-23456789abcd"


def refers(text: str, *ids: str, agent: str = "main") -> bool:
    return references_session(text, agent, ids or ["s1"])


# --- cases A ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(f"kiln.jsonl.deleted.{STAMP}.zst", "kiln", id="A1"),
        pytest.param("kiln.jsonl.reset.2026-08-26T10-00-00Z", "kiln", id="A2-no-millis"),
        pytest.param(f"kiln.jsonl.reset.2026-08-26T10-00-00Z.{HEX}", "kiln", id="A2-suffix"),
        pytest.param(f"kiln.jsonl.bak.{STAMP}", None, id="A3-bak"),
        pytest.param("kiln.trajectory.jsonl", None, id="A3-trajectory"),
        pytest.param("kiln.jsonl.other", None, id="A3-other"),
        pytest.param("kiln.jsonl.zst", None, id="A3-zst"),
        pytest.param("sessions.json", None, id="A3-sessions"),
        ("kiln.jsonl", "kiln"),
        (".jsonl", ""),
        ("kiln", None),
        ("", None),
        (f"a.b.jsonl.reset.{STAMP}", "a.b"),
        (f"x.checkpoint.{UUID}.jsonl", None),
        (f"x.CHECKPOINT.{UUID.upper()}.JSONL", None),
        (f"x.Checkpoint.{UUID.upper()}.jsonl", None),
        (f"x.checkpoint.{UUID}.jsonl.deleted.{STAMP}", None),
        (f"x.trajectory.jsonl.deleted.{STAMP}", None),
        (f"x.checkpoint.{UUID[:-1]}.jsonl", f"x.checkpoint.{UUID[:-1]}"),
        (f"x.checkpoint.{UUID.replace('4cde', '6cde')}.jsonl", f"x.checkpoint.{UUID.replace('4cde', '6cde')}"),
        (f"k.jsonl.deleted.{STAMP}.{HEX.upper()}", None),
        (f"k.jsonl.deleted.{STAMP}.{HEX[1:]}", None),
        (f"k.jsonl.DELETED.{STAMP}", None),
        (f"k.jsonl.deleted.{STAMP}.zst.zst", None),
        (f"k.jsonl.deleted.{STAMP.replace('2026', '٢٠٢٦')}", None),
        (f"a.jsonl.reset.{STAMP}.jsonl.deleted.{STAMP}", f"a.jsonl.reset.{STAMP}"),
        (f"a.jsonl.deleted.{STAMP}.jsonl", f"a.jsonl.deleted.{STAMP}"),
    ],
)
def test_case_A1_A2_A3_what_file_names_stand_for(name: str, expected: str | None) -> None:
    assert session_id_from_file_name(name) == expected
    assert plain_oracles.decoded(name) == expected, "the oracle reads the same"


YES, NO = True, False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[main/sessions/main/s1#L4] User: hi", YES, id="A5"),
        pytest.param("[main/sessions/main/s1-b#L4] User: hi", NO, id="A6-longer"),
        pytest.param("[main/sessions/main/S1#L4] User: hi", NO, id="A6-case"),
        pytest.param("[main/sessions/main/s1.jsonl.other#L4] User: hi", NO, id="A6-name"),
        pytest.param("agent:main:s1", YES, id="A7-agent"),
        pytest.param("main:s1", YES, id="A7-scoped"),
        pytest.param("main:sessions/main/s1", YES, id="A7-path"),
        pytest.param("(sessions/main/s1)", YES, id="A8-brackets"),
        pytest.param("source=sessions/main/s1", YES, id="A8-equals"),
        pytest.param("sessions/main/s1, x", YES, id="A8-comma"),
        pytest.param("`main:s1`", YES, id="A8-code"),
        pytest.param("sessions/main/s1.", YES, id="A8-stop"),
        pytest.param("domain:s1", NO, id="A8-domain"),
        pytest.param("main: s1", NO, id="A8-blank"),
        pytest.param("sessions/main/s1x", NO, id="A8-longer"),
        pytest.param("Session ID: s1; rest", YES, id="A9-semicolon"),
        pytest.param("session id:s1", YES, id="A9-case"),
        pytest.param("Session ID:   s1", YES, id="A9-blanks"),
        pytest.param("**Session ID**: s1", YES, id="A10-bold"),
        pytest.param("**Session ID:** s1", YES, id="A10-bold-colon"),
        pytest.param("Session ID: `s1`", YES, id="A10-code"),
        pytest.param("Session ID: s1,", YES, id="A10-comma"),
        pytest.param("MySession ID: s1", NO, id="A10-word"),
        pytest.param("Session ID: s1.jsonl", NO, id="A10-name"),
        pytest.param("Session ID: S1", NO, id="A10-case"),
        pytest.param("sessions/other/s1", NO, id="A12"),
        # docs: References, the other verified ones
        ("x/sessions/main/s1", YES),
        ("sessions/main/s1/extra", YES),
        ("sessions/main/s1:3", YES),
        ("sessions/main/s1.jsonl", YES),
        (f"sessions/main/s1.jsonl.deleted.{STAMP}.zst", YES),
        ("sessions/main/s1.trajectory.jsonl", NO),
        ("sessions/Main/s1", NO),
        ("main:main:s1", NO),
        ("", NO),
    ],
)
def test_case_A5_to_A12_references(text: str, expected: bool) -> None:
    assert refers(text) is expected
    assert plain_oracles.refers(text, "main", ["s1"]) is expected, "the oracle reads the same"


def test_case_A11_the_agent_id_is_literal() -> None:
    assert refers("sessions/m.n/s1", agent="m.n")
    assert refers("(m.n:s1)", agent="m.n")
    assert not refers("sessions/mxn/s1", agent="m.n")
    assert not refers("mxn:s1", agent="m.n")


def test_case_A7_the_id_may_be_the_agents_name() -> None:
    assert refers("agent:main:main", "main")
    assert refers("sessions/main/main", "main")


# --- D5 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", list("()[]<>{}\"'`*_=,;:!?"))
def test_D5_any_of_these_may_surround_a_reference(mark: str) -> None:
    for reference in ("sessions/main/s1", "main:s1", "sessions/main/s1.jsonl"):
        assert refers(f"x{mark}{reference}{mark}")
        assert refers(f"{mark * 3}{reference}{mark * 3}.")
        assert not refers(f"x{mark}{reference}x{mark}")
    assert refers(f"Session ID: {mark}s1{mark}") is (mark != ";")


@pytest.mark.parametrize("mark", [*list("-+~^%&$@\\|x9."), "。", "\x85", "—"])
def test_D5_nothing_else_does(mark: str) -> None:
    assert not refers(f"{mark}sessions/main/s1")
    assert not refers(f"{mark}main:s1")
    assert refers(f"sessions/main/s1{mark}") is (mark == ".")


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("sessions/main/s2.", ["s2"], YES),
        ("sessions/main/s2.", ["s2."], YES),
        ("sessions/main/s2", ["s2."], NO),
        ("sessions/main/s2..", ["s2."], YES),
        ("(main:s2!?)", ["s2!"], YES),
        ("main:_x_", ["_x"], YES),
        ("main:_x_", ["x"], NO),
        ("Session ID: _x_", ["_x"], YES),
        ("Session ID: _x_", ["x"], YES),
        ("Session ID: **_x**", ["_x"], YES),
        ("Session ID:_x", ["_x"], YES),
        ("Session ID: ((x))", ["(x)"], YES),
        ("Session ID: ***", ["*"], NO),
        ("Session ID: a:b", ["a:b"], YES),
        ("Session ID: a/b#c]", ["a/b#c]"], YES),
        ("main:a:b", ["a:b"], NO),
        ("sessions/main/s1.jsonl", ["s1.jsonl"], NO),
        ("Session ID: my session", ["my session", "session"], NO),
        ("Session ID: [main/sessions/main/s1.jsonl#L4]", ["s1"], YES),
        ("Session ID: agent:main:s1.", ["s1"], YES),
        ("Session ID: s1" + "!" * 200, ["s1"], YES),
        ("Session ID: s1" + "!" * 200, ["s1" + "!" * 9], YES),
        ("Session ID: " + "(" * 200 + "s1", ["s1"], YES),
        ("Session ID: " + "(" * 200 + "s1", ["(" * 150 + "s1"], YES),
        ("Session ID: " + "x" * 100_000, ["x" * 100_000], YES),
        ("Session ID: " + "x" * 100_000, ["x" * 99_999], NO),
    ],
)
def test_D5_punctuation_is_no_part_of_an_id_unless_an_id_with_it_is_selected(
    text: str,
    ids: list[str],
    expected: bool,
) -> None:
    assert references_session(text, "main", ids) is expected


@pytest.mark.parametrize(
    "text",
    [
        "sessions/main/a,sessions/main/s1",
        "sessions/main/s1,sessions/main/a",
        "main:a,main:s1;x",
        "(sessions/main/a)(sessions/main/s1)",
        "[[main/sessions/main/a#L1],[main/sessions/main/s1#L2]]",
        "a:main:b,main:s1",
        "main:main:main:main:b,main:s1",
        "sessions/main/a\u2028sessions/main/s1",
        "sessions/main/a/sessions/main/s1",
    ],
)
def test_D5_references_that_stand_close_together_are_all_seen(text: str) -> None:
    assert refers(text)


@pytest.mark.parametrize(
    "text",
    [
        "_Session ID_: s1",
        "__Session ID__: s1",
        "***Session ID***: s1",
        "`Session ID:` s1",
        "`Session ID`: **s1**",
        "> 1. **Session ID:** `s1`",
        "(Session ID: s1)",
        "会话Session ID: s1",
        "Session ID: Session ID: s1",
        "Session ID:\u00a0\ufeffs1",
        "**Session ID:**s1",
    ],
)
def test_D5_labels_in_every_common_form(text: str) -> None:
    assert refers(text)
    assert has_label(text)


@pytest.mark.parametrize(
    "text",
    [
        "Session ID s1",
        "Session  ID: s1",
        "Session\tID: s1",
        "SessionID: s1",
        "Session ID : s1",
        "Session ID:",
        "**Session ID:**",
        "- **Session ID**:   ",
        "Session ID:** ; s1",
        "Session ID: ;s1",
        "_mySession ID: s1",
        "____Session ID: s1",
        "\u017fession ID: s1",
        "Session \u0131D: s1",
        "| Session ID | s1 |",
    ],
)
def test_D5_what_is_no_label(text: str) -> None:
    assert not has_label(text)
    assert not refers(text)


def test_a_label_without_a_value_hides_no_other() -> None:
    assert refers("Session ID:\nSession ID: s1")
    assert refers("- **Session ID:**\n- **Session ID:** s1")


def test_no_ids_no_reference_and_a_lone_string_is_refused() -> None:
    assert not references_session("sessions/main/s1", "main", [])
    with pytest.raises(InputError):
        references_session("sessions/main/s1", "main", "s1")


# --- the oracle, and I12 ----------------------------------------------------------------------------------------------

IDS = (*SESSION_IDS, "s1,", "_x", "a:b", "s1.jsonl", "(s1", "ſ1")
PIECES = st.sampled_from(
    [
        *(
            "sessions/main/",
            "main:",
            "agent:",
            "sessions/",
            "main/",
            "Session ID:",
            "session id",
            ":",
            " ",
            "\n",
            "\u2028",
        ),
        *("s1", "s2", "S1", "s10", "_x", "a:b", ".jsonl", f".jsonl.reset.{STAMP}", ".zst", f".{HEX}", ".other", "茶"),
        *list("()[]<>{}\"'`*_=,;:!?./#x"),
        *("**", "__", ".checkpoint.", UUID, "ſ", "ID"),
    ]
)
HARD = st.lists(PIECES, max_size=9).map("".join)


@given(st.one_of(HARD, labels(), memory_texts(max_lines=3), raw_texts()), st.sets(st.sampled_from(IDS)))
def test_D5_references_are_those_of_the_plain_reading(text: str, ids: set[str]) -> None:
    assert references_session(text, "main", ids) is plain_oracles.refers(text, "main", ids)


@given(HARD, st.sets(st.sampled_from(IDS)))
def test_D5_labels_are_those_of_the_plain_reading(text: str, ids: set[str]) -> None:
    found = [label.selected for label in SessionMatcher("main", ids).labels(text)]
    assert found == list(plain_oracles.label_values(text, "main", ids))
    assert has_label(text) is bool(found)


NAMES = st.lists(
    st.sampled_from(
        [
            *(".jsonl", ".reset", ".deleted", ".", STAMP, "2026-08-26T10-00-00Z", HEX, ".zst", "s1", ".trajectory"),
            *(".checkpoint.", UUID, UUID.upper(), "x"),
        ]
    ),
    max_size=8,
).map("".join)


@given(NAMES)
def test_file_names_are_read_as_in_the_plain_reading(name: str) -> None:
    assert session_id_from_file_name(name) == plain_oracles.decoded(name)


PLAIN_IDS = st.text("abcXYZ019-é茶", min_size=1, max_size=6)


@given(PLAIN_IDS, PLAIN_IDS, st.sampled_from(["sessions/main/{}", "main:{}", "Session ID: {}", "(main:{})"]))
def test_I12_only_the_very_id_is_meant(said: str, selected: str, form: str) -> None:
    assert references_session(form.format(said), "main", [selected]) is (said == selected)


@given(PLAIN_IDS, st.sampled_from(["x{}", "{}x", "{}-1", "{}{}", "é{}", "{}\u0301"]))
def test_I12_no_prefix_suffix_or_case_variant_is_taken_for_an_id(name: str, change: str) -> None:
    other = change.format(name, name)
    for text in (f"sessions/main/{other}", f"main:{other}", f"Session ID: {other}", f"[main/sessions/main/{other}#L1]"):
        assert not refers(text, name)
        if name.swapcase() != name:
            assert not refers(text.replace(other, name), name.swapcase())


def test_report_B02_a_prefix_shaped_reference_selects_no_longer_id() -> None:
    texts = [f"[main/sessions/main/{name}#L1] User: hi" for name in ("chat-1", "chat-10", "Chat-1")]
    assert [refers(text, "chat-1") for text in texts] == [True, False, False]
    assert [refers(text.replace("#L1", ""), "chat-1") for text in texts] == [True, False, False]
