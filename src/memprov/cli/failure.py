"""What a failed command answers: a sentence, and for programs what was changed and what remains."""

from __future__ import annotations

import click
from attrs import frozen

from memprov.errors import InputError, MemprovError, PartialError

__all__ = ["AnswerLostError", "Failure", "failure_of"]


class AnswerLostError(MemprovError):
    """The purge is done; only its report could not be printed."""

    changed = True


@frozen
class Failure:
    """An error as a person and a program read it. ``remains`` are the effects that were not carried out, in words."""

    error: str
    kind: str
    exit_code: int
    changed: bool = False
    remains: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """The JSON form."""
        return {"error": self.error, "kind": self.kind, "changed": self.changed, "remains": list(self.remains)}


def failure_of(error: Exception) -> Failure:
    """The failure that an exception stands for; ``kind`` is the name of the class that the library raises for it."""
    match error:
        case MemprovError():
            remains = error.remaining if isinstance(error, PartialError) else ()
            return Failure(str(error), type(error).__name__, error.exit_code, error.changed, remains)
        case click.ClickException():
            return Failure(" ".join(error.format_message().split()), InputError.__name__, InputError.exit_code)
        case OSError():
            message = f"the answer could not be printed: {error.strerror}; run the command again to see it"
            return Failure(message, type(error).__name__, 1)
        case _:  # an interrupt may come at any moment
            return Failure("interrupted; running the same command again is safe", "Interrupted", 1, changed=True)
