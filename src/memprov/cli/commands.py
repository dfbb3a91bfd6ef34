"""The command line: argument parsing and printing only (DESIGN 8).

Every command is one library call. ``--json`` prints exactly one JSON document on standard output; progress, warnings
and errors go to standard error. Exit codes: 0 done, 1 failed part-way, 2 bad arguments, 3 refused.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from memprov.cli.demo import run_demo
from memprov.cli.reading import describe_report, describe_sessions, describe_trace
from memprov.core.purge import MAX_PLAN_BYTES, Level, PurgePlan, Report, Selectors
from memprov.core.records import SessionRecord, identity_json, resolve_kinds
from memprov.core.text import json_text
from memprov.core.writing import AdmissionPolicy, decide_admission
from memprov.errors import InputError, MemprovError
from memprov.shell.native import open_store
from memprov.shell.openclaw import open_openclaw
from memprov.shell.port import Store
from memprov.shell.runner import apply_plan, forget, preview
from memprov.shell.trace import trace

__all__ = ["main"]

Command = Callable[..., None]


def _store_options(command: Command) -> Command:
    for option in (
        click.option("--workspace", metavar="DIR", help="Where the workspace's files are, if they were moved."),
        click.option("--agent", metavar="ID", default="main", show_default=True, help="Whose memory."),
        click.option("--session-store", metavar="PATH", help="Read sessions here, not where session.store leads."),
        click.option("--openclaw", metavar="STATE_DIR", help="The state directory of an OpenClaw installation."),
        click.option("--store", metavar="DIR", help="memprov's own store."),
    ):
        command = option(command)
    return command


def _open(
    store: str | None, openclaw: str | None, session_store: str | None, agent: str, workspace: str | None
) -> Store:
    if (store is None) == (openclaw is None):
        raise InputError("name one store: --store DIR or --openclaw STATE_DIR")
    for option, value in (("--store", store), ("--openclaw", openclaw), ("--workspace", workspace)):
        if value is not None and not value.strip():
            raise InputError(f"{option} is blank")
    if openclaw is not None:
        return open_openclaw(openclaw, agent, workspace, session_store)
    return open_store(store or "", agent, workspace, create=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memprov")
def _cli() -> None:
    """Where did this memory come from, keep that source out, forget that session."""


@_cli.command("sessions")
@_store_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def _sessions(
    store: str | None,
    openclaw: str | None,
    session_store: str | None,
    agent: str,
    workspace: str | None,
    *,
    as_json: bool,
) -> None:
    """List an agent's sessions, to find the id or key to forget."""
    opened = _open(store, openclaw, session_store, agent, workspace)
    rows = _sessions_of(opened)
    if as_json:
        _document(json_text([_session_json(row) for row in rows], indent=2))
        return
    for line in describe_sessions(rows, opened.snapshot().tombstones):
        click.echo(line)


def _sessions_of(store: Store) -> list[SessionRecord]:
    return [record for record in store.catalogue() if record.agent_id == store.identity.agent_id]


def _session_json(row: SessionRecord) -> dict[str, object]:
    return {
        "agentId": row.agent_id,
        "sessionId": row.session_id,
        "sessionKey": row.session_key,
        "state": row.state.value,
        "kind": row.kind.value,
        "createdAt": row.created_at_ms,
        "channel": row.channel,
        "chatType": row.chat_type,
        "hookSource": row.hook_source,
        "participants": [identity_json(identity) for identity in row.participants],
        "parentKey": row.parent_key,
    }


