"""The gate over bytes: never wrong when it says no (I16), in every form in which a text can hold what is selected."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from memprov import ScrubRules, Snippet, scrub_text
from memprov.core.text import Gate, QuotationMatcher, to_bytes, to_text
from memprov.testing.strategies import SENTENCES, memory_texts, scrub_rules

SAID = "the kiln code is 42 today, as always"


def gate_of(*snippets: str | Snippet, literals: tuple[str, ...] = ()) -> Gate:
    chosen = tuple(s if isinstance(s, Snippet) else Snippet(s) for s in snippets)
    return Gate(literals, QuotationMatcher(chosen))


@given(memory_texts(), scrub_rules())
def test_I16_what_a_scrub_changes_passes_the_gate(text: str, rules: ScrubRules) -> None:
    data = to_bytes(text)
    assume(to_text(data) == text)
    if scrub_text(text, rules).changed:
        assert rules._gate.may_hold(data)


# One for each way in which a line may quote a snippet without holding its bytes (D2, F03).
FORMS = {
    "as it was said": (SAID, SAID),
    "blanks doubled": (SAID, SAID.replace(" ", "  ")),
    "one blank doubled": (SAID, SAID.replace("is 42", "is  42")),
    "tab": (SAID, SAID.replace(" 42", "\t42")),
    "form feed": (SAID, SAID.replace(" 42", "\f42")),
    "lone return": (SAID, SAID.replace(" 42", "\r42")),
    "no-break space": (SAID, SAID.replace(" 42", "\u00a042")),
    "ideographic space": (SAID, SAID.replace(" 42", "\u300042")),
    "line separator": (SAID, SAID.replace(" 42", "\u202842")),
    "byte order mark": (SAID, SAID.replace(" 42", "\ufeff42")),
    "the snippet oddly spaced": (SAID.replace(" ", "\u2003 "), SAID),
    "speaker": (f"User: {SAID}", f"  - > assistant:  {SAID}\r"),
    "escaped comment": ("this is <!-- hidden --> text", r"this is <\!-- hidden --\> text"),
    "escaped label": ("a Session ID: kiln is here", r"a Session ID\: kiln is here"),
    "escaped heading": ("# the kiln code is 42", r"\# the kiln code is 42"),
    "decomposed": ("Zoë likes her oat milk", "Zoe\u0308 likes her oat milk"),
    "the snippet decomposed": ("Zoe\u0308 likes her oat milk", "Zoë likes her oat milk"),
    "Kelvin sign": ("it was 300 K in the kiln", "it was 300 \u212a in the kiln"),
    "unspaced": ("我早上喜欢喝乌龙茶而不是咖啡", "他说我早上喜欢喝乌龙茶而不是咖啡吧"),
    "compatibility ideograph": ("我早上喜欢喝樂龙茶而不是咖啡", "我早上喜欢喝\uf914龙茶而不是咖啡"),
    "Thai": ("ฉันชอบดื่มชาอู่หลงตอนเช้า", "ว่าฉันชอบดื่มชาอู่หลงตอนเช้าครับ"),
    "undecodable": ("the \udcff kiln \udce4 code is 42", "- the \udcff kiln \udce4 code is 42"),
    "a secret as it was said": ("my password=[redacted] since May", "- my password=hunter2hunter since May"),
    "much longer than a probe": ("word " * 60, "- " + "word " * 60),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["{}", "x\n{}\ny", "a  b\n- {}\r\nc\\d\n"])
def test_I16_every_form_of_a_quotation_passes(form: str, place: str) -> None:
    snippet, line = FORMS[form]
    text = place.format(line)
    assert QuotationMatcher((Snippet(snippet),)).quoted_lines(text), "the form is no quotation; mend the test"
    assert gate_of(snippet).may_hold(to_bytes(text))
    assert gate_of("something else that nobody said", snippet, literals=("id",)).may_hold(to_bytes(text))


@pytest.mark.parametrize("form", [form for form in FORMS if to_bytes(FORMS[form][0]) not in to_bytes(FORMS[form][1])])
def test_the_bytes_alone_would_miss_these(form: str) -> None:
    """The twin: a gate that only looks for the snippet is caught by these forms."""
    snippet, line = FORMS[form]
    assert to_bytes(snippet) not in to_bytes(line)


def test_a_cut_snippet_passes_where_its_end_was_cut() -> None:
    cut = Snippet("the kiln code is 42 tod", cut=True)
    assert gate_of(cut).may_hold(SAID.encode())
    parted = Snippet("the kiln code is of Zoe", cut=True)
    assert gate_of(Snippet(parted.text + "\u0308", cut=True)).may_hold("the kiln code is of Zoë".encode())


@pytest.mark.parametrize(
    ("snippet", "line"),
    [
        ("my password is [redacted] since May", "my password is hunter2 since May"),
        ("[redacted] is what I use since May", "hunter2 is what I use since May"),
        ("I use since the first of May [redac", "I use since the first of May hunter2"),
        ("] is what I use since May, yes", "hunter2 is what I use since May, yes"),
        ("[redacted] [redacted]", "anything at all"),
    ],
)
def test_F03_what_redaction_wrote_is_not_looked_for(snippet: str, line: str) -> None:
    assert gate_of(snippet).may_hold(line.encode())


def test_literals_pass_beside_odd_blanks() -> None:
    gate = gate_of(SAID, literals=("  id", "key"))
    assert gate.may_hold(b"x   id")
    assert gate.may_hold(b"a\\key")
    assert gate.may_hold(b"a  key")
    assert not gate.may_hold(b"a  ke\ny and id")


def test_what_holds_nothing_does_not_pass() -> None:
    gate = gate_of(SAID, literals=("s1",))
    for text in ("", "- other words\n", "odd  blanks\tand \\ more\n", "Zoe\u0308 Zoë\n", "我早上喜欢喝\n"):
        assert not gate.may_hold(to_bytes(text))
    assert not Gate().may_hold(b"anything")


@given(st.text("ab \t\\e\u0308é茶\u00a0\n", max_size=60), st.sampled_from(SENTENCES), st.booleans())
@example("a\u00a0", SENTENCES[2], True)
def test_I16_a_quotation_anywhere_passes(around: str, said: str, decomposed: bool) -> None:
    text = f"{around} {unicodedata.normalize('NFD', said) if decomposed else said} {around}"
    if QuotationMatcher((Snippet(said),)).quoted_lines(text):
        assert gate_of(said).may_hold(to_bytes(text))


@given(
    st.lists(st.sampled_from(["s1", "x", f"- {SAID.replace(' ', '  ')}", "odd  blanks", "Zoe\u0308", ""]), max_size=9)
)
def test_texts_tested_together_are_told_apart(texts: list[str]) -> None:
    gate = gate_of(SAID, literals=("s1",))
    found = list(gate.sift((number, to_bytes(text)) for number, text in enumerate(texts)))
    assert found == [number for number, text in enumerate(texts) if gate.may_hold(to_bytes(text))]
