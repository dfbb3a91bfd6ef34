"""``memprov verify``: is anything of these sessions left? Before a purge it answers where a conversation is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from memprov.cli.files import load_file
from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say
from memprov.core.proof import MAX_RECEIPT_BYTES, Finding, Receipt, Verdict, Verification
from memprov.core.purge import Selectors
from memprov.errors import InputError
from memprov.shell.proof import verify

__all__ = ["describe_verification", "read_needles", "verify_command"]

_MAX_NEEDLES = 1 << 26
_VERDICTS = {
    Verdict.CLEAN: "Clean: nothing of it is left but what is retained by contract",
    Verdict.RESIDUE: "Residue: it is still here",
    Verdict.CANNOT_PROVE: "Cannot prove: nothing was found, and that is not enough",
}


@click.command("verify")
@store_options
@click.option("--session", "sessions", metavar="ID_OR_KEY", multiple=True, help="A session, by exact id or key.")
@click.option("--hook-source", "hook_sources", metavar="SOURCE", multiple=True, help="gmail, email, webhook …")
@click.option("--participant", "participants", metavar="ACTOR_ID", multiple=True, help="Sessions with this actor.")
@click.option("--since", metavar="TIME", help="Only sessions created since: an ISO date or date-time (UTC).")
@click.option("--receipt", metavar="FILE", type=click.Path(dir_okay=False), help="The sessions that a receipt names.")
@click.option(
    "--needles", metavar="FILE", type=click.Path(dir_okay=False), help="Texts to look for, one on each line, in UTF-8."
)
@json_option
def verify_command(
    place: StoreOptions,
    sessions: tuple[str, ...],
    hook_sources: tuple[str, ...],
    participants: tuple[str, ...],
    since: str | None,
    receipt: str | None,
    needles: str | None,
    *,
    as_json: bool,
) -> None:
    """Look for the selected sessions in every byte of the store. Reads only.

    Ends with 0 when it is clean, 1 when something is left, 4 when that cannot be proven.
    """
    asked: Selectors | Receipt = Selectors(sessions, hook_sources, participants, since)
    if receipt is not None:
        if asked != Selectors():
            raise InputError("name sessions or a receipt, not both")
        asked = Receipt.from_json(load_file(receipt, MAX_RECEIPT_BYTES))
    elif isinstance(asked, Selectors):
        asked.require()
    given = None if needles is None else read_needles(needles)
    answer = verify(place.open(), asked, given)
    if as_json:
        document(answer.to_json())
    else:
        say(describe_verification(answer))
    click.get_current_context().exit(answer.exit_code)


def read_needles(path: str) -> tuple[str, ...]:
    """The lines of a file that hold something. Raises ``InputError`` where there are none, or too much."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_NEEDLES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_NEEDLES:
        raise InputError(f"{path} is larger than {_MAX_NEEDLES} bytes")
    lines = tuple(line for line in data.decode("utf-8", "surrogateescape").splitlines() if line.strip())
    if not lines:
        raise InputError(f"{path} holds no text to look for")
    return lines


def describe_verification(answer: Verification) -> Iterator[str]:
    """The verdict, where things are, and what the verdict does not cover, as lines of text."""
    yield _VERDICTS[answer.verdict]
    shared = f"; {answer.shared_texts} more were said in sessions that stay, too" if answer.shared_texts else ""
    yield f"  looked for {answer.ids} ids and {answer.texts} texts in {answer.files} files{shared}"
    yield from _places("Left", answer.residue)
    yield from _places("Retained by contract", answer.retained)
    if answer.obstacles:
        yield "Not proven"
        yield from (f"  {reason}" for reason in answer.obstacles)
    held = sum(control.holds for control in answer.controls)
    yield f"Controls: {held} of {len(answer.controls)} hold"
    yield "Not covered"
    yield from (f"  {limit}" for limit in answer.limits)


def _places(title: str, hits: Iterable[Finding]) -> Iterator[str]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for hit in hits:
        counts[str(hit.spot), hit.retained, hit.removal] += hit.count
    if not counts:
        return
    yield title
    reasons: set[tuple[str, str]] = set()
    for (place, why, removal), count in sorted(counts.items()):
        yield f"  {count:>6}  {place}"
        reasons.add((why, removal))
    for why, removal in sorted(reasons):
        if why:
            yield f"          {why}; to remove it: {removal}"
