"""What the calls of the write path and of the index take, checked before anything is read: a wrong thing by name."""

from __future__ import annotations

from datetime import tzinfo
from typing import TypeVar

from memprov.core.records import described, is_moment
from memprov.errors import InputError
from memprov.shell.native import NativeStore

__all__ = ["call", "moment", "need", "optional", "waiting", "zone_of"]

T = TypeVar("T")


def moment(store: NativeStore, now_ms: int | None) -> int:
    """The one moment of a call, in epoch milliseconds: as it was given, or what the store's clock says."""
    if now_ms is None:
        return round(store._clock() * 1000)
    if not is_moment(now_ms):
        raise InputError(f"now_ms is {described(now_ms)}; it must be a time in whole milliseconds since 1970")
    return now_ms


def waiting(store: NativeStore) -> NativeStore:
    """The store, read by who is going to write (F41)."""
    return store.about_to_write() if type(store) is NativeStore else store  # not of what stands in for one


def need(value: T, kind: type[T], name: str) -> T:
    """The value, if it is of this kind."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {described(value)}; it must be a memprov.{kind.__name__}")
    return value


def optional(value: T | None, kind: type[T], name: str) -> T | None:
    """The value, if there is one, of this kind."""
    return None if value is None else need(value, kind, name)


def call(value: T, name: str) -> T:
    """The value, if it can be called."""
    if not callable(value):
        raise InputError(f"{name} is {described(value)}; it must be a function")
    return value


def zone_of(zone: tzinfo) -> tzinfo:
    """The time zone, if it is one."""
    if not isinstance(zone, tzinfo):
        raise InputError(f"zone is {described(zone)}; it must be a time zone, ZoneInfo('Europe/Oslo') say")
    return zone
