"""Which store a command is about: the one that was named, else the one that the environment and the home lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from memprov.errors import InputError

__all__ = ["USUAL", "StorePlace", "find_place"]

#: The value of ``--openclaw`` without one: no argument of a program can hold a NUL.
USUAL = "\0"


@frozen
class StorePlace:
    """A directory, whether it is an OpenClaw installation or memprov's own store, and what led there but its name."""

    directory: str
    openclaw: bool
    led_by: str = ""

    @property
    def announcement(self) -> str:
        """What a person is told who did not name it."""
        kind = "the OpenClaw installation" if self.openclaw else "the store"
        return f"taking {kind} in {self.directory} ({self.led_by})"


def find_place(
    store: str | None, openclaw: str | None, environ: Mapping[str, str], is_there: Callable[[str], bool]
) -> StorePlace:
    """The store that is meant. ``store`` and ``openclaw`` are the options as they were given, ``USUAL`` for
    ``--openclaw`` alone.

    What is named counts before the environment: ``MEMPROV_STORE``, then ``OPENCLAW_STATE_DIR``, then ``.openclaw`` in
    the home directory if it is there; for ``--openclaw`` alone, the last two. A variable that is blank is not set.
    Raises ``InputError`` for two names, a blank one, and where nothing leads anywhere.
    """
    if store is not None and openclaw is not None:
        raise InputError("name one store: --store DIR or --openclaw STATE_DIR")
    for option, value in (("--store", store), ("--openclaw", openclaw)):
        if value is not None and value != USUAL and not value.strip():
            raise InputError(f"{option} is blank")
    if store is not None:
        return StorePlace(store, openclaw=False)
    if openclaw is not None and openclaw != USUAL:
        return StorePlace(openclaw, openclaw=True)
    home = environ.get("OPENCLAW_HOME", "").strip() or environ.get("HOME", "").strip()
    own, installed = (environ.get(name, "").strip() for name in ("MEMPROV_STORE", "OPENCLAW_STATE_DIR"))
    usual = str(Path(home, ".openclaw")) if home else ""
    if own and openclaw is None:
        return StorePlace(_from_home(own, home), openclaw=False, led_by="MEMPROV_STORE")
    if installed:
        return StorePlace(_from_home(installed, home), openclaw=True, led_by="OPENCLAW_STATE_DIR")
    if usual and is_there(usual):
        return StorePlace(usual, openclaw=True, led_by="the usual place")
    variables = "MEMPROV_STORE or OPENCLAW_STATE_DIR" if openclaw is None else "OPENCLAW_STATE_DIR"
    raise InputError(
        f"name one store: --store DIR or --openclaw STATE_DIR, or set {variables}; nothing is in the usual place "
        f"{usual or '.openclaw in the home directory, which is not known'}"
    )


def _from_home(place: str, home: str) -> str:
    return home + place[1:] if home and (place == "~" or place.startswith("~/")) else place
