"""The chores of memprov, each in a virtualenv of its own: `nox -s tests`, `nox -s lint types`, `nox -l`."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "types", "tests", "docs"]

PYTHONS = ["3.11", "3.12", "3.13"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests with the bounded Hypothesis profile; arguments go to pytest."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests and measure branches: all of the core must be reached."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", "--cov", "--cov-report=", *session.posargs)
    session.run("coverage", "report")
    session.run("coverage", "report", "--include=src/memprov/core/*", "--fail-under=100")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Run the property tests at length: 2,000 fresh examples each (arguments select others)."""
    session.install("-e", ".[test]")
    selection = session.posargs or ["-m", "hypothesis"]
    session.run("python", "-m", "pytest", "-n", "auto", "--hypothesis-profile=long", *selection)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the library, its tests and this file."""
    session.install("-e", ".[lint]")
    session.run("mypy", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and the import contract."""
    session.install("-e", ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html", *session.posargs)


@nox.session
def lancedb(session: nox.Session) -> None:
    """Run the tests of vectors and index with LanceDB, which is too large for every run."""
    session.install("-e", ".[test,lancedb]")
    paths = ["tests/shell/vectors", "tests/shell/index"]
    session.run("python", "-m", "pytest", *paths, *session.posargs)


@nox.session
def dask(session: nox.Session) -> None:
    """Run the tests on a cluster of two local workers."""
    session.install("-e", ".[test,dask]")
    session.run("python", "-m", "pytest", "tests/shell/test_dask.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks and write their figures into the documentation; arguments name some of them."""
    session.install("-e", ".[bench]")
    session.run("python", "-m", "benchmarks", "--into", "docs/benchmarks", *session.posargs)


@nox.session
def growth(session: nox.Session) -> None:
    """Measure how every reader of text grows on every hostile shape; one that grows too fast is an error."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "benchmarks.growth", *session.posargs)


@nox.session
def smoke(session: nox.Session) -> None:
    """Run the benchmarks on their smallest sizes: do they still work?"""
    session.install("-e", ".[test]")
    session.run("python", "-m", "benchmarks.smoke", *session.posargs)
