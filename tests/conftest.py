"""Hypothesis profiles, and fixtures that hand out copies of real stores.

Profiles: `ci` (the default) is bounded and draws the same examples in every run; `long` draws at least 1,000
new ones per property (`nox -s fuzz`, or `--hypothesis-profile=long`).

Real stores, for a test that names them as arguments:

* `store_name`: the test runs once for each archive that is found;
* `unpacked_store(name)`: the unpacked archive, shared by the whole session, to be read only;
* `store_copy(name, part="before")`: a fresh copy of one of its trees, to be written to.

`@pytest.mark.needs_store("basic")` is for a test, or a parameter, that wants particular archives. Such tests
are dropped from the collection where an archive is missing, never skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.real_stores import Fingerprint, fingerprint, store_archives, stores_directory, unpack

settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "long",
    max_examples=2_000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

STORES = store_archives()
STORE_FIXTURES = frozenset({"store_name", "unpacked_store", "store_copy"})
uncollected: list[str] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_name" in metafunc.fixturenames:
        metafunc.parametrize("store_name", list(STORES))


def has_its_stores(item: pytest.Item) -> bool:
    named = {str(name) for mark in item.iter_markers("needs_store") for name in mark.args}
    uses = STORE_FIXTURES.intersection(getattr(item, "fixturenames", ()))
    return named <= STORES.keys() and (bool(STORES) or not uses)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    uncollected.extend(item.nodeid for item in items if not has_its_stores(item))
    items[:] = [item for item in items if has_its_stores(item)]


def pytest_report_collectionfinish() -> list[str]:
    lines = [f"real stores: {', '.join(STORES) or 'none'} ({stores_directory()})"]
    if uncollected:
        lines.append(f"not collected for want of a real store: {len(uncollected)} (see MEMPROV_STORES)")
    return lines


@pytest.fixture(scope="session")
def unpacked_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Name -> the unpacked archive. Shared: whoever writes into it fails the session."""
    unpacked: dict[str, tuple[Path, Fingerprint]] = {}

    def of(name: str) -> Path:
        if name not in unpacked:
            top = unpack(STORES[name], tmp_path_factory.mktemp(f"store-{name}"))
            unpacked[name] = top, fingerprint(top)
        return unpacked[name][0]

    yield of
    touched = [name for name, (top, before) in unpacked.items() if fingerprint(top) != before]
    assert not touched, f"a test wrote into the shared unpacked stores {touched}; use store_copy"


@pytest.fixture
def store_copy(unpacked_store: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """(name, part) -> a writable copy of that tree, such as `before`, with its modes and times."""

    def of(name: str, part: str = "before") -> Path:
        target = tmp_path / f"{name}-{part}"
        serial = 1
        while target.exists():
            serial += 1
            target = tmp_path / f"{name}-{part}-{serial}"
        return Path(shutil.copytree(unpacked_store(name) / part, target, symlinks=True))

    return of
