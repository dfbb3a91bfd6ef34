"""Where an OpenClaw state directory keeps things: agents, their workspaces, and the database of their sessions.

What ``openclaw.json`` says decides, as OpenClaw reads it (docs: Session metadata). Nothing is opened here but that
file; a path is not required to exist. ``Place`` answers the two questions that a copied state directory raises: where
the files are now, and under which names the state rows were written when the files were elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping
from typing import cast

from attrs import field, frozen

from memprov.core.records import StoreIdentity
from memprov.errors import CorruptStoreError, RefusedError, StoreNotFoundError
from memprov.shell.openclaw.values import Json, object_of
from memprov.shell.sqlite import Database

__all__ = ["Config", "Layout", "Place", "SessionStore", "read_config", "resolve_place", "suffixed", "workspace_key"]

#: The newest schemas of OpenClaw 2026.9.6 (``PRAGMA user_version``).
AGENT_SCHEMA = 23
SHARED_SCHEMA = 18

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")


@frozen
class SessionStore:
    """What ``session.store`` addresses (docs: Session metadata).

    ``owner`` is the agent that the path itself names. Without one the file is ``shared`` by all agents, or belongs to
    one of them and every other agent has a file of its own beside it, with its name in the file's. ``fixed`` is a path
    that all agents have in common: archives there that no record knows could be anybody's.
    """

    database: str
    archive_directories: tuple[str, ...]
    owner: str | None = None
    shared: bool = False
    fixed: bool = False


@frozen
class Config:
    """The part of ``openclaw.json`` that says where things are, with the paths made absolute.

    ``implied`` are the agents whose workspace is not configured, and hence a folder of the state directory.
    """

    state_dir: str
    workspaces: Mapping[str, str]
    implied: frozenset[str]
    session_store: str | None
    environ: Mapping[str, str] = field(factory=lambda: dict(os.environ), repr=False)

    def agent_database(self, agent_id: str) -> Database:
        """An agent's own database: its origins, tombstones and index, and by default its sessions."""
        path = os.path.join(self.state_dir, "agents", agent_id, "agent", "openclaw-agent.sqlite")
        return Database(path, "agent database", AGENT_SCHEMA)

    @property
    def shared_database(self) -> Database:
        """The database of what plugins keep, for all agents."""
        path = os.path.join(self.state_dir, "state", "openclaw.sqlite")
        return Database(path, "shared state database", SHARED_SCHEMA)

    def agents(self) -> tuple[str, ...]:
        """Every agent that is configured or has a database, sorted."""
        found = set(self.workspaces)
        top = os.path.join(self.state_dir, "agents")
        for name in _listing(top):
            if _AGENT_ID.fullmatch(name) and os.path.isfile(self.agent_database(name).path):
                found.add(name)
        return tuple(sorted(found))

    def workspace(self, agent_id: str) -> str:
        """Where an agent's workspace is configured to be."""
        return self.workspaces.get(agent_id) or os.path.join(self.state_dir, f"workspace-{agent_id}")

    def sessions(self, agent_id: str, override: str | None = None) -> SessionStore:
        """What the agent's session store addresses; ``override`` is read as ``session.store`` is.

        A path that leads nowhere, as in a state directory that was copied, is looked for below the state directory.
        """
        value = override if override is not None else self.session_store
        default = os.path.join(self.state_dir, "agents", agent_id, "sessions")
        if not value:
            return SessionStore(self.agent_database(agent_id).path, (default,), owner=agent_id)
        selector = _absolute(value.replace("{agentId}", agent_id).replace("\0", ""), self.environ)
        parts = selector.split(os.sep)
        places = [selector, *(os.path.join(self.state_dir, *parts[i:]) for i in range(2, len(parts)))]
        stores = [_addressed(place, agent_id, default, fixed="{agentId}" not in value) for place in places]
        there = (s for s in stores if os.path.isfile(s.database) or os.path.isfile(suffixed(s.database, agent_id)))
        return next(there, stores[0])


