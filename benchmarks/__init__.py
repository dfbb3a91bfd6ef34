"""Benchmarks: run one with ``python -m benchmarks.NAME``, all with ``python -m benchmarks``."""
