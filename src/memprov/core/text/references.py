"""Does this text refer to that session? File names, path and scoped references, and ``Session ID:`` labels.

The predicate is for prose: headings, lines, what an event says. A column that holds one path or one scope is compared
whole (F14). Ids are opaque and compared exactly (I12): an id is never found inside a longer one. What differs from the
reference behaviour (docs: References) is punctuation, D5: a reference may stand in brackets, quotes, emphasis or code
and may end a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache

from attrs import field, frozen

from memprov.core.records import string_set
from memprov.core.text.lines import WSP

__all__ = ["Label", "SessionMatcher", "has_label", "named_sessions", "references_session", "session_id_from_file_name"]

#: What may surround a reference (D5); a full stop may follow it too.
_AROUND = "()[]<>{}\"'`*_=,;:!?"
_BEFORE = frozenset(WSP + _AROUND + "/")
_TRAILING = _AROUND + "."

_WS = re.escape(WSP)
_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]{3})?Z"
_ARCHIVE = re.compile(rf"(.*)\.jsonl\.(?:reset|deleted)\.{_STAMP}(?:\.[0-9a-f]{{32}})?", re.DOTALL)
# Letters fold as in JavaScript: ASCII only.
_CHECKPOINT = re.compile(
    r".*\.checkpoint\.[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.jsonl",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)
#: ``Session ID:`` plain, bold or in code, with a value; JavaScript's word boundary is an ASCII one, and ``_`` may open
#: emphasis. The value is not consumed: the word after an empty label may itself begin a label, in a text of many lines.
_LABEL = re.compile(
    rf"(?<![0-9A-Za-z_])_{{0,3}}Session ID[*_`]{{0,4}}:(?:[*_`]{{1,4}}(?=[{_WS}]))?[{_WS}]*"
    rf"(?=([*_`]*[^*_`;{_WS}][^;{_WS}]*))",
    re.IGNORECASE | re.ASCII,
)


def session_id_from_file_name(name: str) -> str | None:
    """The session id that a transcript's or archive's file name stands for, or ``None`` (docs: File names).

    >>> session_id_from_file_name("kiln.jsonl.deleted.2026-08-26T10-00-00.000Z.zst")
    'kiln'
    """
    if ".jsonl" not in name:
        return None
    stem = name.removesuffix(".zst")
    if archive := _ARCHIVE.fullmatch(stem):
        return archive[1] if _is_primary(archive[1] + ".jsonl") else None
    return stem.removesuffix(".jsonl") if stem == name and _is_primary(stem) else None


def _is_primary(name: str) -> bool:
    return (
        name.endswith(".jsonl")
        and not name.endswith(".trajectory.jsonl")
        and not _CHECKPOINT.fullmatch(name)
        and not _ARCHIVE.fullmatch(name)
    )


def has_label(text: str) -> bool:
    """Whether the text holds a ``Session ID:`` label, of whichever session (D5)."""
    return _LABEL.search(text) is not None


def references_session(text: str, agent_id: str, session_ids: Collection[str]) -> bool:
    """Whether ``text`` refers to one of the agent's sessions, in any of the three forms (docs: References, D5).

    Case-sensitive and exact. No ids: never. Raises ``InputError`` for a lone string of ids.
    """
    return SessionMatcher(agent_id, session_ids).refers(text)


def named_sessions(text: str, agent_id: str) -> frozenset[str]:
    """The ids that labels and references in the text name, known or not, less the punctuation around them (D5)."""
    path = _reference_pattern(agent_id)
    tokens = [match[1] for match in _LABEL.finditer(text) if not path.search(match[1])]
    tokens += (re.split(r"[()<>{}\"'`*=,!?]", match[1])[0] for match in path.finditer(text))
    names = (token.lstrip(_AROUND).rstrip(_TRAILING) for token in tokens)
    return frozenset(session_id_from_file_name(name) or name for name in names if name)


@frozen
class Label:
    """One ``Session ID:`` label: where its value starts and whether the value names a selected session."""

    start: int
    selected: bool


@lru_cache(maxsize=64)
def _reference_pattern(agent_id: str) -> re.Pattern[str]:
    # The token of a path or scoped form (docs: References); where a separator and another reference begin,
    # the token may end early.
    agent = re.escape(agent_id)
    start = rf"(?:sessions/{agent}/|{agent}:(?!sessions/))"
    return re.compile(rf"{start}([^{_WS}\]#;:/]+)")


@lru_cache(maxsize=64)
def _plain_path(agent_id: str) -> re.Pattern[str]:
    """What nearly every path is: a reference that can be read in one way only. There are hundreds of thousands."""
    return re.compile(rf"sessions/{re.escape(agent_id)}/([0-9A-Za-z-]+)(?:\.jsonl)?")


@frozen
class SessionMatcher:
    """The predicate for one agent and one set of ids, for callers that ask about many texts."""

    agent_id: str
    session_ids: frozenset[str] = field(converter=string_set)

    def refers(self, text: str) -> bool:
        """Whether the text refers to a selected session in any form."""
        if not self.session_ids:
            return False
        return self._names(text) or any(label.selected for label in self.labels(text))

    def owns_path(self, path: str) -> bool:
        """Whether an index or recall path is a selected session's transcript or archive (docs: Index).

        Such a column holds one path, which is compared whole: an id may hold a blank, a slash or any punctuation, and
        ``sessions/main/a b.jsonl`` is nothing of session ``a`` (F14).
        """
        if plain := _plain_path(self.agent_id).fullmatch(path):
            return plain[1] in self.session_ids
        prefix = f"sessions/{self.agent_id}/"
        if not path.startswith(prefix):
            return False
        name = path[len(prefix) :]
        decoded = session_id_from_file_name(name)
        return (name if decoded is None else decoded) in self.session_ids

    def owns_state(self, key: str) -> bool:
        """Whether a checkpoint key or seen-hash scope is a selected session's: ``AGENT:ID``, or the path of its
        transcript after ``AGENT:`` (docs: Checkpoints and seen hashes). Compared whole, as a path is (F14).
        """
        rest = key.removeprefix(f"{self.agent_id}:")
        return rest != key and (rest in self.session_ids or self.owns_path(rest))

    def labels(self, text: str) -> Iterator[Label]:
        """The ``Session ID:`` labels in the text, in order."""
        for match in _LABEL.finditer(text):
            value = match[1]
            yield Label(match.start(1), self._is_selected_value(value))

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple({len(name) for name in self.session_ids})

    @cached_property
    def _leads(self) -> tuple[int, ...]:
        """With how much punctuation the selected ids begin."""
        return tuple({len(name) - len(name.lstrip(_AROUND)) for name in self.session_ids})

    def _is_selected_value(self, value: str) -> bool:
        lead = len(value) - len(value.lstrip(_AROUND))
        if any(own <= lead and self._ends(value[lead - own :], raw=True) for own in self._leads):
            return True
        # A label may hold the full reference instead of the bare id.
        return self._names(value)

    def _names(self, text: str) -> bool:
        """Path form and scoped form."""
        pattern = _reference_pattern(self.agent_id)
        position = 0
        while match := pattern.search(text, position):
            start = match.start()
            if start and text[start - 1] not in _BEFORE:
                position = start + 1
                continue
            token = match[1]
            if self._ends(token, raw=False):
                return True
            # "sessions/main/a,sessions/main/b" is two references, not one to "a,sessions".
            position = match.end()
            for separator in re.finditer(r"[()<>{}\"'`*_=,!?]", token):
                rest = match.start(1) + separator.end()
                if pattern.match(text, rest):
                    if self._ends(token[: separator.start()], raw=False):
                        return True
                    position = rest
                    break
        return False

    def _ends(self, token: str, *, raw: bool) -> bool:
        """Whether the token, less none or more of its trailing punctuation, is a selected id (D5)."""
        body = token.rstrip(_TRAILING)
        decoded = None if raw else session_id_from_file_name(body)
        if (body if decoded is None else decoded) in self.session_ids:
            return True
        return any(token[:length] in self.session_ids for length in self._lengths if len(body) < length <= len(token))
