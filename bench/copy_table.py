"""Whole packs and unpacks against memcpy, in summary.

python3 bench/copy_table.py JSON... [--update FILE]

JSON are outputs of bench_copies (--benchmark_out=FILE --benchmark_out_format=json); of several runs the
median counts. Figures are percent of memcpy's speed on the same bytes, for each size and op.
--update writes the table between the lines <!-- copies --> and <!-- /copies --> of a Markdown file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.tile_runs import cpu_name  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.model import RequestError  # noqa: E402

BARS = {"256KiB": 55, "4MiB": 70, "256MiB": 90}  # percent of memcpy
WORST = 10


class ResultError(Exception):
    """A file is not what bench_copies writes."""


def results(path: Path) -> list[tuple[tuple[str, ...], float]]:
    """Name and percent of each, the name as (op, width, tile, order, size)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ResultError(f"{path}: not JSON: {error}") from None
    try:
        found = [(tuple(run["name"].split("/")[:5]), float(run["memcpy%"]))
                 for run in content["benchmarks"]
                 if run.get("run_type") == "iteration" and "memcpy%" in run]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ResultError(f"{path}: not the output of a benchmark") from None
    for name, _ in found:
        if len(name) != 5 or name[0] not in ("pack", "unpack") or name[-1] not in BARS:
            raise ResultError(f"{path}: {'/'.join(name)} is no name of bench_copies")
    return found


def read(paths: list[Path]) -> dict[tuple[str, ...], float]:
    """Percent by (op, width, tile, order, size)."""
    percents = defaultdict(list)
    for path in paths:
        for name, percent in results(path):
            percents[name].append(percent)
    if not percents:
        raise ResultError("no results of bench_copies there")
    return {name: median(values) for name, values in percents.items()}


def report(percents: dict[tuple[str, ...], float]) -> str:
    groups: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (op, *cell, size), value in percents.items():
        groups[size, op][" ".join(cell)] = value
    lines = [f"Percent of memcpy's speed ({cpu_name()}, {date.today()}):", "",
             "| size | op | cells | bar | reach it | median | worst |", "|---|---|---|---|---|---|---|"]
    for (size, op), cells in sorted(groups.items(), key=lambda group: list(BARS).index(group[0][0])):
        reached = sum(value >= BARS[size] for value in cells.values())
        worst = sorted(cells, key=cells.__getitem__)[:WORST]
        named = ", ".join(f"{cell} {cells[cell]:.0f}" for cell in worst)
        lines.append(f"| {size} | {op} | {len(cells)} | {BARS[size]} | {reached} | "
                     f"{median(cells.values()):.0f} | {named} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, nargs="+", metavar="JSON")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the table there")
    options = parser.parse_args()
    try:
        table = report(read(options.json))
        if options.update:
            replace_block(options.update, "copies", table)
    except (ResultError, RequestError) as error:
        print(f"copy_table.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"copy_table.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
