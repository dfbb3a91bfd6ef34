"""Where does this line come from, and what came of that session: the questions that provenance is kept for.

An entry is answered with its origins, its class, the places where its markers stand, and the transfers that led to it;
a session with its entries, its corpus lines and the memory lines that hold something of it. The last are exactly those
that forgetting it would remove, since it is asked of the same rules. Of a line it is said which sessions would take it
along, and by which rule, from the same decisions (I17). Keys, ids and places only: no memory text.

``questions`` finds what is known, ``takers`` who would take a line, and ``reasons`` why; ``answers`` are the values.
"""

from memprov.core.trace.answers import (
    EntryTrace,
    LineReason,
    Place,
    SessionTrace,
    Trace,
    is_known_entry,
    is_known_session,
)
from memprov.core.trace.questions import trace_entries, trace_lines, trace_sessions
from memprov.core.trace.reasons import RemovalRule, RemovedLine, explain_text, lines_within
from memprov.core.trace.takers import explain_lines, is_machine_written

__all__ = [
    "EntryTrace",
    "LineReason",
    "Place",
    "RemovalRule",
    "RemovedLine",
    "SessionTrace",
    "Trace",
    "explain_lines",
    "explain_text",
    "is_known_entry",
    "is_known_session",
    "is_machine_written",
    "lines_within",
    "trace_entries",
    "trace_lines",
    "trace_sessions",
]
