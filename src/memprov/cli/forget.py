"""``memprov forget`` and ``memprov apply``: preview, save, carry out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from attrs import evolve

from memprov.cli.failure import AnswerLostError
from memprov.cli.files import load_file, save_file
from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, progress, say, say_error
from memprov.cli.reading import describe_report
from memprov.cli.receipt import describe_receipt
from memprov.core.proof import MAX_RECEIPT_BYTES, Receipt
from memprov.core.purge import MAX_PLAN_BYTES, Level, PurgePlan, Report, Selectors
from memprov.errors import InputError
from memprov.shell.knowing import require_known
from memprov.shell.native import open_store
from memprov.shell.openclaw import OpenClawStore, open_openclaw
from memprov.shell.port import Store
from memprov.shell.receipts import receipts, sessions_in_receipt
from memprov.shell.runner import apply_plan, forget, preview

__all__ = ["apply_command", "forget_command"]

_BREAK_LOCK = click.option(
    "--break-lock", is_flag=True, help="Take over a lock whose owner cannot be judged from here."
)
# The names themselves: an enumeration is offered by click 8.2 and later under its members' names.
_LEVELS = click.Choice([level.value for level in Level])


@click.command("forget")
@store_options
@click.option("--session", "sessions", metavar="ID_OR_KEY", multiple=True, help="A session, by exact id or key.")
@click.option("--hook-source", "hook_sources", metavar="SOURCE", multiple=True, help="gmail, email, webhook …")
@click.option("--participant", "participants", metavar="ACTOR_ID", multiple=True, help="Sessions with this actor.")
@click.option("--since", metavar="TIME", help="Only sessions that began since: an ISO date or date-time (UTC).")
@click.option("--known", is_flag=True, help="Refuse a selector that meets no session the store knows.")
@click.option("--dry-run", is_flag=True, help="Report what would go; change nothing.")
@click.option("--plan-out", metavar="FILE", type=click.Path(dir_okay=False), help="Save the plan, for apply.")
@click.option(
    "--from-receipt", metavar="FILE", type=click.Path(dir_okay=False), help="The sessions of a receipt, once more."
)
@click.option("--level", type=_LEVELS, default=Level.LOGICAL.value, show_default=True, help="How far to go.")
@click.option("--prove", is_flag=True, help="Look for the sessions before and after; the receipt says what was found.")
@click.option("--receipt", metavar="FILE", type=click.Path(dir_okay=False), help="Write the receipt to a file.")
@_BREAK_LOCK
@json_option
def forget_command(  # one parameter per option
    place: StoreOptions,
    sessions: tuple[str, ...],
    hook_sources: tuple[str, ...],
    participants: tuple[str, ...],
    since: str | None,
    plan_out: str | None,
    from_receipt: str | None,
    level: str,
    receipt: str | None,
    *,
    known: bool,
    dry_run: bool,
    prove: bool,
    break_lock: bool,
    as_json: bool,
) -> None:
    """Remove what the selected sessions produced, and keep it out. Deletes at once unless --dry-run is given."""
    selectors = Selectors(sessions, hook_sources, participants, since)
    if from_receipt is None:
        selectors.require()
    _require_writable(receipt)
    opened = place.open()
    if from_receipt is not None:
        named = sessions_in_receipt(opened, Receipt.from_json(load_file(from_receipt, MAX_RECEIPT_BYTES)))
        selectors = evolve(selectors, sessions=(*selectors.sessions, *named))
    if known:
        require_known(opened, selectors)
    plan = preview(opened, selectors, level=level) if dry_run or plan_out else None
    if plan is not None and plan_out is not None:
        save_file(plan.to_json(), plan_out, "--plan-out")
    if plan is not None and dry_run:
        _print(plan.report, plan, as_json=as_json)
        if isinstance(opened, OpenClawStore) and (refusal := opened.refusal(plan)):
            say_error(f"as it is, the purge itself would be refused: {refusal}")
        return
    with progress() as watched:
        if plan is not None:
            report = apply_plan(opened, plan, break_lock=break_lock, prove=prove, progress=watched)
        else:
            report = forget(opened, selectors, level=level, break_lock=break_lock, prove=prove, progress=watched)
    _print_done(report, as_json=as_json)
    if report.session_ids:
        _show_receipt(receipts(opened)[-1], receipt, as_json=as_json)


@click.command("apply")
@click.argument("plan_file", metavar="PLAN", type=click.Path(dir_okay=False))
@click.option("--session-store", metavar="PATH", help="As it was given when the plan was made.")
@_BREAK_LOCK
@json_option
def apply_command(plan_file: str, session_store: str | None, *, break_lock: bool, as_json: bool) -> None:
    """Carry out a saved plan, if it still says what would be done."""
    plan = PurgePlan.from_json(load_file(plan_file, MAX_PLAN_BYTES))
    identity = plan.store
    store: Store
    if identity.kind == "openclaw":
        store = open_openclaw(identity.state_root, identity.agent_id, identity.workspace_root, session_store)
    else:
        if session_store is not None:
            raise InputError("--session-store is of OpenClaw installations, and this plan is of memprov's own store")
        store = open_store(identity.state_root, identity.agent_id, identity.workspace_root, create=False)
    with progress() as watched:
        report = apply_plan(store, plan, break_lock=break_lock, progress=watched)
    _print_done(report, as_json=as_json)


def _require_writable(target: str | None) -> None:
    """Refuse, before the purge, a place in which its receipt could not be written."""
    if target is None:
        return
    path = Path(target).resolve()
    if not target.strip() or (path.exists() and not path.is_file()):
        raise InputError(f"--receipt {target} is no regular file; nothing was changed")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise InputError(f"--receipt {target}: there is no directory {path.parent} to write to; nothing was changed")


def _show_receipt(receipt: Receipt, target: str | None, *, as_json: bool) -> None:
    if target is not None:
        try:
            save_file(receipt.to_json() + "\n", target, "--receipt")
        except InputError as error:
            raise AnswerLostError(
                f"the purge is done; {error}; the receipt is in the store (memprov receipt)"
            ) from error
    if not as_json:
        with _after_the_purge():
            say(describe_receipt(receipt))


def _print_done(report: Report, *, as_json: bool) -> None:
    with _after_the_purge():
        _print(report, None, as_json=as_json)


@contextmanager
def _after_the_purge() -> Iterator[None]:
    """What cannot be printed any more is no reason to run the purge again."""
    try:
        yield
    except OSError as error:
        raise AnswerLostError(
            f"the purge is done and nothing of it is left to do; only its report could not be printed: {error.strerror}"
        ) from error


def _print(report: Report, plan: PurgePlan | None, *, as_json: bool) -> None:
    if as_json:
        document(report.to_json())
        return
    say(describe_report(report, plan))
    if report.dry_run and report.session_ids:
        say(["Nothing was changed. The same command without --dry-run does this."])
