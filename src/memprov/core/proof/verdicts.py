"""What a scan amounts to: clean, residue, or cannot prove. Absence of evidence is never reported as clean.

*Residue* wins: what was found was found. Otherwise whatever could not be read, was not looked for, or is not known to
be readable as bytes, makes the answer *cannot prove*. What a contract retains is counted apart, or clean could not be
reached and would mean nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from attrs import evolve, field, frozen

from memprov.core.proof.needles import Encoding, NeedleSet
from memprov.core.proof.places import NeedleKind, Spot
from memprov.core.proof.surfaces import retained_at
from memprov.core.text import json_text

__all__ = ["LIMITS", "Control", "Finding", "Sighting", "Verdict", "Verification", "judge"]

#: What no scan of files can say; part of every verification and receipt.
LIMITS = (
    "backups, snapshots of the file system and copies elsewhere are not seen: remove the sessions there as well",
    "blocks that the file system or the disk released are not read",
    "paraphrases, hexadecimal and wrapped Base64 are not recognised; pictures, sound and film are not looked into",
)


class Verdict(StrEnum):
    """The answer of ``verify``."""

    CLEAN = "clean"
    RESIDUE = "residue"
    CANNOT_PROVE = "cannot_prove"


@frozen
class Sighting:
    """Needles that a scan saw at one spot, in one encoding."""

    spot: Spot
    kind: NeedleKind
    needle: str
    encoding: Encoding
    count: int = 1


@frozen
class Finding:
    """A sighting that was judged: ``retained`` says by which contract it stays, and is empty for residue; ``removal``
    says how its owner removes it. Names needles by id or number and holds no memory text.
    """

    spot: Spot
    kind: NeedleKind
    needle: str
    encoding: Encoding
    count: int
    retained: str = ""
    removal: str = ""


@frozen
class Control:
    """Something that the scan had to find, or it proves nothing: how much there was, and how much of it was found."""

    name: str
    expected: int
    found: int

    @property
    def holds(self) -> bool:
        """Whether everything was found."""
        return self.found >= self.expected


@frozen
class Verification:
    """What ``verify`` found. ``obstacles`` are the reasons why clean could not be proven, as sentences.

    ``hits`` holds what is retained by contract as well: ``residue`` and ``retained`` are its two parts.
    """

    verdict: Verdict
    hits: tuple[Finding, ...] = ()
    controls: tuple[Control, ...] = ()
    obstacles: tuple[str, ...] = ()
    files: int = 0
    bytes_read: int = 0
    ids: int = 0
    texts: int = 0
    shared_texts: int = 0
    limits: tuple[str, ...] = field(default=LIMITS)

    def __repr__(self) -> str:
        return (
            f"<Verification: {self.verdict}, {len(self.residue)} left, {len(self.retained)} retained, "
            f"{len(self.obstacles)} obstacles, {self.files} files read>"
        )

    @property
    def residue(self) -> tuple[Finding, ...]:
        """What should not be there."""
        return tuple(hit for hit in self.hits if not hit.retained)

    @property
    def retained(self) -> tuple[Finding, ...]:
        """What stays by contract, each with its place and the way to remove it."""
        return tuple(hit for hit in self.hits if hit.retained)

    @property
    def exit_code(self) -> int:
        """The code of the command line (docs: cli): 0 clean, 1 residue, 4 cannot prove."""
        return {Verdict.CLEAN: 0, Verdict.RESIDUE: 1, Verdict.CANNOT_PROVE: 4}[self.verdict]

    def to_dict(self) -> dict[str, object]:
        """The verification as JSON values, without memory text."""
        return {
            "verdict": self.verdict.value,
            "residue": [_finding(hit) for hit in self.residue],
            "retained": [_finding(hit) for hit in self.retained],
            "controls": [{"name": c.name, "expected": c.expected, "found": c.found} for c in self.controls],
            "obstacles": list(self.obstacles),
            "files": self.files,
            "bytesRead": self.bytes_read,
            "needles": {"ids": self.ids, "texts": self.texts, "sharedTexts": self.shared_texts},
            "limits": list(self.limits),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The verification as one JSON document."""
        return json_text(self.to_dict(), indent=indent)


def judge(
    store: str,
    agent_id: str,
    needles: NeedleSet,
    sightings: Iterable[Sighting],
    *,
    controls: tuple[Control, ...] = (),
    obstacles: Iterable[str] = (),
    files: int = 0,
    bytes_read: int = 0,
) -> Verification:
    """The verdict on what a scan of a store saw."""
    counts: Counter[Sighting] = Counter()
    for sighting in sightings:
        counts[evolve(sighting, count=1)] += sighting.count
    hits = []
    for sighting, count in counts.items():
        surface = retained_at(store, agent_id, sighting.spot, sighting.kind)
        kept = ("", "") if surface is None else (surface.why, surface.removal)
        hits.append(Finding(sighting.spot, sighting.kind, sighting.needle, sighting.encoding, count, *kept))
    hits.sort(key=lambda hit: (str(hit.spot), hit.kind, hit.needle, hit.encoding))
    against = [*obstacles, *_doubts(needles, controls)]
    residue = any(not hit.retained for hit in hits)
    verdict = Verdict.RESIDUE if residue else Verdict.CANNOT_PROVE if against else Verdict.CLEAN
    return Verification(
        verdict,
        tuple(hits),
        controls,
        tuple(dict.fromkeys(against)),
        files,
        bytes_read,
        len(needles.needles) - needles.texts,
        needles.texts,
        needles.shared,
    )


def _doubts(needles: NeedleSet, controls: Iterable[Control]) -> Iterable[str]:
    if not needles.needles:
        yield "there was nothing to look for"
    elif not needles.texts:
        yield "no text was looked for: give needles, or run this where the transcripts are retained"
    if needles.left_out:
        yield f"{needles.left_out} texts were too many to look for"
    for control in controls:
        if not control.holds:
            yield f"control {control.name}: {control.found} of {control.expected} were found"


def _finding(hit: Finding) -> dict[str, object]:
    row: dict[str, object] = {"root": hit.spot.root.value, "path": hit.spot.path}
    row |= {name: value for name, value in (("table", hit.spot.table), ("rows", hit.spot.rows)) if value}
    row |= {"kind": hit.kind.value, "needle": hit.needle, "encoding": hit.encoding.value, "count": hit.count}
    if hit.retained:
        row |= {"retained": hit.retained, "removal": hit.removal}
    return row
