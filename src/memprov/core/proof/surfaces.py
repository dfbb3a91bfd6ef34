"""The surface registry: every place that holds memory text or session ids, declared once (docs: proof).

A surface says what it holds, how the purge and the erasure reach it, or that it is retained by contract, and then how
its owner removes it. ``verify`` scans every byte below the roots whether a place is listed or not; it asks here one
thing only: is a needle of this kind *supposed* to be at this place? What is not declared is not.

Patterns are globs over paths relative to a root and over table names; ``{agent}`` is the agent whose store it is.
Of the rows that matter one by one, ``rows`` names the group: a namespace of the host's, or ``excluded``, the
checkpoints that say why a session was kept out.
"""

from __future__ import annotations

from memprov.core.proof.places import ANY, NeedleKind, Root, Spot, Surface, holds_spot, in_files

__all__ = ["SURFACES", "is_declared", "retained_at", "surface_at"]


_ID, _BOTH = frozenset({NeedleKind.ID}), frozenset(NeedleKind)

_PAGES = "secure_delete, VACUUM, WAL truncated"
_FTS = "merged (`optimize`), then as its database"
_FILE = "replaced by a file without it; copies of dead writers removed"
_DELETE_SESSION = "delete the session in OpenClaw (`openclaw sessions`), then its `*.jsonl.*` archive files"


def _workspace(store: str) -> tuple[Surface, ...]:
    return tuple(
        Surface(name, store, Root.WORKSPACE, files, holds, purged, _FILE)
        for name, files, holds, purged in (
            ("corpus", "memory/.dreams/session-corpus/**", "what ingestion copied", "lines cut, emptied files removed"),
            ("memory files", "**.md", "promoted entries, notes, diary, phase reports", "entries, sections, lines cut"),
            ("left-over copies", "**.tmp", "copies of memory files", "removed when their writer is gone (D18)"),
        )
    )


_CATALOGUE = ("sessions", "participants", "transcripts")
_EMBEDDED = (
    Surface(
        "another agent's ledger",
        "memprov",
        Root.STATE,
        "agents/!{agent}/**",
        "memory of another agent",
        tables=ANY,
        retained=_BOTH,
        why="another agent's store",
        removal="`memprov forget --agent OTHER` with the same selection",
    ),
    *(
        Surface(name, "memprov", Root.STATE, "agents/{agent}/ledger.sqlite*", holds, purged, erased, tables=tables)
        for name, holds, purged, erased, tables in (
            ("origins", "entry keys, session ids", "rows deleted, last", _PAGES, ("origins", "transfers")),
            ("chunks", "indexed text", "rows deleted", _PAGES, ("chunks", "chunk_provenance", "sources")),
            ("full text", "words", "rows deleted with their chunk", _FTS, ("chunks_text*",)),
            ("vectors", "embeddings (NumPy and sqlite-vec read these)", "rows deleted", _PAGES, ("vectors",)),
            ("embedding cache", "embeddings", "emptied", _PAGES, ("embedding_cache",)),
        )
    ),
    *(
        Surface(
            name,
            "memprov",
            Root.STATE,
            "agents/{agent}/ledger.sqlite*",
            holds,
            tables=tables,
            retained=_ID,
            why=why,
            removal=removal,
        )
        for name, holds, tables, why, removal in (
            (
                "session catalogue",
                "ids",
                ("sessions", "participants", "transcripts"),
                "the host's own list of sessions",
                "the host's",
            ),
            ("tombstones", "ids", ("tombstones",), "the exclusion itself", "keep it, or the session can come back"),
        )
    ),
    Surface(
        "receipts",
        "memprov",
        Root.STATE,
        "agents/{agent}/ledger.sqlite*",
        "keyed digests of ids, no text",
        tables=("receipts", "meta"),
    ),
    Surface(
        "LanceDB copy",
        "memprov",
        Root.STATE,
        "agents/{agent}/vectors.lance/**",
        "chunk ids, embeddings",
        "rows deleted",
        "survivors rewritten, older versions dropped",
    ),
    *(
        Surface(name, "memprov", Root.STATE, "shared/*/ledger.sqlite*", holds, purged, _PAGES, tables=tables)
        for name, holds, purged, tables in (
            ("recall rows", "snippets, tags", "rows deleted", ("recall",)),
            ("signals", "entry keys", "rows deleted", ("signals",)),
            ("seen hashes", "session ids, hashes", "scopes deleted", ("seen_scopes", "seen_hashes")),
            ("rewind rows", "session ids, hashes", "candidates taken out", ("rewind_*",)),
            ("preimages", "MEMORY.md as it was", "cut like the file", ("preimages",)),
        )
    ),
    Surface(
        "exclusions",
        "memprov",
        Root.STATE,
        "shared/*/ledger.sqlite*",
        "ids with the reason why they are kept out",
        tables=("checkpoints",),
        rows=("excluded",),
        retained=_ID,
        why="the exclusion itself",
        removal="keep it, or the session can come back",
    ),
    Surface(
        "checkpoints",
        "memprov",
        Root.STATE,
        "shared/*/ledger.sqlite*",
        "session ids",
        "rows deleted",
        _PAGES,
        tables=("checkpoints",),
    ),
    Surface(
        "curated writes",
        "memprov",
        Root.STATE,
        "shared/*/ledger.sqlite*",
        "who wrote which file",
        tables=("writes",),
        retained=_ID,
        why="says who wrote a file that stays",
        removal="review the file (`curatedWrites` of the report)",
    ),
    Surface("lock", "memprov", Root.STATE, "shared/*/lock", "the holder, no session"),
    *(
        Surface("bookkeeping", "memprov", Root.STATE, files, "versions and places, no session", tables=tables)
        for files, tables in (
            ("agents/{agent}/ledger.sqlite*", ("index_state",)),
            ("shared/*/ledger.sqlite*", ("meta",)),
        )
    ),
)

