"""Draw the house from its code: `python docs/house.py` writes docs/house.svg, and a test says when that is out of date.

Rooms stand on floors, every arrow is an import that the code really has, and a room stands on the lowest floor that is
above all that it imports.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

__all__ = ["arrows", "drawing", "floors"]

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "src" / "memprov"
BOX, GAP, ROW = (150, 36), 24, 84


def room_of(module: str) -> str | None:
    """The room of a module of memprov: `core.text`, `shell.native`, `cli` …; errors and the face are none."""
    parts = module.split(".")[1:]
    if not parts or parts[0] == "errors":
        return None
    return ".".join(parts[: 2 if parts[0] in {"core", "shell"} and len(parts) > 1 else 1])


def arrows() -> dict[str, set[str]]:
    """Room -> the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE.parent).with_suffix("")
        own = room_of(".".join(relative.parts[:-1] if relative.name == "__init__" else relative.parts))
        if own is None or own in {"core", "shell", "__main__"}:
            continue
        imported = found.setdefault(own, set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memprov."):
                imported.add(room_of(node.module or "") or own)
        imported.discard(own)
    return found


def floors(rooms: dict[str, set[str]]) -> list[list[str]]:
    """The rooms by floor, lowest first. Raises `ValueError` where arrows run in a circle."""
    floor: dict[str, int] = {}
    while len(floor) < len(rooms):
        ready = [r for r in rooms if r not in floor and all(i in floor for i in rooms[r] if i in rooms)]
        if not ready:
            raise ValueError(f"a circle among {sorted(set(rooms) - set(floor))}")
        for room in ready:
            floor[room] = 1 + max((floor[i] for i in rooms[room] if i in rooms), default=-1)
    return [sorted(r for r in rooms if floor[r] == n) for n in range(max(floor.values()) + 1)]


def drawing() -> str:
    """The house as SVG."""
    rooms = arrows()
    levels = floors(rooms)
    width = max(len(level) for level in levels) * (BOX[0] + GAP) + GAP
    height = len(levels) * ROW + GAP
    place = {}
    for number, level in enumerate(levels):
        left = (width - len(level) * (BOX[0] + GAP) + GAP) // 2
        for position, room in enumerate(level):
            place[room] = (left + position * (BOX[0] + GAP), height - (number + 1) * ROW)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for room in sorted(rooms):
        for imported in sorted(rooms[room] & rooms.keys()):
            (x, y), (to_x, to_y) = place[room], place[imported]
            lines.append(
                f'<line x1="{x + BOX[0] // 2}" y1="{y + BOX[1]}" x2="{to_x + BOX[0] // 2}" y2="{to_y}" stroke="#bbb"/>'
            )
    for room, (x, y) in sorted(place.items()):
        colour = {"core": "#e3f0e3", "shell": "#e3e9f5"}.get(room.split(".")[0], "#f5ece0")
        lines.append(
            f'<rect x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="4" fill="{colour}" stroke="#666"/>'
            f'<text x="{x + BOX[0] // 2}" y="{y + 23}" text-anchor="middle">{escape(room)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    (DOCS / "house.svg").write_text(drawing(), encoding="utf-8")
