"""The command line: argument parsing and printing only (DESIGN 8).

Every command is one library call, in a module of its own. ``--json`` prints exactly one JSON document on standard
output, of the answer or of the error; progress and the error's line go to standard error. Exit codes: 0 done
(verify: clean), 1 failed part-way (verify: residue), 2 bad arguments, 3 refused, 4 verify cannot prove.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from io import TextIOWrapper

import click

from memprov.cli.admit import admit_command
from memprov.cli.demo import demo_command
from memprov.cli.failure import failure_of
from memprov.cli.forget import apply_command, forget_command
from memprov.cli.printing import document, say_error
from memprov.cli.sessions import sessions_command
from memprov.cli.trace import trace_command
from memprov.cli.verify import verify_command
from memprov.core.text import json_text
from memprov.errors import MemprovError

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memprov")
def _cli() -> None:
    """Where did this memory come from, keep that source out, forget that session."""


for _command in (
    admit_command,
    apply_command,
    demo_command,
    forget_command,
    sessions_command,
    trace_command,
    verify_command,
):
    _cli.add_command(_command)


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
            with suppress(OSError):  # the line above says it, also where standard output takes nothing
                document(json_text(failure.document(), indent=2))
        code = failure.exit_code
    sys.exit(code if isinstance(code, int) else 0)
