"""Every benchmark once, at a size that takes seconds: that they run, not what they say."""

from __future__ import annotations

from benchmarks import canaries, disk, embedded, executors, growth, indexing, lineage, planning, starting, write_path

__all__ = ["main"]


def main() -> None:
    planning.main(["--lines", "1000", "2000"])
    disk.main(["--sessions", "20"])
    starting.main(["--repeats", "1"])
    embedded.main(["--sessions", "20", "40"])
    indexing.main(["--chunks", "200", "--dimensions", "8"])
    executors.main(["--lines", "1000"])
    write_path.main(["--sessions", "1000", "2000", "--messages", "1000", "2000"])
    canaries.main(["--sessions", "8"])
    growth.main(["--characters", "400"])
    lineage.main(["--depth", "20", "40", "--fan", "20", "40", "--keys", "10000"])


if __name__ == "__main__":
    main()
