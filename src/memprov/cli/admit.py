"""``memprov admit``: which sessions may become memory under a policy."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say
from memprov.cli.sessions import own_sessions
from memprov.core.records import resolve_kinds
from memprov.core.text import json_text
from memprov.core.writing import AdmissionPolicy, decide_admission
from memprov.errors import InputError, PolicyError

__all__ = ["admit_command"]

_MAX_POLICY_BYTES = 1 << 24


@click.command("admit")
@store_options
@click.option("--policy", "policy_file", metavar="FILE", type=click.Path(dir_okay=False), help="JSON5, as configured.")
@json_option
def admit_command(place: StoreOptions, policy_file: str | None, *, as_json: bool) -> None:
    """Say which sessions may become memory, and why the others may not."""
    policy = _policy(policy_file, place.openclaw)
    opened = place.open()
    forgotten = opened.snapshot().tombstones
    decisions = [decide_admission(row, policy, forgotten) for row in resolve_kinds(own_sessions(opened))]
    if as_json:
        rows = [{"sessionId": d.session_id, "admitted": d.admitted, "reason": d.reason} for d in decisions]
        document(json_text(rows, indent=2))
    else:
        say(f"{d.session_id}  {'admitted' if d.admitted else d.reason}" for d in decisions)


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
        document: object = json.loads(text, object_pairs_hook=_object)
    except PolicyError:
        raise
    except ValueError:
        document = _parse_json5(text, source)
    except RecursionError as error:
        raise InputError(f"{source} is nested too deeply") from error
    if not isinstance(document, dict):
        raise InputError(f"{source} holds no object")
    return document


def _load(source: str) -> str:
    try:
        with Path(source).open("rb") as file:
            data = file.read(_MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}; nothing was changed") from error
    if len(data) > _MAX_POLICY_BYTES:
        raise InputError(f"{source} is larger than {_MAX_POLICY_BYTES} bytes, which no policy is")
    return data.decode("utf-8", "replace")


def _parse_json5(text: str, source: str) -> object:
    try:
        import json5  # noqa: PLC0415  # an extra, and slow: only for what strict JSON is not
    except ImportError as error:
        raise InputError(f"{source} is not strict JSON; install memprov[openclaw] to read JSON5") from error
    try:
        return json5.loads(text, object_pairs_hook=_object)
    except PolicyError:
        raise
    except RecursionError as error:
        raise InputError(f"{source} is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{source} is neither JSON nor JSON5: {error}") from error


def _object(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """An object, if no key is in it twice: of two rules one would be dropped in silence."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise PolicyError(f"the key {key!r:.80} stands twice in one object; only the last one would count")
        found[key] = value
    return found
