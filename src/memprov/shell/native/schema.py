"""The two ledgers of the embedded store, as the steps that make them.

An *agent ledger* holds what is one agent's: its sessions, the origins and tombstones, its index, its receipts. A
*shared ledger* holds what belongs to a workspace and so to every agent that uses it: recall rows, signals, checkpoints,
seen hashes, rewind batches, preimages, and who wrote which memory file (docs: The report). Were the latter kept per
agent, a purge would leave the same text behind in a sibling's ledger.

Tables are STRICT. Text that need not be valid Unicode (paths, and content of files) is stored as the bytes it came from
and read back through ``CAST(… AS BLOB)``; ids and keys are always valid text. Origins are found from either side: by
entry through the primary key, by session through an index that covers it. Transfers name entries only and go with
their origins. The full text follows its chunks by triggers, and overwrites what it deletes from the first write on
(TESTING, "What makes a deleted string leave"). Chunks in scripts that put no blanks between words are in a second full
text, by three characters; two line feeds end each, so that its last characters begin a piece, too.

A step is never edited once it was released: a change of the schema is a step more.
"""

from __future__ import annotations

from attrs import field, frozen

from memprov.core.records import ArtifactReason, OriginClass, SessionKind, SessionState

__all__ = ["AGENT_LEDGER", "SHARED_LEDGER", "Schema"]


@frozen
class Schema:
    """One kind of ledger: what a message calls it, how its files are recognised, and its steps, oldest first.

    ``PRAGMA user_version`` is the number of steps that a file has taken.
    """

    title: str
    application_id: int
    steps: tuple[str, ...] = field(repr=False)

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.steps)


def _one_of(column: str, values: type[OriginClass | SessionKind | SessionState | ArtifactReason]) -> str:
    return f"CHECK ({column} IN ({', '.join(repr(value.value) for value in values)}))"


_AGENT_1 = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    session_key TEXT,
    kind TEXT NOT NULL {_one_of("kind", SessionKind)},
    state TEXT NOT NULL {_one_of("state", SessionState)},
    parent_key TEXT,
    channel TEXT,
    chat_type TEXT CHECK (chat_type IN ('direct', 'group', 'channel')),
    hook_source TEXT,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_live ON sessions (session_key) WHERE state = 'live';

