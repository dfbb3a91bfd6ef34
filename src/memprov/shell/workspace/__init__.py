"""The files of a workspace: reading all of them without a trace, and replacing one without ever tearing it.

``scan`` finds the memory files, the session corpus and left-over copies (D6, D7, D18); ``reading_of`` answers a plan's
questions about them. ``cut_file`` and ``remove_file`` carry out the two effects on files, ``settle`` makes sure of
earlier ones. All of them go through directory handles and never follow a link inside the workspace; ``Calls`` is where
a test makes a system call fail.
"""

from memprov.shell.workspace.listing import MovedError
from memprov.shell.workspace.reading import WorkspaceReading, reading_of
from memprov.shell.workspace.replace import cut_file, remove_file, require_replaceable
from memprov.shell.workspace.scan import WorkspaceScan, scan, settle
from memprov.shell.workspace.tree import CALLS, Calls

__all__ = [
    "CALLS",
    "Calls",
    "MovedError",
    "WorkspaceReading",
    "WorkspaceScan",
    "cut_file",
    "reading_of",
    "remove_file",
    "require_replaceable",
    "scan",
    "settle",
]