_AGENT_DB = "agents/{agent}/agent/openclaw-agent.sqlite*"
_SHARED_DB = "state/openclaw.sqlite*"
#: Tables of an agent's database in which OpenClaw keeps the conversation itself.
_CONVERSATION = (
    "session_*", "transcript_*", "trajectory_*", "conversation*", "context_engine_*", "acp_*", "board_*",
    "heartbeat_outcomes", "message_tool_*", "cache_entries", "standing_intents*",
)  # fmt: skip

_OPENCLAW = (
    Surface(
        "transcripts and archives (files)",
        "openclaw",
        Root.STATE,
        "agents/{agent}/sessions/**",
        "the conversation itself",
        retained=_BOTH,
        why="original transcript or archive",
        removal=_DELETE_SESSION,
    ),
    Surface(
        "another agent's store",
        "openclaw",
        Root.STATE,
        "agents/!{agent}/**",
        "memory of another agent",
        tables=ANY,
        retained=_BOTH,
        why="another agent's store",
        removal="`memprov forget --agent OTHER` with the same selection",
    ),
    Surface(
        "receipts",
        "openclaw",
        Root.STATE,
        "agents/{agent}/agent/memprov-receipts.jsonl",
        "keyed digests of ids, no text",
    ),
    Surface(
        "stale rebuild copies",
        "openclaw",
        Root.STATE,
        "agents/{agent}/agent/openclaw-agent.sqlite.memory-reindex-*",
        "a whole index",
        "named in a warning",
        "removed when an hour old",
        tables=ANY,
    ),
    Surface(
        "transcripts and archives (tables)",
        "openclaw",
        Root.STATE,
        _AGENT_DB,
        "the conversation itself, and its full text",
        tables=_CONVERSATION,
        retained=_BOTH,
        why="original transcript or archive",
        removal=_DELETE_SESSION,
    ),
    Surface(
        "tombstones",
        "openclaw",
        Root.STATE,
        _AGENT_DB,
        "ids",
        tables=("memory_session_tombstones",),
        retained=_ID,
        why="the exclusion itself",
        removal="keep it, or the session can come back",
    ),
    *(
        Surface(name, "openclaw", Root.STATE, _AGENT_DB, holds, purged, erased, tables=tables)
        for name, holds, purged, erased, tables in (
            ("origins", "entry keys, session ids", "rows deleted, last", _PAGES, ("memory_entry_origins",)),
            ("full text", "words", "rows deleted with their chunk", _FTS, ("memory_index_*_fts*",)),
            ("vectors", "embeddings (sqlite-vec)", "rows deleted", _PAGES, ("memory_index_chunks_vec*",)),
            ("chunks", "indexed text, embeddings", "rows deleted", _PAGES, ("memory_index_*",)),
            ("embedding cache", "embeddings", "emptied", _PAGES, ("memory_embedding_cache",)),
        )
    ),
    Surface(
        "exclusions",
        "openclaw",
        Root.STATE,
        _SHARED_DB,
        "ids with the reason why they are kept out",
        tables=("plugin_state_entries",),
        rows=("excluded",),
        retained=_ID,
        why="the exclusion itself",
        removal="keep it, or the session can come back",
    ),
    Surface(
        "curated writes",
        "openclaw",
        Root.STATE,
        _SHARED_DB,
        "who wrote which file",
        tables=("plugin_state_entries",),
        rows=("core:memory-artifact-provenance/*",),
        retained=_ID,
        why="says who wrote a file that stays",
        removal="review the file (`curatedWrites` of the report)",
    ),
    Surface(
        "memory state",
        "openclaw",
        Root.STATE,
        _SHARED_DB,
        "snippets, session ids, preimages, events",
        "rows deleted or rewritten without it",
        _PAGES,
        tables=("plugin_state_entries",),
        rows=("memory-**",),
    ),
    Surface(
        "other plugins' state",
        "openclaw",
        Root.STATE,
        _SHARED_DB,
        "ids",
        tables=("plugin_state_entries", "plugin_blob_entries", "plugin_binding_approvals"),
        retained=_ID,
        why="another plugin's own",
        removal="the plugin's own",
    ),
    Surface(
        "host's records",
        "openclaw",
        Root.STATE,
        _SHARED_DB,
        "ids of sessions that ran, delivered, were audited",
        tables=("[!pf]*", "projects", "fleet_*", "flow_*"),
        retained=_ID,
        why="the host's own record of what it did",
        removal="OpenClaw's own retention",
    ),
)