CREATE TABLE participants (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    actor_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    PRIMARY KEY (session_id, actor_id, namespace)
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones (
    session_id TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE origins (
    entry_key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    session_key TEXT,
    origin_class TEXT NOT NULL {_one_of("origin_class", OriginClass)},
    observed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (entry_key, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX origins_by_session ON origins (session_id);

CREATE TABLE index_state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL) STRICT;
INSERT INTO index_state VALUES (1, 0);

CREATE TABLE sources (
    source_id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('memory', 'sessions')),
    hash TEXT NOT NULL,
    mtime_ms INTEGER NOT NULL,
    size INTEGER NOT NULL,
    UNIQUE (path, source)
) STRICT;

CREATE TABLE chunks (
    chunk_rowid INTEGER PRIMARY KEY,
    chunk_id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('memory', 'sessions')),
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    hash TEXT NOT NULL,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX chunks_by_path ON chunks (path, source, model, chunk_id);
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE INDEX chunks_by_model ON chunks (model);

CREATE TABLE chunk_provenance (
    chunk_id TEXT PRIMARY KEY REFERENCES chunks (chunk_id) ON DELETE CASCADE,
    origin_class TEXT NOT NULL {_one_of("origin_class", OriginClass)},
    session_kind TEXT NOT NULL {_one_of("session_kind", SessionKind)},
    observed_at_ms INTEGER NOT NULL,
    supersedes_key TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE vectors (
    chunk_id TEXT PRIMARY KEY REFERENCES chunks (chunk_id) ON DELETE CASCADE,
    dimensions INTEGER NOT NULL,
    embedding BLOB NOT NULL
) STRICT;

CREATE VIRTUAL TABLE chunks_text USING fts5 (text, content = 'chunks', content_rowid = 'chunk_rowid');
INSERT INTO chunks_text (chunks_text, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER chunks_inserted AFTER INSERT ON chunks BEGIN
    INSERT INTO chunks_text (rowid, text) VALUES (new.chunk_rowid, new.text);
END;
CREATE TRIGGER chunks_deleted AFTER DELETE ON chunks
WHEN EXISTS (SELECT 1 FROM chunks_text_docsize WHERE id = old.chunk_rowid) BEGIN
    INSERT INTO chunks_text (chunks_text, rowid, text) VALUES ('delete', old.chunk_rowid, old.text);
END;
CREATE TRIGGER chunks_text_is_fixed BEFORE UPDATE OF chunk_rowid, text ON chunks BEGIN
    SELECT raise(ABORT, 'a chunk is replaced, never edited');
END;

CREATE TABLE embedding_cache (
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    provider_key TEXT NOT NULL,
    hash TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    embedding BLOB NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (provider, model, provider_key, hash)
) STRICT;

CREATE TABLE receipts (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    previous TEXT REFERENCES receipts (digest),
    document TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;
"""

_AGENT_2 = """
CREATE TABLE transfers (
    survivor TEXT NOT NULL,
    parent TEXT NOT NULL,
    transfer_id TEXT NOT NULL,
    action TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (survivor, parent, transfer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX transfers_by_parent ON transfers (parent);
"""

#: Scripts that write words without blanks between them, or particles without any: Thai to Tibetan and Myanmar, Hangul,
#: Khmer, Han and Kana in all their blocks.
_UNSPACED = (
    "\u0e01-\u109f\u1100-\u11ff\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u303b\u3041-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9fe\uaa60-\uaa7f\uac00-\ud7a3\uf900-\ufaff\uff66-\uffdc"
    "\U0001aff0-\U0001b16f\U00020000-\U0003347f"
)

# Plain ASCII is told by its length: the pattern alone takes a millisecond for each chunk.
_AGENT_3 = f"""
CREATE VIRTUAL TABLE chunks_text_pieces USING fts5 (text, content = '', tokenize = 'trigram');
INSERT INTO chunks_text_pieces (chunks_text_pieces, rank) VALUES ('secure-delete', 1);
CREATE VIEW unspaced_chunks (chunk_rowid, text) AS
    SELECT chunk_rowid, text || char(10, 10) FROM chunks
    WHERE octet_length(text) > length(text) AND text GLOB '*[{_UNSPACED}]*';
CREATE TRIGGER unspaced_inserted AFTER INSERT ON chunks
WHEN octet_length(new.text) > length(new.text) AND new.text GLOB '*[{_UNSPACED}]*' BEGIN
    INSERT INTO chunks_text_pieces (rowid, text) VALUES (new.chunk_rowid, new.text || char(10, 10));
END;
CREATE TRIGGER unspaced_deleted AFTER DELETE ON chunks
WHEN EXISTS (SELECT 1 FROM chunks_text_pieces_docsize WHERE id = old.chunk_rowid) BEGIN
    INSERT INTO chunks_text_pieces (chunks_text_pieces, rowid, text)
    VALUES ('delete', old.chunk_rowid, old.text || char(10, 10));
END;
INSERT INTO chunks_text_pieces (rowid, text) SELECT chunk_rowid, text FROM unspaced_chunks;
"""

_AGENT_4 = """
CREATE TABLE transcripts (
    session_id TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    changed TEXT NOT NULL,
    version INTEGER NOT NULL,
    ingested TEXT,
    indexed TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_key ON sessions (session_key) WHERE session_key IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent_key) WHERE parent_key IS NOT NULL;
CREATE TRIGGER sources_deleted AFTER DELETE ON sources WHEN old.source = 'sessions' BEGIN
    UPDATE transcripts SET indexed = NULL WHERE session_id IN (
        substr(substr(old.path, 10), 1 + instr(substr(old.path, 10), '/')),
        replace(substr(substr(old.path, 10), 1 + instr(substr(old.path, 10), '/')) || '/', '.jsonl/', '')
    );
END;
CREATE INDEX chunks_of_runs ON chunk_provenance (chunk_id) WHERE session_kind IN ('cron', 'heartbeat');
CREATE INDEX chunks_of_system ON chunk_provenance (chunk_id) WHERE origin_class = 'system';
"""

_SHARED_1 = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE recall (
    entry_key TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    snippet TEXT NOT NULL,
    recall_count INTEGER NOT NULL,
    daily_count INTEGER NOT NULL,
    grounded_count INTEGER NOT NULL,
    total_score REAL NOT NULL,
    max_score REAL NOT NULL,
    first_recalled_at_ms INTEGER NOT NULL,
    last_recalled_at_ms INTEGER NOT NULL,
    query_hashes TEXT NOT NULL CHECK (json_valid(query_hashes)),
    user_query_hashes TEXT NOT NULL CHECK (json_valid(user_query_hashes)),
    recall_days TEXT NOT NULL CHECK (json_valid(recall_days)),
    concept_tags TEXT NOT NULL CHECK (json_valid(concept_tags)),
    origin_class TEXT {_one_of("origin_class", OriginClass)},
    session_kind TEXT {_one_of("session_kind", SessionKind)},
    observed_at_ms INTEGER,
    supersedes_key TEXT,
    claim_hash TEXT,
    project_key TEXT,
    promoted_at_ms INTEGER,
    CHECK ((origin_class IS NULL) = (session_kind IS NULL) AND (origin_class IS NULL) = (observed_at_ms IS NULL))
) STRICT;

CREATE TABLE signals (
    entry_key TEXT PRIMARY KEY,
    light_hits INTEGER NOT NULL,
    rem_hits INTEGER NOT NULL,
    last_light_at_ms INTEGER,
    last_rem_at_ms INTEGER,
    last_rem_considered_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
    state_key TEXT PRIMARY KEY,
    mtime_ms INTEGER NOT NULL,
    size INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    line_count INTEGER NOT NULL,
    last_content_line INTEGER NOT NULL,
    excluded_reason TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE seen_scopes (scope_id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE seen_hashes (
    seen_id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES seen_scopes ON DELETE CASCADE,
    hash TEXT NOT NULL,
    UNIQUE (scope_id, hash)
) STRICT;

CREATE TABLE rewind_batches (batch_key TEXT PRIMARY KEY, recorded_at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE rewind_candidates (
    batch_key TEXT NOT NULL REFERENCES rewind_batches ON DELETE CASCADE,
    position INTEGER NOT NULL,
    candidate TEXT NOT NULL,
    PRIMARY KEY (batch_key, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE preimages (
    preimage_key TEXT PRIMARY KEY,
    created_at_ms INTEGER NOT NULL UNIQUE,
    content TEXT NOT NULL
) STRICT;

CREATE TABLE writes (
    write_id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    session_key TEXT,
    origin_class TEXT NOT NULL CHECK (origin_class IN ('agent', 'untrusted')),
    reason TEXT {_one_of("reason", ArtifactReason)},
    hash_before TEXT,
    file_hash TEXT,
    observed_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX writes_by_path ON writes (path, write_id);
"""

#: "mpvA" and "mpvS" as big-endian integers, for ``file`` and for telling a foreign database.
AGENT_LEDGER = Schema("the ledger", 0x6D707641, (_AGENT_1, _AGENT_2, _AGENT_3, _AGENT_4))
SHARED_LEDGER = Schema("the shared ledger", 0x6D707653, (_SHARED_1,))
