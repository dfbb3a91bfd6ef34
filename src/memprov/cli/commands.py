"""The command line: argument parsing and printing only (docs: cli).

Every command is one library call, in a module of its own. ``--json`` prints exactly one JSON document on standard
output, of the answer or of the error; progress and the error's line go to standard error. Exit codes: 0 done
(verify: clean), 1 failed part-way (verify: residue), 2 bad arguments, 3 refused, 4 verify cannot prove.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

import click

from memprov.cli.failure import failure_of
from memprov.cli.printing import document, say_error
from memprov.errors import MemprovError

__all__ = ["main"]

#: Command -> its module, and the first sentence of its help, which is all that ``memprov --help`` needs to know.
_COMMANDS = {
    "admit": ("admit", "Say which sessions may become memory, and why the others may not."),
    "agents": ("agents", "List the agents of a store or an installation, with their sessions and last activity."),
    "apply": ("forget", "Carry out a saved plan, if it still says what would be done."),
    "demo": ("demo", "Build a small store, forget a session, and look for what is left."),
    "forget": ("forget", "Remove what the selected sessions produced, and keep it out."),
    "receipt": ("receipt", "Show what was testified to, or check a receipt."),
    "sessions": ("sessions", "List an agent's sessions, to find the id or key to forget."),
    "trace": ("trace", "Say where an entry or a line comes from, or what came of a session."),
    "verify": ("verify", "Look for the selected sessions in every byte of the store."),
}


class _Commands(click.Group):
    """The commands, each loaded when it is run: most of what they need, ``memprov --help`` does not."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"memprov.cli.{module}"), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in sorted(_COMMANDS.items())])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memprov")
def _cli() -> None:
    """Where did this memory come from, keep that source out, forget that session."""


def main() -> None:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, TextIOWrapper):  # what its encoding lacks is shown escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _cli.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stderr)
        code = error.exit_code
    except (click.exceptions.Abort, click.ClickException, OSError, MemprovError) as error:
        failure = failure_of(error)
        say_error(failure.error)
        if "--json" in sys.argv[1:]:
            from memprov.core.text import json_text  # noqa: PLC0415  # nothing else here needs the core

            with suppress(OSError):  # the line above says it, also where standard output takes nothing
                document(json_text(failure.document(), indent=2))
        code = failure.exit_code
    sys.exit(code if isinstance(code, int) else 0)
