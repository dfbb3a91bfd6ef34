"""The tables that memprov reads in an OpenClaw store, in our own words: what a store in the form of 2026.9.6 must have.

Names, types and keys are those of the format, as far as a purge touches them; what memprov never looks at is left out,
so OpenClaw itself does not open such a database. Full-text rows and the index revision are kept in step by triggers,
as there.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["AGENT_VERSION", "SHARED_VERSION", "agent_tables", "agent_triggers", "shared_tables"]

AGENT_VERSION = 23
SHARED_VERSION = 18

_CLASS = "IN ('owner', 'agent', 'untrusted', 'system')"
_KIND = "IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')"

_META = (
    "meta_key text!, role text!, schema_version int!, agent_id text, app_version text, created_at int!, updated_at int!"
)

#: Table -> its columns (``!``: not null) and, after the semicolon, its constraints.
_AGENT: dict[str, str] = {
    "schema_meta": f"{_META}; PRIMARY KEY (meta_key)",
    "session_nodes": (
        "session_key text!, current_session_id text!, entry_json text!, updated_at int!, created_at int, "
        "parent_session_key text, spawned_by text; PRIMARY KEY (session_key)"
    ),
    "session_windows": (
        "session_id text!, session_key text!, created_at int!, updated_at int!, transcript_updated_at int, "
        "session_entry_provenance int!, acp_owned int!, plugin_owner_id text, hook_external_content_source text, "
        "chat_type text, channel text, account_id text, parent_session_key text, spawned_by text; "
        "PRIMARY KEY (session_id), FOREIGN KEY (session_key) REFERENCES session_nodes ON DELETE CASCADE"
    ),
    "session_participants": (
        "session_key text!, identity_namespace text!, actor_id text!, contribution_count int!, first_prompted_at int, "
        "last_prompted_at int; PRIMARY KEY (session_key, identity_namespace, actor_id), "
        "FOREIGN KEY (session_key) REFERENCES session_nodes ON DELETE CASCADE"
    ),
    "session_transcript_archives": (
        "session_id text!, generation text!, session_key text!, reason text!, encoding text!, archive_blob blob!, "
        "archive_sha256 text!, archive_name text!, created_at int!, published_at int; "
        "PRIMARY KEY (session_id, generation), UNIQUE (archive_name)"
    ),
    "transcript_events": (
        "session_id text!, seq int!, event_json text, created_at int!, event_zstd blob, event_utf8_bytes int; "
        "PRIMARY KEY (session_id, seq), FOREIGN KEY (session_id) REFERENCES session_windows ON DELETE CASCADE"
    ),
    "memory_index_meta": "key text!, value text!; PRIMARY KEY (key)",
    "memory_index_state": "id int!, revision int!; PRIMARY KEY (id), CHECK (id = 1)",
    "memory_index_sources": (
        "id int, path text!, source text!, hash text!, mtime real!, size int!; PRIMARY KEY (id), UNIQUE (path, source)"
    ),
    "memory_index_chunks": (
        "chunk_rowid int, id text!, path text!, source text!, start_line int!, end_line int!, hash text!, model text!, "
        "text text!, embedding blob!, updated_at int!; PRIMARY KEY (chunk_rowid), UNIQUE (id)"
    ),
    "memory_index_chunk_provenance": (
        "chunk_id text!, origin_class text!, session_kind text!, observed_at int!, supersedes_key text; "
        f"PRIMARY KEY (chunk_id), CHECK (origin_class {_CLASS}), CHECK (session_kind {_KIND}), "
        "FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks (id) ON DELETE CASCADE"
    ),
    "memory_index_chunk_recall_metadata": (
        "chunk_id text!, importance int, triggers text, project_key text; PRIMARY KEY (chunk_id), "
        "FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks (id) ON DELETE CASCADE"
    ),
    "memory_embedding_cache": (
        "provider text!, model text!, provider_key text!, hash text!, embedding blob!, dims int, updated_at int!; "
        "PRIMARY KEY (provider, model, provider_key, hash)"
    ),
    "memory_entry_origins": (
        "entry_key text!, agent_id text!, session_id text!, session_key text, origin_class text!, observed_at int!; "
        f"PRIMARY KEY (entry_key, agent_id, session_id), CHECK (origin_class {_CLASS})"
    ),
    "memory_session_tombstones": (
        "session_id text!, agent_id text!, reason text!, created_at int!; PRIMARY KEY (session_id)"
    ),
}
_SHARED: dict[str, str] = {
    "schema_meta": f"{_META}; PRIMARY KEY (meta_key)",
    "agent_databases": (
        "agent_id text!, path text!, schema_version int!, last_seen_at int!, size_bytes int; "
        "PRIMARY KEY (agent_id, path)"
    ),
    "plugin_state_entries": (
        "plugin_id text!, namespace text!, entry_key text!, value_json text!, created_at int!, expires_at int; "
        "PRIMARY KEY (plugin_id, namespace, entry_key)"
    ),
}
#: Full-text table -> the table it follows, that table's row id, its indexed column and its stored ones.
_FULL_TEXT = {
    "memory_index_chunks_fts": (
        "memory_index_chunks",
        "chunk_rowid",
        "text",
        ("id", "path", "source", "model", "start_line", "end_line"),
    ),
    "memory_index_paths_fts": ("memory_index_sources", "id", "path", ("source",)),
}


def agent_tables() -> Iterator[str]:
    """The statements that make an agent's database, without what must wait until the rows are there."""
    yield from _tables(_AGENT)
    yield "CREATE INDEX memory_index_chunks_by_path ON memory_index_chunks (path, source)"
    for name, (_, _, indexed, stored) in _FULL_TEXT.items():
        yield f"CREATE VIRTUAL TABLE {name} USING fts5({', '.join([indexed, *(f'{s} UNINDEXED' for s in stored)])})"


def agent_triggers() -> Iterator[str]:
    """The statements that fill the full-text tables from the rows that are there, and then keep everything in step."""
    for name, (table, row_id, indexed, stored) in _FULL_TEXT.items():
        columns = (row_id, indexed, *stored)
        target = f"{name} (rowid, {', '.join(columns[1:])})"
        yield f"INSERT INTO {target} SELECT {', '.join(columns)} FROM {table}"
        insert = f"INSERT INTO {target} VALUES ({', '.join(f'new.{column}' for column in columns)});"
        delete = f"DELETE FROM {name} WHERE rowid = old.{row_id};"
        for event, body in (("INSERT", insert), ("UPDATE", delete + insert), ("DELETE", delete)):
            yield f"CREATE TRIGGER {name}_on_{event.lower()} AFTER {event} ON {table} BEGIN {body} END"
            yield (
                f"CREATE TRIGGER {table}_revision_on_{event.lower()} AFTER {event} ON {table} "
                "BEGIN UPDATE memory_index_state SET revision = revision + 1; END"
            )


def shared_tables() -> Iterator[str]:
    """The statements that make the shared database."""
    return _tables(_SHARED)


def _tables(tables: dict[str, str]) -> Iterator[str]:
    types = {"text": "TEXT", "int": "INTEGER", "real": "REAL", "blob": "BLOB"}
    for table, declaration in tables.items():
        columns, _, constraints = declaration.partition("; ")
        parts = []
        for column in columns.split(", "):
            name, kind = column.split(" ")
            parts.append(f"{name} {types[kind.rstrip('!')]}{' NOT NULL' if kind.endswith('!') else ''}")
        yield f"CREATE TABLE {table} ({', '.join(parts)}, {constraints}) STRICT"
