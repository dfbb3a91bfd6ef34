"""What a path of a workspace says of what stands there: which texts a program composed, and no person (D16, D23)."""

from __future__ import annotations

__all__ = ["is_diary", "is_machine_path", "is_phase_report"]


def is_phase_report(path: str) -> bool:
    """Whether a memory file is a dreaming phase report, where nested rows go with their row (D16)."""
    return path.startswith("memory/dreaming/")


def is_diary(path: str) -> bool:
    """Whether a memory file is the dream diary, in which people write too, outside the managed blocks."""
    return path in ("DREAMS.md", "dreams.md")


def is_machine_path(path: str) -> bool:
    """Whether what is known only by this path was composed by a program: from a report, the diary or the corpus."""
    return is_phase_report(path) or is_diary(path) or path.startswith("memory/.dreams/")
