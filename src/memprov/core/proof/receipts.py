"""Receipts: what was forgotten, when and how far, in a form that a stranger can check and that holds no content.

A receipt names sessions by keyed digests; the key lies in the store's log and is not erased with a session. Every
receipt carries the digest of the one before it (a hash chain), its own digest, and a seal that only the holder of the
key can make. So a receipt that was altered, invented, left out, moved or cut off is noticed; a log that was replaced as
a whole, or cut at its end, is noticed by whoever noted an earlier digest elsewhere (a pinned head).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import cattrs
from attrs import evolve, frozen
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from memprov.core.proof.erasure import Erasure
from memprov.core.proof.verdicts import LIMITS, Verdict, Verification
from memprov.core.purge import PurgePlan
from memprov.errors import InputError

__all__ = [
    "MAX_RECEIPT_BYTES",
    "Receipt",
    "Witness",
    "attested",
    "chain_problems",
    "own_problems",
    "seal_receipt",
    "sessions_named",
    "witness_of",
]

#: A receipt read from disk may not be larger; one of 10⁵ sessions is below a tenth of it.
MAX_RECEIPT_BYTES = 1 << 26
_FORMAT = "memprov receipt 1"


@frozen
class Witness:
    """What a verification said, without its places: verdict, counts and controls."""

    verdict: Verdict
    residue: int
    retained: int
    ids: int
    texts: int
    shared_texts: int
    files: int
    obstacles: int
    controls: tuple[tuple[str, int, int], ...] = ()


@frozen
class Receipt:
    """One purge, testified. ``complete`` says that nothing selected was left, as far as the level goes.

    ``sessions`` are keyed digests, sorted. ``counts`` are those of the report. ``reached`` and ``unreached`` say what
    erasure did. ``issued_at_ms`` is in milliseconds since 1970. ``previous`` is the digest of the receipt before.
    """

    number: int
    previous: str | None
    issued_at_ms: int
    store: str
    agent_id: str
    level: str
    complete: bool
    sessions: tuple[str, ...]
    plan_digest: str
    counts: tuple[tuple[str, int], ...] = ()
    reached: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    verification: Witness | None = None
    versions: tuple[tuple[str, str], ...] = ()
    limits: tuple[str, ...] = ()
    seal: str = ""

    def __repr__(self) -> str:
        whole = "complete" if self.complete else "incomplete"
        return (
            f"<Receipt {self.number} of agent {self.agent_id!r}: {len(self.sessions)} sessions, {self.level}, {whole}>"
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, the seal included: what the next receipt carries, and what may be pinned."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The receipt as canonical JSON: one line, keys sorted, ASCII."""
        return _canonical({"format": _FORMAT, **_fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read a receipt back, as data. Raises ``InputError`` when it is too large or no receipt."""
        if len(text) > MAX_RECEIPT_BYTES:
            raise InputError(f"the receipt is larger than {MAX_RECEIPT_BYTES} bytes; nothing was read or changed")
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
                raise InputError("this is not a memprov receipt")
            receipt = _converter().structure(_renamed(data, _snake), cls)
            if _canonical(data) != _canonical(_fields(receipt)):
                raise InputError("this is not a memprov receipt as memprov writes it")
        except (ValueError, TypeError, KeyError, RecursionError, BaseValidationError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("this is not a memprov receipt, or it is damaged") from error
        return receipt


def attested(
    plan: PurgePlan,
    *,
    nothing_left: bool,
    erasure: Erasure | None = None,
    verification: Verification | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Receipt:
    """What can be testified of a plan that was carried out, still without number, time, names and seal.

    It is ``complete`` when planning again finds nothing to remove, erasure reached everything that it was to reach, and
    a verification that was asked for found no residue.
    """
    report = plan.report.to_dict()
    groups = (report["artifacts"], report["extraArtifacts"])
    counts = {name: count for group in groups if isinstance(group, dict) for name, count in group.items()}
    unreached = () if erasure is None else erasure.unreached
    proven = verification is None or verification.verdict is not Verdict.RESIDUE
    return Receipt(
        number=0,
        previous=None,
        issued_at_ms=0,
        store=plan.store.kind,
        agent_id=plan.store.agent_id,
        level=plan.level.value,
        complete=nothing_left and not unreached and proven,
        sessions=(),
        plan_digest=plan.digest,
        counts=tuple(sorted(counts.items())),
        reached=() if erasure is None else erasure.reached,
        unreached=unreached,
        verification=None if verification is None else witness_of(verification),
        versions=tuple(sorted(versions.items())),
        limits=LIMITS,
    )


def session_digest(key: bytes, agent_id: str, session_id: str) -> str:
    """How a receipt names a session: without the key nobody can tell which one it is, or try ids out."""
    return _keyed(key, json.dumps(["session", agent_id, session_id]))


def seal_receipt(draft: Receipt, session_ids: Iterable[str], key: bytes, last: Receipt | None) -> Receipt:
    """The draft as the next receipt after ``last``: numbered, linked, its sessions named, sealed with the key."""
    named = evolve(
        draft,
        number=1 if last is None else last.number + 1,
        previous=None if last is None else last.digest,
        sessions=tuple(sorted(session_digest(key, draft.agent_id, name) for name in set(session_ids))),
        seal="",
    )
    return evolve(named, seal=_keyed(key, named.to_json()))


def sessions_named(receipt: Receipt, known: Iterable[str], key: bytes) -> tuple[str, ...]:
    """Which of the known ids a receipt is about, sorted; only the holder of the key can tell."""
    wanted = frozenset(receipt.sessions)
    return tuple(sorted(name for name in set(known) if session_digest(key, receipt.agent_id, name) in wanted))


def own_problems(receipt: Receipt, key: bytes | None) -> tuple[str, ...]:
    """What is wrong with a receipt by itself: with the key, whether this log's owner made it exactly like this."""
    if key is None:
        return ("there is no key in this store, so the receipt was not made by it",)
    expected = _keyed(key, evolve(receipt, seal="").to_json())
    if not hmac.compare_digest(expected, receipt.seal):
        return ("the receipt was altered, or it was not made by this store: its seal does not fit",)
    return ()


def chain_problems(receipts: Sequence[Receipt], key: bytes | None, head: str | None = None) -> tuple[str, ...]:
    """What is wrong with a log as a whole: numbers, links, seals, and whether a pinned head is still in it."""
    found = []
    last: Receipt | None = None
    for place, receipt in enumerate(receipts, 1):
        if receipt.number != place:
            found.append(f"receipt {receipt.number} stands where number {place} belongs")
        if receipt.previous != (None if last is None else last.digest):
            found.append(f"receipt {receipt.number} does not follow the one before it")
        found.extend(f"receipt {receipt.number}: {problem}" for problem in own_problems(receipt, key))
        last = receipt
    if head is not None and head not in {receipt.digest for receipt in receipts}:
        found.append("the pinned head is not in the log: the log was cut off or replaced, or is of another store")
    return tuple(found)


def witness_of(verification: Verification) -> Witness:
    """A verification as a receipt holds it."""
    return Witness(
        verification.verdict,
        sum(hit.count for hit in verification.residue),
        sum(hit.count for hit in verification.retained),
        verification.ids,
        verification.texts,
        verification.shared_texts,
        verification.files,
        len(verification.obstacles),
        tuple((control.name, control.expected, control.found) for control in verification.controls),
    )


def _keyed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _fields(receipt: Receipt) -> dict[str, object]:
    named = _renamed(_converter().unstructure(receipt), _camel)
    return named if isinstance(named, dict) else {}


def _canonical(values: object) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _renamed(value: object, rename: Callable[[str], str]) -> object:
    """The same values with other names of fields."""
    if isinstance(value, dict):
        return {rename(str(name)): _renamed(inner, rename) for name, inner in value.items()}
    return value


@cache
def _converter() -> cattrs.Converter:
    return make_converter(forbid_extra_keys=True)