def suffixed(database: str, agent_id: str, number: int = 1) -> str:
    """The session database of an agent beside one that belongs to another."""
    return f"{database.removesuffix('.sqlite')}.{agent_id}{'' if number == 1 else f'.{number}'}.sqlite"


@frozen
class Place:
    """One agent's workspace: where its files are now (the real path), every spelling that its state rows may be filed
    under, the configured one first, and the other agents that share it.
    """

    agent_id: str
    workspace: str
    spellings: tuple[str, ...]
    siblings: tuple[str, ...]

    @property
    def keys(self) -> frozenset[str]:
        """The digests of all spellings (D12), host events being filed under the composed form."""
        composed = (unicodedata.normalize("NFC", path) for path in self.spellings)
        return frozenset(map(workspace_key, (*self.spellings, *composed)))


@frozen
class Layout:
    """Where everything of one agent is."""

    config: Config
    place: Place
    sessions: SessionStore

    @property
    def agent_id(self) -> str:
        """Whose store this is."""
        return self.place.agent_id

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""
        return StoreIdentity("openclaw", self.agent_id, os.path.realpath(self.config.state_dir), self.place.workspace)


def read_config(state_dir: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Config:
    """Read ``openclaw.json``. Without one there is one agent, ``main``, in the default workspace."""
    env = dict(os.environ if environ is None else environ)
    state = os.path.abspath(os.fspath(state_dir))
    if not os.path.isdir(state):
        raise StoreNotFoundError(f"there is no OpenClaw state directory {state}")
    path = os.path.join(state, "openclaw.json")
    if os.path.exists(path) and not os.path.isfile(path):
        raise RefusedError(f"{path} cannot be read: it is no regular file")  # a pipe would be waited for
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read()
    except FileNotFoundError:
        source = "{}"
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{path} cannot be read: {error}") from error
    document = _parse(source, path)
    if "$include" in document or any(map(_includes, (document.get("agents"), document.get("session")))):
        raise RefusedError(f"{path} includes other files, which memprov does not follow")
    store = object_of(document.get("session")).get("store")
    workspaces, implied = _workspaces(object_of(document.get("agents")), state, env)
    return Config(state, workspaces, implied, _substituted(store, env) if isinstance(store, str) else None, env)


def resolve_place(config: Config, agent_id: str, workspace: str | os.PathLike[str] | None) -> Place:
    """Find an agent's workspace. ``workspace`` says where the files are when that is not where they were."""
    known = config.agents()
    if agent_id not in known:
        raise StoreNotFoundError(
            f"unknown agent {agent_id!r} in {config.state_dir}; known agents: {', '.join(known) or 'none'}"
        )
    configured = config.workspace(agent_id)
    actual = configured if workspace is None else os.path.abspath(os.fspath(workspace))
    if not os.path.isdir(actual):
        hint = "; pass workspace= (--workspace) if its files are elsewhere" if workspace is None else ""
        raise StoreNotFoundError(f"there is no workspace {actual} of agent {agent_id}{hint}")
    real = {os.path.realpath(configured), os.path.realpath(actual)}
    siblings = tuple(a for a in known if a != agent_id and os.path.realpath(config.workspace(a)) in real)
    spellings = dict.fromkeys((configured, actual, *sorted(real), *(config.workspace(a) for a in siblings)))
    return Place(agent_id, os.path.realpath(actual), tuple(spellings), siblings)


def workspace_key(path: str) -> str:
    """The digest of a workspace's path that state rows are filed under."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()


def _parse(source: str, path: str) -> Json:
    try:
        document: object = json.loads(source)
    except (ValueError, RecursionError):
        try:
            import json5  # noqa: PLC0415  # an extra, and slow: only for what strict JSON is not
        except ImportError as error:
            raise RefusedError(f"{path} is not strict JSON; install memprov[openclaw] to read JSON5") from error
        try:
            document = json5.loads(source)
        except (ValueError, RecursionError) as error:
            raise CorruptStoreError(f"{path} is not JSON5: {error}") from error
    if not isinstance(document, dict):
        raise CorruptStoreError(f"{path} does not hold an object")
    return document


def _includes(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_includes, value))
    return isinstance(value, dict) and ("$include" in value or any(map(_includes, value.values())))


def _addressed(selector: str, agent_id: str, default: str, *, fixed: bool) -> SessionStore:
    directory, name = os.path.split(selector)
    archives = tuple({os.path.realpath(d): d for d in (directory, default)}.values())
    parts = selector.split(os.sep)
    fixed = fixed and parts[-4:-1] != ["agents", agent_id, "sessions"]
    if name == "sessions.json" and parts[-2:-1] == ["sessions"] and parts[-4:-3] == ["agents"]:
        database = os.path.join(os.path.dirname(directory), "agent", "openclaw-agent.sqlite")
        return SessionStore(database, archives, owner=parts[-3], fixed=fixed)
    if name == "openclaw-agent.sqlite" and parts[-2:-1] == ["agent"] and parts[-4:-3] == ["agents"]:
        return SessionStore(selector, archives, owner=parts[-3], fixed=fixed)
    if name.endswith(".sqlite"):
        return SessionStore(selector, archives, shared=True, fixed=fixed)
    stem = "openclaw-agent" if name == "sessions.json" else os.path.splitext(name)[0]
    return SessionStore(os.path.join(directory, stem + ".sqlite"), archives, fixed=fixed)


def _workspaces(agents: Json, state: str, env: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Agent id -> workspace, for the agents that are configured, and whose is only implied (docs: Session metadata)."""
    roster: dict[str, Json] = {}
    entries = agents.get("entries")
    if entries is not None:
        for name, entry in object_of(entries).items():
            roster.setdefault(_agent_id(name), object_of(entry))
    elif isinstance(agents.get("list"), list):
        for entry in cast("list[object]", agents["list"]):
            identifier = object_of(entry).get("id")
            if isinstance(identifier, str):
                roster.setdefault(_agent_id(identifier), object_of(entry))
    if not roster:
        roster = {"main": {}}
    marked = [name for name, entry in roster.items() if entry.get("default") is True]
    owner: str | None = None
    if len(roster) == 1:
        owner = next(iter(roster))
    elif agents.get("ownership") != "explicit":
        owner = marked[0] if marked else None
    base = _path(object_of(agents.get("defaults")).get("workspace"), env)
    result, implied = {}, set()
    for name, entry in roster.items():
        own = _path(entry.get("workspace"), env)
        if own is None and name == owner:
            named = env.get("OPENCLAW_WORKSPACE_DIR")
            own = base or (os.path.abspath(named) if named else None)
        elif own is None and base:
            own = os.path.join(base, name)
        if own is None:
            implied.add(name)
            own = os.path.join(state, "workspace" if name == owner else f"workspace-{name}")
        result[name] = own
    return result, frozenset(implied)


def _agent_id(value: str) -> str:
    """An agent id as OpenClaw stores it (docs: Agent ids)."""
    lowered = value.strip().lower()
    if _AGENT_ID.fullmatch(lowered):
        return lowered
    return re.sub(r"[^a-z0-9_-]+", "-", lowered).strip("-")[:64] or "main"


def _path(value: object, env: Mapping[str, str]) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return _absolute(_substituted(value, env).strip().replace("\0", ""), env)


def _absolute(value: str, env: Mapping[str, str]) -> str:
    """A configured path: ``~`` is the home directory, a relative one starts where we are."""
    if value == "~" or value.startswith(("~/", "~\\")):
        home = env.get("OPENCLAW_HOME") or env.get("HOME") or os.path.expanduser("~")
        value = home + value[1:].replace("\\", "/")
    path = os.path.abspath(value)
    return path[1:] if path.startswith("//") else path  # POSIX keeps two leading slashes, Node does not


def _substituted(value: str, env: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda m: env.get(m[1], m[0]), value)


def _listing(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
