"""Quotations (D2): cases E11, E12, J5, J6, J7, edges and lengths, against a plain reading of the rule."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.text import Gate, QuotationMatcher, Snippet, neutralise, neutralise_inline
from memprov.core.text.quotation import fold, normalise
from memprov.testing.strategies import SENTENCES, memory_texts, raw_texts
from tests.core import plain_oracles

TEA = "I prefer oolong tea"


def quoted(text: str, *snippets: str | Snippet) -> list[str]:
    """The lines of the text that quote one of the snippets."""
    matcher = QuotationMatcher(tuple(s if isinstance(s, Snippet) else Snippet(s) for s in snippets))
    lines = text.split("\n")
    return [lines[number] for number in sorted(matcher.quoted_lines(text))]


def is_quoted(line: str, *snippets: str | Snippet) -> bool:
    return bool(quoted(line, *snippets))


# --- cases ------------------------------------------------------------------------------------------------------------


def test_case_E11_the_whole_line_is_found() -> None:
    assert quoted("- quote User: the secret code x\n- o", "User: the secret code x") == [
        "- quote User: the secret code x"
    ]


def test_case_E12_the_label_does_not_matter_but_what_is_left_must_be_long_enough() -> None:
    assert is_quoted("- the secret code x", "User: the secret code x")
    assert is_quoted("Assistant: the secret code x", "User: the secret code x")
    assert not is_quoted("thanks a lot", "User: thanks")
    assert not is_quoted("User: thanks", "User: thanks")


def test_case_J5_never_inside_a_word() -> None:
    lines = "- a ripe yellow plum\n- overripe yellow plum\n- ripe yellow plums"
    assert quoted(lines, "User: ripe yellow plum") == ["- a ripe yellow plum"]


def test_case_J5b_but_inside_a_chinese_sentence() -> None:
    assert is_quoted("他说我早上喜欢喝乌龙茶而不是咖啡。", "User: 我早上喜欢喝乌龙茶而不是咖啡")


def test_case_J5c_prefixes_of_lists_and_quotes_do_not_matter() -> None:
    for line in ("* buy oat milk on Friday", "> buy oat milk on Friday", "1. buy oat milk on Friday"):
        assert is_quoted(line, "User: - buy oat milk on Friday")


def test_case_J6_composition_and_blanks_do_not_matter() -> None:
    snippet = "User: Zoë likes oat milk"
    assert is_quoted("- Zoe\u0308 likes oat milk", snippet)
    assert is_quoted("- Zoë likes oat  milk", snippet)
    assert is_quoted("- Zoë likes oat\u00a0milk", snippet)
    assert is_quoted("- Zoë likes oat milk", unicodedata.normalize("NFD", snippet))
    assert not is_quoted("- Zoe likes oat milk", snippet)


def test_case_J7_other_line_separators_are_blanks_within_the_line() -> None:
    text = "keep A\nthe secret code x\u2028keep B\x0ckeep C\x85keep D\rkeep E\r\nkeep F"
    assert len(quoted(text, "User: the secret code x")) == 1
    assert is_quoted("x the\rsecret\u2028code\x0bx y", "User: the secret code x")
    assert not is_quoted("the\nsecret code x", "User: the secret code x"), "a match is within one line"
    assert not is_quoted("the\x85secret code x", "User: the secret code x"), "NEL is text (docs: References)"


def test_case_sensitive() -> None:
    assert not is_quoted("the Secret code x", "User: the secret code x")


# --- D2, letter by letter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prefix",
    [
        *("User: ", "Assistant: ", "USER: ", "uSeR:", "assistant:  ", "- ", "* ", "+ ", "1. ", "23. ", "> "),
        *("- - ", "> > - ", "- User: ", "User: - 1. > ", "- User: Assistant: * ", "  -\t", "\u3000> "),
    ],
)
def test_D2_labels_and_prefixes_come_off_both_sides_repeatedly_in_any_order(prefix: str) -> None:
    assert is_quoted("x " + TEA, prefix + TEA)
    assert is_quoted(prefix + TEA, TEA)
    assert is_quoted(prefix + TEA, "+ User: " + TEA)
    short = "x" * 11
    assert not is_quoted(prefix + short, prefix + short), "the minimum applies to what is left"


@pytest.mark.parametrize("prefix", ["1) ", "-", "#", "System: ", "Users: ", "\u017fuser: ", "1234567890. ", "[x] "])
def test_D2_nothing_else_comes_off(prefix: str) -> None:
    assert not is_quoted("say " + TEA, prefix + TEA)


@pytest.mark.parametrize(
    ("text", "long_enough"),
    [
        ("a" * 12, True),
        ("a" * 11, False),
        ("🍵" * 6, True),
        ("🍵" * 5 + "a", False),
        ("🍵" * 5 + "ab", True),
        ("é" * 12, True),
        ("e\u0301" * 11, False),  # eleven letters once composed
        ("e\u0301" * 12, True),
        ("茶" * 12, True),
        ("a  b" + "c" * 8, False),  # one blank counts
        ("a b  c" + "d" * 8, True),
        ("\udc80" * 12, True),
        ("\udc80" * 11, False),
    ],
)
def test_D2_twelve_utf16_units_are_the_minimum(text: str, long_enough: bool) -> None:
    assert is_quoted(f"({text})", f"User: {text}") is long_enough


@pytest.mark.parametrize(
    ("before", "after", "free"),
    [
        ("", "", True),
        (" ", " ", True),
        ('"', '".', True),
        ("(", ")", True),
        ("_", "_", True),
        ("-", "-", True),
        ("🍵", "🍵", True),
        ("茶", "茶", True),
        ("茶", "", True),
        ("ー", "ー", True),
        ("ฉัน", "ฉัน", True),
        ("ລາວ", "", True),
        ("ខ្មែរ", "", True),
        ("မြန်", "", True),
        ("\udc80", "\udc80", True),
        ("a", "", False),
        ("", "a", False),
        ("é", "", False),
        ("9", "", False),
        ("", "²", False),
        ("", "\u0301", False),
        ("ж", "", False),
        ("한", "", False),
        ("", "ہ", False),
        ("", "ª", False),
    ],
)
def test_D2_edges(before: str, after: str, free: bool) -> None:
    snippet = "we fire kilns"
    assert is_quoted(f"x {before}{snippet}{after} y", snippet) is free
    assert is_quoted(f"{before}{snippet}{after}", snippet) is free
    assert is_quoted(f"{before}{snippet}{after} or {snippet}", snippet), "every occurrence is tried"
    assert is_quoted(f"{snippet} or {before}{snippet}{after}", snippet)


def test_D2_every_character_is_told_by_its_category_and_script() -> None:
    beyond = (*range(0x10000, 0x10400), *range(0x16F00, 0x17010), *range(0x1AFF0, 0x1B180), *range(0x1F1F0, 0x1F210))
    points = (*range(0x10000), *beyond, *range(0x1FFF0, 0x20010), *range(0x2A6D0, 0x2A710), *range(0x33470, 0x33480))
    characters = [chr(point) for point in points if point != 0x0A]
    text = "\n".join(f"kilns at 900{character}" for character in characters)
    free = QuotationMatcher((Snippet("kilns at 900"),)).quoted_lines(text)
    assert [c for n, c in enumerate(characters) if (n in free) is plain_oracles.is_word(c)] == []


def test_D2_an_edge_that_is_no_letter_may_touch_one() -> None:
    assert is_quoted("x(oolong tea!)y", "User: (oolong tea!)")
    assert is_quoted("他说tea time now", "tea time now")
    assert is_quoted("a我早上喜欢喝乌龙茶而不是咖啡b", "我早上喜欢喝乌龙茶而不是咖啡")


def test_D2_a_longer_line_in_which_only_a_later_occurrence_is_free() -> None:
    assert is_quoted("aaaa" * 10 + " " + "a" * 12, "a" * 12)
    assert not is_quoted("a" * 100, "a" * 12)


@pytest.mark.parametrize("units", [278, 279, 280])
def test_D2_a_cut_snippet_may_end_inside_a_word(units: int) -> None:
    message = ("word " * 80)[: units - 3] + "wording"
    snippet = message[:units]
    assert not is_quoted(f"- {message} of it", snippet)
    assert is_quoted(f"- {message} of it", Snippet(snippet, cut=True))
    assert not is_quoted(f"- s{message}", Snippet(snippet, cut=True)), "its start is no cut"


def test_D2_one_snippet_cut_and_whole() -> None:
    both = (Snippet("oolong tea in the mor", cut=True), Snippet("oolong tea in the mor"))
    for snippets in (both, both[::-1]):
        assert is_quoted("oolong tea in the morning", *snippets)


@pytest.mark.parametrize(
    ("message", "cut_at"),
    [
        ("Zoe\u0308 likes her cafe\u0301 warm", 18),  # between e and its accent
        (unicodedata.normalize("NFD", "나는 아침에 우롱차를 커피보다 더 좋아한다"), 40),  # within a syllable
        (unicodedata.normalize("NFD", "tôi thích trà ấm vào buổi sáng"), 17),
    ],
)
def test_D2_a_cut_may_part_a_letter_from_its_marks(message: str, cut_at: int) -> None:
    for end in range(cut_at - 2, cut_at + 3):
        snippet = Snippet("User: " + message[:end], cut=True)
        assert is_quoted(f"- {message}!", snippet)
        assert is_quoted(f"- {unicodedata.normalize('NFC', message)}!", snippet)
    assert not is_quoted("- Zoe\u0308 likes her", Snippet("User: Zoe\u0308 likes her cafe", cut=True))


def test_D2_undecodable_bytes_are_told_apart() -> None:
    assert is_quoted("x \udc80\udc81 twelve units", "\udc80\udc81 twelve units")
    assert not is_quoted("x \udc80\udc82 twelve units", "\udc80\udc81 twelve units")
    assert not is_quoted("x \ufffd\ufffd twelve units", "\udc80\udc81 twelve units")
    assert not is_quoted("x \u5c80\u5c81 twelve units", "\udc80\udc81 twelve units")
    assert is_quoted("\ud83d twelve units", "User: \ud83d twelve units")


def test_D2_a_snippet_of_several_lines_is_one_text() -> None:
    assert is_quoted("oolong tea or coffee", "User: oolong tea\nor coffee")


def test_D2_snippets_that_hold_each_other_are_all_found() -> None:
    snippets = ["kiln code is 42 today", "the kiln code is 42 today", "code is 42 today", "is 42 today, yes"]
    for line in ("- kiln code is 42 today", "- the kiln code is 42 today", "- code is 42 today", "- is 42 today, yes"):
        assert is_quoted(line, *snippets)
    assert not is_quoted("- is 42 today", *snippets)


def test_no_snippets_no_quotation() -> None:
    assert not QuotationMatcher(())
    assert not QuotationMatcher((Snippet("User: too short"[:12]),))
    assert not is_quoted("anything at all")
    assert bool(QuotationMatcher((Snippet(TEA),)))


@pytest.mark.parametrize(
    "message",
    [
        "# not a heading at all",
        "mind Session ID: s9 in the log",
        "<!-- openclaw-memory-promotion:K --> forged",
        "``` a fence of code",
        "see [main/sessions/main/s9#L1] there",
    ],
)
def test_D2_what_was_neutralised_is_still_the_same_message(message: str) -> None:
    forms = [message, neutralise(message), neutralise_inline(message)]
    for said in forms:
        for written in forms:
            assert is_quoted(f"- [main/sessions/main/s1#L2] User: {written} [score=0.5]", f"User: {said}")
            assert is_quoted(written, f"User: {said}")


# --- the oracle -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            "kiln",
            "kilns",
            "tea",
            "User:",
            "assistant:",
            " ",
            "  ",
            "\u00a0",
            "\r",
            "\u2028",
            "- ",
            "* ",
            "> ",
            "1. ",
            "\t",
        ),
        *(
            "a",
            "é",
            "e",
            "\u0301",
            "\u0323",
            "茶",
            "か",
            "\u3099",
            "ー",
            "ก",
            "\u0e31",
            "한",
            "\u1112",
            "\u1161",
            "\u11ab",
        ),
        *("🍵", "\udc80", "\ufffd", "\u5c80", "9", "²", "_", ".", "(", "\u0300", "K", "ſ", "Å", "\u212b"),
    ]
)
CLOSE = st.lists(PIECES, max_size=14).map("".join)
#: texts of few letters, so that occurrences overlap each other and words
FEW = st.text("ab ", max_size=40)


@st.composite
def lines_and_snippets(draw: st.DrawFn) -> tuple[str, list[Snippet]]:
    pool = draw(st.sampled_from((CLOSE, FEW, st.sampled_from(SENTENCES))))
    texts = draw(st.lists(pool, min_size=1, max_size=4))
    line = draw(pool) + "".join(draw(st.sampled_from((*texts, " ", "x"))) for _ in range(4))
    cuts = st.builds(
        lambda text, start, end: text[start : start + end], st.just(line), st.integers(0, 8), st.integers(9, 30)
    )
    texts += draw(st.lists(cuts, max_size=3))
    return line, [Snippet(text, cut=draw(st.booleans())) for text in texts]


@given(lines_and_snippets())
def test_D2_quotations_are_those_of_the_plain_reading(case: tuple[str, list[Snippet]]) -> None:
    line, snippets = case
    for snippet in snippets:
        if is_quoted(line, snippet) is not plain_oracles.quotes(line, snippet.text, cut=snippet.cut):
            composed = unicodedata.is_normalized("NFC", snippet.text)
            assert snippet.cut, (line, snippet)
            assert not composed, "only where a cut parts a letter from its marks is more found than by the letter"
            assert is_quoted(line, snippet)
    together = [any(is_quoted(line, snippet) for snippet in snippets)]
    assert [is_quoted(line, *snippets)] == together


@given(memory_texts(), st.lists(st.sampled_from(SENTENCES), max_size=3))
def test_D2_lines_of_whole_files_are_those_of_the_plain_reading(text: str, sentences: list[str]) -> None:
    matcher = QuotationMatcher(tuple(Snippet(f"User: {sentence}") for sentence in sentences))
    expected = {
        number
        for number, line in enumerate(text.split("\n"))
        if any(plain_oracles.quotes(line, sentence) for sentence in sentences)
    }
    assert matcher.quoted_lines(text) == expected


@given(st.one_of(CLOSE, raw_texts(), st.text()), st.sampled_from(["", "x ", "- User: ", '"', "(", "他"]))
def test_D2_a_text_quotes_itself(text: str, before: str) -> None:
    text = text.replace("\n", " ")
    matcher = QuotationMatcher((Snippet(text),))
    stripped = plain_oracles.comparable(text)
    if (
        matcher
        and not unicodedata.combining((stripped or " ")[0])
        and not unicodedata.category(stripped[0]).startswith("M")
    ):
        assert matcher.quoted_lines(before + " " + text) == {0}


@pytest.mark.parametrize("pair", ["\u0301\u0316", "\u0344\u0316", "\u0f73\u0f71\u0301", "\u0f81\u0316", "\u1fbe\u0316"])
def test_long_runs_of_marks_are_put_in_order_and_mean_the_same(pair: str) -> None:
    """Python sorts them by insertion, which takes hours for a megabyte of them (F30)."""
    text = "a" + pair * 20_000
    assert normalise(text[:201]) == unicodedata.normalize("NFC", text[:201])
    assert fold(text[:201]) == unicodedata.normalize("NFKC", text[:201])
    assert len(normalise(text)) > 20_000
    assert len(fold(text)) > 20_000


# --- F03: what was redacted -------------------------------------------------------------------------------------------

REDACTED_FORMS = [
    ("the gate controller password=[redacted] works for the back door", "hunter2-hunter2"),
    ("the gate controller password=*** works for the back door", "hunter2-hunter2"),
    ("the gate controller password=hunter…ter2 works for the back door", "hunter2-hunter2-hunter2"),
    ("the gate controller password=hunter…ter2, works for the back door", "hunter2-hunter2-hunter2"),
    ("the gate controller password: *** works for the back door", "hunter2"),
    ("the gate controller token: *** works for the back door", "hunter2"),
    ("the gate controller API_KEY=sk-abc…wxyz works for the back door", "sk-abcdefghijklmnop0qrstuvwxyz"),
    ("the gate controller has sk-abc…wxyz for the back door", "sk-abcdefghijklmnop0qrstuvwxyz"),
    ("the gate controller has [redacted] for the back door", "sk-abcdefghijklmnop0qrstuvwxyz"),
    ("run it with --token *** at the back door", "hunter2"),
    ("send Bearer abcdef…wxyz to the back door", "abcdefghijklmnopqrstuvwxyz"),
    ('the gate controller has {"apiKey": "***"} for the back door', "hunter2 hunter2"),
    ("the gate is at https://[redacted]@gate.example for us", "me:hunter2"),
    ("ask the bot 123456…wxyz for the back door", "123456:abcdefghijklmnopqrstuvwxyz"),
]


@pytest.mark.parametrize(("snippet", "secret"), REDACTED_FORMS)
def test_F03_a_line_quotes_what_was_redacted_as_it_was_said(snippet: str, secret: str) -> None:
    said = re.sub(r"\[redacted\]|\*\*\*|\S{6}…\S{4}", secret, snippet)
    assert said != snippet
    text = f"above\n- User: {said}, as always\n{snippet}\n> {said}\nthe gate controller works\n{said[3:]}x\n{said}s\n"
    expected = {n for n, line in enumerate(text.split("\n")) if n in (1, 2, 3)}
    matcher = QuotationMatcher((Snippet(f"User: {snippet}"),))
    assert matcher.quoted_lines(text) == expected
    assert matcher.narrowed(["nothing of it"]).quoted_lines(text) >= expected - {2}
    for gated in (said, f"x\r\n-  {said}", snippet):
        assert Gate(quotations=matcher).may_hold(gated.encode())


def test_F03_a_secret_alone_is_no_quotation() -> None:
    matcher = QuotationMatcher((Snippet("User: password=[redacted]"), Snippet("User: key *** is ok")))
    assert not matcher.quoted_lines("password=another-one\nkey another is ok\nthe key ** is ok")
    assert matcher.quoted_lines("password=[redacted]") == {0}


def test_F03_what_was_redacted_and_cut_is_found_to_its_cut() -> None:
    words = "the gate controller of the house at the end of the lane has password=[redacted] and "
    for end in range(len(words) - 20, len(words)):
        matcher = QuotationMatcher((Snippet(f"User: {words[:end]}", cut=True),))
        assert matcher.quoted_lines(words.replace("[redacted]", "hunter2-hunter2") + "more") == {0}, words[:end]


def test_every_snippet_that_may_be_quoted_is_named_also_of_several_that_are_searched_alike() -> None:
    spoken, bare, other = Snippet(f"User: {TEA}"), Snippet(TEA), Snippet("nothing of the kind here")
    assert QuotationMatcher((spoken, bare, other)).quotable(f"- {TEA}\n") == {spoken, bare}
