"""The report of a purge: what goes and what must be reviewed, and its JSON form.

Field names and meaning are those of the defining documents, so that existing tooling reads it; memprov's own fields
follow after them (docs: The report). Every list is sorted by code point. Preview and apply differ in ``dryRun`` alone.
"""

from __future__ import annotations

from typing import cast

from attrs import asdict, field, fields, frozen

from memprov.core.purge.selection import ParticipantMatch, Resolution
from memprov.core.records import identity_json
from memprov.core.text import html_table, json_text

__all__ = ["Artifacts", "CuratedWriteLine", "ExtraArtifacts", "Report", "SharedEntry", "Suspect"]


@frozen
class CuratedWriteLine:
    """A file that a selected session wrote or tried to write: to review, never removed. Epoch milliseconds."""

    relative_path: str
    observed_at: int


@frozen
class Artifacts:
    """The counters of the documents (docs: Counting); how items are counted is docs: The report."""

    memory_files: int = 0
    memory_entries: int = 0
    memory_lines: int = 0
    session_corpus_files: int = 0
    session_corpus_lines: int = 0
    index_chunks: int = 0
    index_sources: int = 0
    fts_rows: int = 0
    vector_rows: int = 0
    embedding_cache_rows: int = 0
    short_term_entries: int = 0
    seen_hash_scopes: int = 0
    backups: int = 0
    origin_rows: int = 0


@frozen
class ExtraArtifacts:
    """What goes beyond the documents' counters: signals, rewind rows and events (D21), stale copies (D18)."""

    signals: int = 0
    rewind_rows: int = 0
    events: int = 0
    stale_copies: int = 0


@frozen(order=True)
class Suspect:
    """A line that stays and should be looked at, and why. ``line`` counts from 1 in the file as it was read."""

    path: str
    line: int
    reason: str


@frozen
class SharedEntry:
    """An entry that goes though others know it: unselected itself (collateral), or another agent's as well.

    ``places`` are where its markers stand, as ``PATH:LINE`` in the files as they were read; ``agents`` are those that
    have, or may have, origins of it beside the selected sessions.
    """

    entry_key: str
    places: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@frozen
class Report:
    """What one purge removes, from where, and what stays and must be reviewed. Holds no memory text.

    ``emptied_files`` are memory files of which only blanks are left, under every name; ``gone_markers`` are keys that
    are not selected and of which no marker is left. Neither is among what stays.
    """

    agent_id: str
    dry_run: bool
    session_ids: tuple[str, ...] = ()
    participant_matches: tuple[ParticipantMatch, ...] = ()
    session_resolutions: tuple[Resolution, ...] = ()
    entry_keys: tuple[str, ...] = ()
    mixed_lineage_entry_keys: tuple[str, ...] = ()
    untargetable_entry_keys: tuple[str, ...] = ()
    curated_writes: tuple[CuratedWriteLine, ...] = ()
    artifacts: Artifacts = field(factory=Artifacts)
    refusals: tuple[str, ...] = ()
    collateral_entry_keys: tuple[str, ...] = ()
    sibling_entry_keys: tuple[str, ...] = ()
    dangling_markers: tuple[str, ...] = ()
    extra_artifacts: ExtraArtifacts = field(factory=ExtraArtifacts)
    warnings: tuple[str, ...] = ()
    plan_digest: str = ""
    level: str = "logical"
    suspects: tuple[Suspect, ...] = ()
    shared_entries: tuple[SharedEntry, ...] = ()
    emptied_files: tuple[str, ...] = ()
    gone_markers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kind = "preview" if self.dry_run else "purge"
        return (
            f"<Report of a {kind} of agent {self.agent_id!r}: {len(self.session_ids)} sessions, "
            f"{len(self.entry_keys)} entries, {len(self.warnings)} warnings>"
        )

    def _repr_html_(self) -> str:
        parts = asdict(self, recurse=False, filter=lambda _, value: isinstance(value, tuple))
        rows = ((name.replace("_", " "), len(value)) for name, value in parts.items() if value)
        return html_table(f"{'Preview' if self.dry_run else 'Purge'} of agent {self.agent_id}", rows)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, in the documents' order of fields."""
        result: dict[str, object] = {}
        for attribute in fields(Report):
            value = getattr(self, attribute.name)
            result[_camel(attribute.name)] = _WRITERS.get(attribute.name, _plain)(value)
        return result

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as one JSON document."""
        return json_text(self.to_dict(), indent=indent)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _counters(value: object) -> dict[str, object]:
    record = cast("Artifacts | ExtraArtifacts", value)
    return {_camel(a.name): getattr(record, a.name) for a in fields(type(record))}


def _writes(value: object) -> list[dict[str, object]]:
    lines = cast("tuple[CuratedWriteLine, ...]", value)
    return [{"relativePath": line.relative_path, "observedAt": line.observed_at} for line in lines]


def _suspects(value: object) -> list[dict[str, object]]:
    return [{"path": s.path, "line": s.line, "reason": s.reason} for s in cast("tuple[Suspect, ...]", value)]


def _resolutions(value: object) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for resolution in cast("tuple[Resolution, ...]", value):
        row: dict[str, object] = {"sessionId": resolution.session_id}
        if resolution.session_key is not None:
            row["sessionKey"] = resolution.session_key
        row["source"] = str(resolution.source)
        if resolution.judged_by is not None:
            row["judgedBy"] = resolution.judged_by
        rows.append(row)
    return rows


def _matches(value: object) -> list[dict[str, object]]:
    matches = cast("tuple[ParticipantMatch, ...]", value)
    return [{"actorId": m.actor_id, "identities": [identity_json(i) for i in m.identities]} for m in matches]


def _shared(value: object) -> list[dict[str, object]]:
    return [
        {"entryKey": entry.entry_key, "places": list(entry.places), "agents": list(entry.agents)}
        for entry in cast("tuple[SharedEntry, ...]", value)
    ]


_WRITERS = {
    "artifacts": _counters,
    "extra_artifacts": _counters,
    "curated_writes": _writes,
    "session_resolutions": _resolutions,
    "participant_matches": _matches,
    "suspects": _suspects,
    "shared_entries": _shared,
}
