"""Whole packs and unpacks against memcpy, as a table.

python3 bench/copy_table.py JSON... [--update FILE]

JSON are outputs of bench_copies (--benchmark_out=FILE --benchmark_out_format=json); of several runs the
median counts. Figures are percent of memcpy's speed on the same bytes; a star marks one under the bar
of its size. --update writes the table between the lines <!-- copies --> and <!-- /copies --> of a
Markdown file.
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

ORDERS = ("n", "i", "o", "io")
BARS = {"256KiB": 55, "4MiB": 70, "256MiB": 90}  # percent of memcpy


def read(paths: list[Path]) -> dict[tuple[str, ...], float]:
    """Percent by (op, width, tile, order, size)."""
    found = defaultdict(list)
    for path in paths:
        for run in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
            if run.get("run_type") == "iteration" and "memcpy%" in run:
                found[tuple(run["name"].split("/")[:5])].append(run["memcpy%"])
    return {name: median(values) for name, values in found.items()}


def report(percents: dict[tuple[str, ...], float]) -> str:
    sizes = [size for size in BARS if any(name[4] == size for name in percents)]
    lines = [f"Percent of memcpy's speed ({cpu_name()}, {date.today()}); * is under the bar:", ""]
    for size in sizes:
        of_size = {name: value for name, value in percents.items() if name[4] == size}
        good = sum(value >= BARS[size] for value in of_size.values())
        lines.append(f"- {size}: {good} of {len(of_size)} at {BARS[size]} % or more, "
                     f"median {median(of_size.values()):.0f} %")
    heads = [f"{size} {order}" for size in sizes for order in ORDERS]
    lines += ["", "| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for row in dict.fromkeys(name[:3] for name in percents):
        cells = []
        for size in sizes:
            for order in ORDERS:
                value = percents.get((*row, order, size))
                star = "*" if value is not None and value < BARS[size] else ""
                cells.append("" if value is None else f"{value:.0f}{star}")
        lines.append(f"| {' '.join(row)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, nargs="+", metavar="JSON")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the table there")
    options = parser.parse_args()
    percents = read(options.json)
    if not percents:
        print("copy_table.py: no results of bench_copies there", file=sys.stderr)
        return 1
    table = report(percents)
    print(table)
    if options.update:
        replace_block(options.update, "copies", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
