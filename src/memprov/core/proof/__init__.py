"""Proof: what to look for after a purge, where it may lie, what a scan amounts to, and the receipt of it all.

``surfaces`` declares every place that holds memory text or session ids; ``needles`` and ``search`` say what is looked
for and find it in bytes; ``verdicts`` says what was found: clean, residue, or cannot prove. Nothing here knows how a
purge works: what proves it may share nothing with it.
"""

from memprov.core.proof.erasure import Erasure, is_stale_rebuild
from memprov.core.proof.needles import Encoding, Needle, NeedleSet, guises, pieces
from memprov.core.proof.places import NeedleKind, Root, Spot, Surface
from memprov.core.proof.receipts import (
    MAX_RECEIPT_BYTES,
    Receipt,
    Witness,
    attested,
    chain_problems,
    own_problems,
    seal_receipt,
    sessions_named,
)
from memprov.core.proof.search import Match, Search
from memprov.core.proof.surfaces import SURFACES, is_declared, retained_at, surface_at
from memprov.core.proof.verdicts import LIMITS, Control, Finding, Sighting, Verdict, Verification, judge

__all__ = [
    "LIMITS",
    "MAX_RECEIPT_BYTES",
    "SURFACES",
    "Control",
    "Encoding",
    "Erasure",
    "Finding",
    "Match",
    "Needle",
    "NeedleKind",
    "NeedleSet",
    "Receipt",
    "Root",
    "Search",
    "Sighting",
    "Spot",
    "Surface",
    "Verdict",
    "Verification",
    "Witness",
    "attested",
    "chain_problems",
    "guises",
    "is_declared",
    "is_stale_rebuild",
    "judge",
    "own_problems",
    "pieces",
    "retained_at",
    "seal_receipt",
    "sessions_named",
    "surface_at",
]