_OPENCLAW += tuple(
    Surface("bookkeeping", "openclaw", Root.STATE, files, "versions, accounts, locks: no session", tables=tables)
    for files, tables in (
        (_AGENT_DB, ("schema_meta", "auth_*")),
        ("state/openclaw-quarantine.sqlite*", ("**",)),
    )
)

#: Every place that can hold memory text or a session id, the more special first.
SURFACES: tuple[Surface, ...] = (
    *_EMBEDDED,
    *_OPENCLAW,
    *_workspace("memprov"),
    *_workspace("openclaw"),
)


def surface_at(store: str, agent_id: str, spot: Spot) -> Surface | None:
    """The surface that a spot of a ``memprov`` or ``openclaw`` store belongs to; ``None`` when nothing declares it."""
    return next(
        (surface for surface in SURFACES if surface.store == store and holds_spot(surface, agent_id, spot)), None
    )


def retained_at(store: str, agent_id: str, spot: Spot, kind: NeedleKind) -> Surface | None:
    """The surface that retains a needle of this kind at this spot by contract; ``None`` when it is residue there."""
    surface = surface_at(store, agent_id, spot)
    return surface if surface is not None and kind in surface.retained else None


def is_declared(store: str, agent_id: str, root: Root, path: str) -> bool:
    """Whether a surface of the store is in this file: nothing that memprov writes may be anywhere else."""
    return any(
        surface.store == store and surface.root is root and in_files(surface, agent_id, path) for surface in SURFACES
    )
