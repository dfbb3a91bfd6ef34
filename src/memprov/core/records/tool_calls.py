"""Which memory files a message's tool calls name: to be listed for review when its session is forgotten (docs: Curated
writes).

Whether a call succeeded is not asked (case H3). What counts is what the model asked for, as hosts have recorded it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from attrs import Attribute, field, frozen

from memprov.core.records.nouns import described, strings
from memprov.errors import InputError

__all__ = ["Roots", "ToolCall", "calls_in", "given_calls", "written_paths"]

_TOOLS = frozenset({"write", "edit", "apply_patch"})
_CALLS = frozenset({"toolCall", "tool_call", "tool_use"})
_PATCH_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


@frozen
class ToolCall:
    """A call of a tool in an assistant's message: the tool's name, and its arguments as an object or as JSON text.

    Files are looked for in calls of ``write``, ``edit`` and ``apply_patch``; any other call may be given too. Raises
    ``InputError`` for a name that is no string.
    """

    name: str = field()
    arguments: object = field(default=None, repr=False, hash=False)

    @name.validator
    def _is_text(self, _: Attribute[str], value: object) -> None:
        if not isinstance(value, str):
            raise InputError(f"the name of a tool call is {described(value)}; it must be a string")


def given_calls(calls: Iterable[ToolCall | Mapping[str, object]]) -> tuple[ToolCall, ...]:
    """The calls that a host hands over: as they are, or as the parts in which platforms report them.

    Such a part has the tool's ``name``, and its ``arguments`` or ``input``; or the two under ``function``. Raises
    ``InputError`` for anything else.
    """
    if isinstance(calls, str | bytes | Mapping) or not isinstance(calls, Iterable):
        raise InputError(f"the tool_calls of a message are {described(calls)}; give a list of them")
    return tuple(call if isinstance(call, ToolCall) else _reported(call) for call in calls)


def _reported(part: object) -> ToolCall:
    inner = part.get("function", part) if isinstance(part, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise InputError(f"a tool call of a message is {described(part)}; give a ToolCall, or a part with its name")
    return _call(inner)


def _call(part: Mapping[str, object]) -> ToolCall:
    arguments = part.get("arguments")
    return ToolCall(str(part["name"]), part.get("input") if arguments is None else arguments)


@frozen
class Roots:
    """The spellings of the workspace in which a call may name a file; relative paths start at the first."""

    spellings: tuple[str, ...] = field(converter=strings)

    def relative(self, directory: str, path: str) -> str | None:
        """The path below the workspace, or ``None`` for one that is elsewhere."""
        for root in self.spellings:
            top = _steps(root)
            full = _steps(root, directory, path)
            if full[: len(top)] == top and len(full) > len(top):
                return "/".join(full[len(top) :])
        return None


def calls_in(content: object) -> tuple[ToolCall, ...]:
    """The calls of writing tools among the blocks of a message's content."""
    blocks = (block for block in (content if isinstance(content, list) else ()) if isinstance(block, dict))
    return tuple(
        _call(block) for block in blocks if _among(block.get("type"), _CALLS) and _among(block.get("name"), _TOOLS)
    )


def written_paths(calls: Iterable[ToolCall], roots: Roots) -> Iterator[str]:
    """The memory files that these calls name, relative to the workspace."""
    for call in calls:
        if call.name not in _TOOLS:
            continue
        directory, paths = _named_paths(call.arguments, patch=call.name == "apply_patch")
        for path in paths:
            relative = roots.relative(directory, path)
            if relative is not None and (relative in ("MEMORY.md", "USER.md") or relative.startswith("memory/")):
                yield relative


def _named_paths(arguments: object, *, patch: bool) -> tuple[str, list[str]]:
    """The working directory and the paths in a call's arguments, which may be JSON in a string or a bare patch."""
    if isinstance(arguments, str):
        try:
            decoded: object = json.loads(arguments)
        except (ValueError, RecursionError):
            return "", _patched_paths(arguments) if patch else []
        arguments = decoded
    values = arguments if isinstance(arguments, Mapping) else {}
    paths: list[object] = [values.get(name) for name in ("path", "file_path", "filePath")]
    if patch:
        script = values.get("input") if isinstance(values.get("input"), str) else values.get("patch")
        paths += _patched_paths(script) if isinstance(script, str) else []
        changes = values.get("changes")
        if isinstance(changes, Mapping):
            paths += changes
        for change in changes if isinstance(changes, list | tuple) else ():
            if isinstance(change, Mapping):
                kind = change.get("kind")
                paths += [change.get("path"), kind.get("move_path") if isinstance(kind, Mapping) else None]
    directory = values.get("cwd")
    named = [path for path in paths if isinstance(path, str) and path]
    return directory if isinstance(directory, str) else "", named


def _steps(*parts: str) -> list[str]:
    """The steps from the root to a path that is given in parts, each relative to those before unless it is absolute."""
    steps: list[str] = []
    for part in parts:
        if part.startswith("/"):
            steps = []
        for step in part.split("/"):
            if step == "..":
                del steps[-1:]
            elif step not in ("", "."):
                steps.append(step)
    return steps


def _patched_paths(script: str) -> list[str]:
    """The files of a patch. A blank at the end of a line is part of the name, as OpenClaw has it (docs: deviations)."""
    return [
        line[len(head) :]
        for line in script.replace("\r\n", "\n").split("\n")
        for head in _PATCH_LINES
        if line.startswith(head)
    ]


def _among(value: object, names: frozenset[str]) -> bool:
    return isinstance(value, str) and value in names
