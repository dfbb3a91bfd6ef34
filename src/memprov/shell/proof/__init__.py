"""Proof, carried out: the independent reader that says what is left, the erasure, and the receipts.

``verify`` scans every byte below a store's roots and shares no code with the purge.
"""

from memprov.shell.proof.verify import verify

__all__ = ["verify"]
