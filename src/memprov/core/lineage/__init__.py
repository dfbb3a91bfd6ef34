"""The origin graph: which sessions each tracked entry came from, and how that survives merges.

``table`` holds the rows of a ledger as columns and answers what a purge asks: which entries hold an origin of these
sessions, and which of those have other origins too. ``merge`` holds the rules by which rows are recorded, handed to a
survivor, released after a failed publication, and pruned. Both keep one order of rows, (entry key, agent, session), and
one join of equal rows: the weakest class, the earliest time (D14). ``edges`` says which transfers led from where to
where, ``ownership`` which of several keys an entry is of.
"""

from memprov.core.lineage.edges import TransferEdge, edges_after_drop, edges_to, joined_edges
from memprov.core.lineage.merge import (
    PublicationOutcome,
    Transfer,
    entry_classes,
    join_origins,
    keeps_reserved,
    prunable_keys,
    record_origins,
    rows_to_release,
    transfer_origins,
)
from memprov.core.lineage.ownership import EntryEvidence, Strays, contested_keys, evidence_of, named_keys
from memprov.core.lineage.table import Basis, Lineage, OriginTable, lineage_digest

__all__ = [
    "Basis",
    "EntryEvidence",
    "Lineage",
    "OriginTable",
    "PublicationOutcome",
    "Strays",
    "Transfer",
    "TransferEdge",
    "contested_keys",
    "edges_after_drop",
    "edges_to",
    "entry_classes",
    "evidence_of",
    "join_origins",
    "joined_edges",
    "keeps_reserved",
    "lineage_digest",
    "named_keys",
    "prunable_keys",
    "record_origins",
    "rows_to_release",
    "transfer_origins",
]