@_cli.command("forget")
@_store_options
@click.option("--session", "sessions", metavar="ID_OR_KEY", multiple=True, help="A session, by exact id or key.")
@click.option("--hook-source", "hook_sources", metavar="SOURCE", multiple=True, help="gmail, email, webhook …")
@click.option("--participant", "participants", metavar="ACTOR_ID", multiple=True, help="Sessions with this actor.")
@click.option("--since", metavar="TIME", help="Only sessions created since: an ISO date or date-time (UTC).")
@click.option("--dry-run", is_flag=True, help="Report what would go; change nothing.")
@click.option("--plan-out", metavar="FILE", type=click.Path(dir_okay=False), help="Save the plan, for apply.")
@click.option("--level", type=click.Choice([*Level]), default=Level.LOGICAL, show_default=True, help="How far to go.")
@click.option("--break-lock", is_flag=True, help="Take over a lock whose owner cannot be judged from here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def _forget(  # one parameter per option
    store: str | None,
    openclaw: str | None,
    session_store: str | None,
    agent: str,
    workspace: str | None,
    sessions: tuple[str, ...],
    hook_sources: tuple[str, ...],
    participants: tuple[str, ...],
    since: str | None,
    plan_out: str | None,
    level: str,
    *,
    dry_run: bool,
    break_lock: bool,
    as_json: bool,
) -> None:
    """Remove what the selected sessions produced, and keep it out. Deletes at once unless --dry-run is given."""
    selectors = Selectors(sessions, hook_sources, participants, since)
    selectors.require()
    opened = _open(store, openclaw, session_store, agent, workspace)
    plan = preview(opened, selectors, level=level) if dry_run or plan_out else None
    if plan is not None and plan_out is not None:
        _save(plan, plan_out)
    if plan is not None and dry_run:
        _print(plan.report, plan, as_json=as_json)
        return
    with _progress() as progress:
        if plan is not None:
            report = apply_plan(opened, plan, break_lock=break_lock, progress=progress)
        else:
            report = forget(opened, selectors, level=level, break_lock=break_lock, progress=progress)
    _print(report, None, as_json=as_json)


