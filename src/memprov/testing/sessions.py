"""Made-up sessions and what is said in them: the part of synthetic data that everything else is derived from.

Deterministic: the same seed gives the same sessions and the same words on every machine and Python version. Text is
drawn from a vocabulary that is large enough for lines to differ early, because that is what makes real text cheap or
expensive to search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random

from attrs import frozen

from memprov.core.records import Identity, SessionKind, SessionRecord, SessionState

__all__ = ["LAST_DAY", "Day", "Speaker", "days_of", "synthetic_sessions"]

#: The day of the newest synthetic session.
LAST_DAY = date(2026, 11, 28)

_DAY_MS = 86_400_000
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_VERBS = ["keeps", "prefers", "stores", "labels", "reviews", "repairs", "paints", "counts", "borrows", "polishes"]
_THINGS = ["ledger", "lantern", "notebook", "kettle", "bicycle", "canoe", "garden", "printer", "telescope"]
_MANNERS = ["brass", "green", "narrow", "borrowed", "spare", "wooden", "folding", "quiet"]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
#: In other scripts, for days abroad. The first two are written without blanks between words.
_ABROAD = (
    "{0}每个{2}都在{1}喝乌龙茶，编号{3}。",
    "{0}は毎週{2}に{1}で本を読みます、番号{3}。",
    "{0} чинит велосипед у {1} каждый {2}, запись {3}.",
    "Zoë {0} préfère le thé glacé près de {1} le {2}, nº {3}.",
    "{1} में {0} हर {2} चाय पीते हैं, क्रमांक {3}।",
)


@frozen
class Day:
    """One day's sessions: ``ingested`` have lines in the corpus, in this order; the others have none."""

    date: date
    ingested: tuple[SessionRecord, ...]
    internal: tuple[SessionRecord, ...] = ()
    abroad: bool = False

    @property
    def iso(self) -> str:
        """The day as files are named after it."""
        return self.date.isoformat()

    @property
    def start_ms(self) -> int:
        """Midnight, UTC."""
        return int(datetime(self.date.year, self.date.month, self.date.day, tzinfo=UTC).timestamp() * 1000)


class Speaker:
    """Says things, one after the other."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed + 1)
        self._names = [(a + b + end).title() for a in _SYLLABLES for b in _SYLLABLES for end in ("", "n", "r")]
        self._deeds = [f"{verb} the {how} {what}" for verb in _VERBS for how in _MANNERS for what in _THINGS]

    def texts(self, numbers: Sequence[int], turns: int, *, abroad: bool) -> list[str]:
        """What is said in the sessions of these numbers, ``turns`` texts for each; every text is unique."""
        choices = self._random.choices
        marks = [f"{number}.{turn}" for number in numbers for turn in range(turns)]
        first, second = (choices(self._names, k=len(marks)) for _ in range(2))
        days = choices(_WEEKDAYS, k=len(marks))
        if abroad:
            forms = choices(_ABROAD, k=len(marks))
            return [
                form.format(who, where, day, mark)
                for form, who, where, day, mark in zip(forms, first, second, days, marks, strict=True)
            ]
        deeds = choices(self._deeds, k=len(marks))
        return [
            f"{who} {deed} near {where} every {day}, note {mark}."
            for who, deed, where, day, mark in zip(first, deeds, second, days, marks, strict=True)
        ]


def days_of(sessions: int, sessions_per_day: int, seed: int, agent_id: str) -> list[Day]:
    """The sessions by day, oldest first."""
    random = Random(seed)
    count = -(-sessions // sessions_per_day)
    days = []
    for index in range(count):
        day = LAST_DAY - timedelta(days=count - 1 - index)
        first = index * sessions_per_day
        numbers = range(first, min(first + sessions_per_day, sessions))
        empty = Day(day, ())
        step = _DAY_MS // (len(numbers) + 1)
        ingested = tuple(
            _session(random, number, empty.start_ms + (i + 1) * step, agent_id) for i, number in enumerate(numbers)
        )
        internal = (_scheduled(random, index, empty.start_ms, agent_id),) if index % 7 == 3 else ()
        days.append(Day(day, ingested, internal, abroad=index % 10 == 9))
    return days


def synthetic_sessions(
    sessions: int = 100, *, sessions_per_day: int = 8, seed: int = 0, agent_id: str = "main"
) -> tuple[SessionRecord, ...]:
    """The catalogue behind ``synthetic_snapshot`` with the same arguments, in the order of a store's catalogue.

    Beside ordinary conversations it has groups, mail and web hooks, participants, archived sessions, windows that were
    rotated out of a live key, and scheduled jobs (these come in addition to ``sessions``).
    """
    records = [r for day in days_of(sessions, sessions_per_day, seed, agent_id) for r in (*day.ingested, *day.internal)]
    return tuple(
        sorted(records, key=lambda r: (r.state is SessionState.ARCHIVED, r.created_at_ms, r.session_id, r.session_key))
    )


def _identifier(random: Random, number: int) -> str:
    high = random.getrandbits(60)
    return f"{high >> 28:08x}-{high >> 12 & 0xFFFF:04x}-4{high & 0xFFF:03x}-8000-{number:012d}"


def _session(random: Random, number: int, created_at_ms: int, agent_id: str) -> SessionRecord:
    """One conversation. Which kind depends on its number only, so that every store has some of each."""
    session_id = _identifier(random, number)

    def record(
        rest: str,
        *,
        kind: SessionKind = SessionKind.INTERACTIVE,
        state: SessionState = SessionState.LIVE,
        channel: str | None = None,
        chat_type: str | None = None,
        hook_source: str | None = None,
        participants: tuple[Identity, ...] = (),
    ) -> SessionRecord:
        key = f"agent:{agent_id}:{rest}"
        return SessionRecord(
            agent_id, session_id, key, kind, state, created_at_ms, channel, chat_type, hook_source, participants
        )

    match number % 20:
        case 3:
            return record(f"hook:mail:{number}", hook_source="gmail")
        case 5:
            who = (_member(number % 7), _member(number % 7 + 1))
            return record(f"telegram:group:{number}", channel="telegram", chat_type="group", participants=who)
        case 8:
            return record(f"hook:web:{number}", hook_source="webhook")
        case 11:
            return record(
                f"dashboard:{number}", chat_type="direct", participants=(Identity("profile", f"profile-{number % 3}"),)
            )
        case 13:  # all that an archive keeps of a session is its key
            return record(f"dashboard:{number}", kind=SessionKind.UNKNOWN, state=SessionState.ARCHIVED)
        case 16:  # rotated out: the next session has its key
            return record(f"dashboard:{number + 1}", state=SessionState.RETAINED)
        case _:
            return record(f"dashboard:{number}")


def _member(number: int) -> Identity:
    return Identity("observation", f"member-{number}", "telegram", "default", "human")


def _scheduled(random: Random, number: int, created_at_ms: int, agent_id: str) -> SessionRecord:
    session_id = _identifier(random, 10**9 + number)
    key = f"agent:{agent_id}:cron:tidy:run:{number}"
    return SessionRecord(agent_id, session_id, key, SessionKind.CRON, created_at_ms=created_at_ms)
