"""What the project says about itself is so: commands, dependencies, the tables that name the tests."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memprov import Report
from memprov.cli.reading import LIMITS, describe_report

REPOSITORY = Path(__file__).resolve().parent.parent
NAMED_AFTER = re.compile(r"^\s*(?:async )?def test_([DI]\d+)_", re.MULTILINE)


def read(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def rows(page: str) -> list[list[str]]:
    """The cells of every table row of a page, heads and rules left out."""
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def numbered(page: str, letter: str) -> list[str]:
    return [cells[0] for cells in rows(page) if re.fullmatch(rf"{letter}\d+", cells[0])]


def names_in_tests() -> Iterator[str]:
    for path in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        yield from NAMED_AFTER.findall(path.read_text("utf-8"))


def test_the_ci_runs_the_tests_as_the_readme_does() -> None:
    in_readme = re.findall(r"bin/python -m pytest(.*)$", read("README.md"), re.MULTILINE)
    in_ci = re.findall(r'bin/python" -m pytest(.*?)(?: 2>&1.*)?$', read(".ci/run"), re.MULTILINE)
    assert in_readme == in_ci == [" -n auto"]


def test_the_ci_script_can_be_run() -> None:
    assert (REPOSITORY / ".ci" / "run").stat().st_mode & 0o111


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    groups: dict[str, list[str]] = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for group in groups.values() for item in group)]
    names = {re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in wanted} - {"memprov"}
    reasons = {cells[0]: cells[1] for cells in rows(read("docs/dependencies.md")) if cells[0] != "package"}
    assert reasons.keys() == names
    assert all(reasons.values())


@pytest.mark.parametrize(("page", "letter", "last"), [("deviations", "D", 24), ("invariants", "I", 17)])
def test_each_number_has_one_row_that_names_its_tests(page: str, letter: str, last: int) -> None:
    text = read(f"docs/{page}.md")
    assert numbered(text, letter) == [f"{letter}{number}" for number in range(1, last + 1)]
    cells = {row[0]: row[-1] for row in rows(text)}
    assert all(cells[name] == f"`test_{name}_*`" for name in numbered(text, letter))


def test_no_test_is_named_after_a_number_that_the_docs_lack() -> None:
    known = {*numbered(read("docs/deviations.md"), "D"), *numbered(read("docs/invariants.md"), "I")}
    assert set(names_in_tests()) <= known


def test_every_page_is_in_the_contents() -> None:
    index = read("docs/index.md")
    pages = {path.stem for path in (REPOSITORY / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if f"\n{page}\n" not in index} == set()


def test_F65a_what_deletion_does_not_cover_has_a_page_that_the_readme_and_every_report_lead_to() -> None:
    page = read(LIMITS).lower()
    left = ("transcripts", "before provenance", "paraphrase", "handwritten", "exports", "backups", "other agents")
    later = ("another session", "writes while a purge runs", "no certificate")
    assert [topic for topic in (*left, *later) if topic not in page] == []
    assert f"]({LIMITS})" in read("README.md")
    report = Report("main", dry_run=True)
    assert LIMITS in [line for line in describe_report(report, None) if line][-1]


def test_the_readme_promises_nothing_that_it_does_not_show() -> None:
    assert [word for word in ("provably", "completely", "guarantee") if word in read("README.md").lower()] == []


def names_in_the_docs() -> set[str]:
    """Every page, and every heading on one: what code and comments may cite as `docs: NAME`."""
    pages = sorted((REPOSITORY / "docs").glob("*.md"))
    headings = (re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE) for page in pages)
    return {page.stem for page in pages} | {heading for found in headings for heading in found}


def uncited(source: str, names: set[str]) -> list[str]:
    """What the source cites that a reader of this repository does not have."""
    text = re.sub(r"\s*\n\s*(?:#:? ?)?", " ", source)
    cited = re.findall(r"\bdocs: (.{1,60})", text)
    foreign = re.findall(r"\b(?:FACTS|DESIGN|TESTING)(?:-EXTRA)? [\d§a-z][^ ]*", text)
    return [*foreign, *(place for place in cited if not place.startswith(tuple(names)))]


def test_what_is_cited_is_a_page_or_a_heading_of_the_docs() -> None:
    names = names_in_the_docs()
    places = ("src", "tests", "benchmarks", "docs")
    files = [path for place in places for path in sorted((REPOSITORY / place).rglob("*.py"))]
    wrong = {path.name: found for path in files if (found := uncited(path.read_text("utf-8"), names))}
    wrong.pop("test_project.py", None)
    assert not wrong


def test_a_citation_of_what_a_reader_does_not_have_rings() -> None:
    assert uncited("(FACTS 1.5, D2)", {"Index"}) == ["FACTS 1.5,"]
    assert uncited('"""Why (docs: Nowhere)."""', {"Index"}) == ['Nowhere)."""']
    assert uncited("# so (docs:\n#: Index)", {"Index"}) == uncited("(docs: Index, I5)", {"Index"}) == []