@_cli.command("apply")
@click.argument("plan_file", metavar="PLAN", type=click.Path(dir_okay=False))
@click.option("--session-store", metavar="PATH", help="As it was given when the plan was made.")
@click.option("--break-lock", is_flag=True, help="Take over a lock whose owner cannot be judged from here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def _apply(plan_file: str, session_store: str | None, *, break_lock: bool, as_json: bool) -> None:
    """Carry out a saved plan, if it still says what would be done."""
    plan = PurgePlan.from_json(_load(plan_file))
    identity = plan.store
    store: Store
    if identity.kind == "openclaw":
        store = open_openclaw(identity.state_root, identity.agent_id, identity.workspace_root, session_store)
    else:
        store = open_store(identity.state_root, identity.agent_id, identity.workspace_root, create=False)
    with _progress() as progress:
        report = apply_plan(store, plan, break_lock=break_lock, progress=progress)
    _print(report, None, as_json=as_json)


@_cli.command("admit")
@_store_options
@click.option("--policy", "policy_file", metavar="FILE", type=click.Path(dir_okay=False), help="JSON5, as configured.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def _admit(  # one parameter per option
    store: str | None,
    openclaw: str | None,
    session_store: str | None,
    agent: str,
    workspace: str | None,
    policy_file: str | None,
    *,
    as_json: bool,
) -> None:
    """Say which sessions may become memory, and why the others may not."""
    policy = _policy(policy_file, openclaw)
    opened = _open(store, openclaw, session_store, agent, workspace)
    forgotten = opened.snapshot().tombstones
    decisions = [decide_admission(row, policy, forgotten) for row in resolve_kinds(_sessions_of(opened))]
    if as_json:
        rows = [{"sessionId": d.session_id, "admitted": d.admitted, "reason": d.reason} for d in decisions]
        _document(json_text(rows, indent=2))
        return
    for decision in decisions:
        click.echo(f"{decision.session_id}  {'admitted' if decision.admitted else decision.reason}")


@_cli.command("trace")
@_store_options
@click.option("--entry", metavar="KEY", help="An entry, by its key.")
@click.option("--session", metavar="ID_OR_KEY", help="A session, by exact id or key.")
@click.option("--file", metavar="FILE:LINE", help="A line of a memory file or of the corpus, from 1.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def _trace(  # one parameter per option
    store: str | None,
    openclaw: str | None,
    session_store: str | None,
    agent: str,
    workspace: str | None,
    entry: str | None,
    session: str | None,
    file: str | None,
    *,
    as_json: bool,
) -> None:
    """Say where an entry or a line comes from, or what came of a session."""
    answer = trace(_open(store, openclaw, session_store, agent, workspace), entry=entry, session=session, file=file)
    if as_json:
        _document(answer.to_json())
        return
    for line in describe_trace(answer):
        click.echo(line)


@_cli.command("demo")
@click.option("--directory", metavar="DIR", type=click.Path(file_okay=False), help="Keep the demo's store here.")
def _demo(directory: str | None) -> None:
    """Build a small store, forget a session, and look for what is left."""
    with ExitStack() as stack:
        place = Path(directory or stack.enter_context(TemporaryDirectory(prefix="memprov-demo-")))
        if place.exists() and any(place.iterdir()):
            raise InputError(f"{place} is not empty; the demo makes a store of its own")
        for line in run_demo(place):
            click.echo(line)


def _policy(policy_file: str | None, openclaw: str | None) -> AdmissionPolicy:
    """The policy of the file that is named, else the installation's own, else none."""
    if policy_file is not None:
        return AdmissionPolicy.from_config(_read_json5(policy_file))
    configured = Path(openclaw or "", "openclaw.json")
    if openclaw is None or not configured.is_file():
        return AdmissionPolicy()
    return AdmissionPolicy.from_config({"plugins": _read_json5(str(configured)).get("plugins", {})})


def _read_json5(source: str) -> dict[str, object]:
    text = _load(source)
    try:
        document: object = json.loads(text)
    except ValueError:
        document = _parse_json5(text, source)
    except RecursionError as error:
        raise InputError(f"{source} is nested too deeply") from error
    if not isinstance(document, dict):
        raise InputError(f"{source} holds no object")
    return document


def _parse_json5(text: str, source: str) -> object:
    try:
        import json5  # noqa: PLC0415  # an extra, and slow: only for what strict JSON is not
    except ImportError as error:
        raise InputError(f"{source} is not strict JSON; install memprov[openclaw] to read JSON5") from error
    try:
        return json5.loads(text)
    except ValueError as error:
        raise InputError(f"{source} is neither JSON nor JSON5: {error}") from error


def _save(plan: PurgePlan, target: str) -> None:
    if not target.strip():
        raise InputError("--plan-out is blank")
    path = Path(target).resolve()
    if path.exists() and not path.is_file():
        raise InputError(f"the plan cannot be written to {target}, which is no regular file; nothing was changed")
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(plan.to_json(), encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise InputError(
            f"the plan cannot be written to {target}: {error.strerror}; nothing else was changed"
        ) from error


def _load(source: str) -> str:
    try:
        with Path(source).open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}; nothing was changed") from error
    return data.decode("utf-8", "replace")


def _print(report: Report, plan: PurgePlan | None, *, as_json: bool) -> None:
    if as_json:
        _document(report.to_json())
        return
    for line in describe_report(report, plan):
        click.echo(line)
    if report.dry_run and report.session_ids:
        click.echo("Nothing was changed. The same command without --dry-run does this.")


def _document(text: str) -> None:
    """Print a JSON document: in UTF-8, whatever the terminal speaks."""
    click.echo(text.encode())


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Progress on standard error, and only where somebody watches it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("planning", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def main() -> None:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, TextIOWrapper):  # what its encoding lacks is shown escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = _fail("interrupted; running the same command again is safe", 1)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stderr)
        code = error.exit_code
    except click.ClickException as error:
        code = _fail(error.format_message(), 2)
    except OSError as error:
        code = _fail(f"the answer could not be printed: {error.strerror}; run the command again to see it", 1)
    except MemprovError as error:
        code = _fail(str(error), error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> int:
    click.echo("memprov: " + " ".join(message.split()), err=True)
    return code
