"""Every benchmark at its own sizes, one after the other: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import canaries, disk, executors, indexing, lineage, planning, write_path

__all__: list[str] = []

if __name__ == "__main__":
    for module in (planning, disk, executors, write_path, lineage, indexing, canaries):
        print(f"\n## {module.__name__}\n", flush=True)
        module.main([])
