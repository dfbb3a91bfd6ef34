"""What ingestion and backfill read of a store: rows of the ledgers, the corpus and the diary, not the memory files."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterable, Iterator, Mapping

import apsw
from attrs import define, evolve, field

from memprov.core.records import MemoryFile
from memprov.core.state import IngestState
from memprov.core.text import to_text
from memprov.shell.native.layout import Layout
from memprov.shell.native.reader import (
    Access,
    read_checkpoint_keys,
    read_rewinds,
    read_sibling_keys,
    read_signals,
    require_workspace,
)
from memprov.shell.native.sessions import forgotten_ids
from memprov.shell.native.sessions import session_ids as catalogued_ids
from memprov.shell.native.state import (
    read_checkpoints,
    read_entries,
    read_seen,
    read_seen_of,
    read_seen_scopes,
)
from memprov.shell.workspace.listing import refusal
from memprov.shell.workspace.tree import Calls, Content, Parts, Tree

__all__ = ["read_ingest_state", "read_progress"]

_CORPUS = ("memory", ".dreams", "session-corpus")
_ENDINGS = (".txt", ".md")
_DIARIES = ("DREAMS.md", "dreams.md")


def read_ingest_state(layout: Layout, access: Access, session_ids: Iterable[str] | None, calls: Calls) -> IngestState:
    """The state that a write plan is computed from; with ids, as far read as ``read_progress`` does."""
    if session_ids is not None:
        progress = read_progress(layout, access, session_ids)
    else:
        require_workspace(layout)
        progress = IngestState(
            layout.agent_id,
            checkpoints=access.read(layout.shared, read_checkpoints),
            seen=access.read(layout.shared, read_seen),
            tombstones=access.read(layout.ledger, forgotten_ids),
        )
    entries, signals, rewinds = access.read(
        layout.shared, lambda connection: (read_entries(connection), read_signals(connection), read_rewinds(connection))
    )
    return evolve(
        progress,
        entries=entries,
        signals=frozenset(signals),
        corpus=_Corpus(layout.workspace, calls),
        sibling_keys=read_sibling_keys(layout, access),
        rewinds=rewinds,
        diary=_diary(layout.workspace, calls),
    )


def read_progress(layout: Layout, access: Access, session_ids: Iterable[str]) -> IngestState:
    """How far these sessions were read, and nothing else: it decides which transcripts a sweep gets to.

    Checkpoints of sessions that have left the catalogue are there as well; hashes are read of the scopes that are asked
    for.
    """
    require_workspace(layout)
    chosen = tuple(session_ids)
    tombstones, known = access.read(
        layout.ledger, lambda connection: (forgotten_ids(connection, chosen), catalogued_ids(connection))
    )
    checkpoints = access.read(
        layout.shared, lambda connection: read_checkpoints(connection, _keys(layout, connection, chosen, known))
    )
    return IngestState(layout.agent_id, checkpoints=checkpoints, seen=_Seen(layout, access), tombstones=tombstones)


def _keys(
    layout: Layout, connection: apsw.Connection, chosen: tuple[str, ...], known: frozenset[str]
) -> frozenset[str]:
    """The state keys of these sessions, and of those that are not in the catalogue."""
    prefix = f"{layout.agent_id}:sessions/{layout.agent_id}/"
    there = (key for key in read_checkpoint_keys(connection) if key.startswith(prefix))
    gone = (key for key in there if key.removeprefix(prefix) not in known)
    return frozenset((*(prefix + session_id for session_id in chosen), *gone))


@define(eq=False)
class _Seen(Mapping[str, tuple[str, ...]]):
    """The seen hashes, of each scope when they are first asked for: a sweep looks at a few of thousands."""

    layout: Layout
    access: Access
    _hashes: dict[str, tuple[str, ...] | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._hashes = dict.fromkeys(self.access.read(self.layout.shared, read_seen_scopes))

    def __getitem__(self, scope: str) -> tuple[str, ...]:
        hashes = self._hashes[scope]
        if hashes is None:
            hashes = self.access.read(self.layout.shared, lambda connection: read_seen_of(connection, scope))
            self._hashes[scope] = hashes
        return hashes

    def __iter__(self) -> Iterator[str]:
        return iter(self._hashes)

    def __len__(self) -> int:
        return len(self._hashes)


@define(eq=False)
class _Corpus(Mapping[str, str]):
    """The corpus files, each read when it is first asked for: a session's lines go into a few of hundreds."""

    workspace: str
    calls: Calls
    _texts: dict[str, str | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        with Tree(self.workspace, self.calls) as tree:
            names = _names(tree)
        self._texts = dict.fromkeys("/".join((*_CORPUS, name)) for name in names)

    def __getitem__(self, path: str) -> str:
        text = self._texts[path]
        if text is None:
            content = _content(self.workspace, path, self.calls)
            self._texts[path] = text = "" if content is None else to_text(content.data)
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _names(tree: Tree) -> list[str]:
    """The regular files of the corpus."""
    try:
        with tree.directory(_CORPUS) as directory:
            names = [name for name in tree.names(directory) if name.lower().endswith(_ENDINGS)]
            return [name for name in names if stat.S_ISREG(tree.info(directory, name).st_mode)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if error.errno == errno.ELOOP:  # not followed; the scan of a purge says so
            return []
        raise refusal("/".join(_CORPUS), error) from error


def _diary(workspace: str, calls: Calls) -> MemoryFile | None:
    for name in _DIARIES:
        content = _content(workspace, name, calls)
        if content is not None:
            return MemoryFile(name, to_text(content.data))
    return None


def _content(workspace: str, path: str, calls: Calls) -> Content | None:
    """What a file holds; ``None`` for a link, which is never followed, and for what is no file."""
    parts: Parts = tuple(path.split("/"))
    try:
        with Tree(workspace, calls) as tree, tree.directory(parts[:-1]) as directory:
            return tree.content(directory, parts[-1])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise refusal(path, error) from error
