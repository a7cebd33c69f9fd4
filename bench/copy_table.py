"""Whole packs and unpacks against memcpy, in summary and cell by cell.

python3 bench/copy_table.py RESULT.json... [--update FILE [--block NAME]]

RESULT.json are what `bench_copies --benchmark_out=RESULT.json` wrote on one CPU; of several runs of a cell
the median counts. Figures are percent of memcpy's speed on the same bytes, for each size and op.
--update writes the tables between the lines <!-- copies --> and <!-- /copies --> of a Markdown file, or those
of another name.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from re import Match
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.results import Results, judged, markdown_table, positive_of, read_results  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.model import RequestError  # noqa: E402

BARS = {"256KiB": 55, "4MiB": 70, "256MiB": 90}  # percent of memcpy
ORDERS = ("n", "i", "o", "io")
WORST = 10

_CELL_NAME = re.compile(r"(?P<op>pack|unpack)/(?P<width>x\d+)/(?P<tile0>\d+)x(?P<tile1>\d+)/"
                        rf"(?P<order>{'|'.join(ORDERS)})/(?P<size>{'|'.join(BARS)})")


@dataclass(frozen=True)
class Cell:
    op: str
    width: str
    tile0: int
    tile1: int
    order: str
    size: str
    percent: float  # of memcpy

    @property
    def tile(self) -> str:
        return f"{self.tile0}x{self.tile1}"


def read(paths: Iterable[Path]) -> Results[Cell]:
    return read_results(paths, "bench_copies", _CELL_NAME, _cell, _median)


def _cell(match: Match[str], entry: dict[str, object]) -> Cell:
    return Cell(match["op"], match["width"], int(match["tile0"]), int(match["tile1"]), match["order"],
                match["size"], positive_of(entry, "memcpy%", match[0]))


def _median(runs: list[Cell]) -> Cell:
    return replace(runs[0], percent=median(cell.percent for cell in runs))


def _summary(cells: list[Cell]) -> list[str]:
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.size, cell.op].append(cell)
    rows = []
    for (size, op), group in sorted(groups.items(), key=lambda item: list(BARS).index(item[0][0])):
        reached = sum(cell.percent >= BARS[size] for cell in group)
        worst = sorted(group, key=lambda cell: cell.percent)[:WORST]
        named = ", ".join(f"{cell.width} {cell.tile} {cell.order} {cell.percent:.0f}" for cell in worst)
        rows.append([size, op, str(len(group)), str(BARS[size]), str(reached),
                     f"{median(cell.percent for cell in group):.0f}", named])
    return markdown_table(["size", "op", "cells", "bar", "reach it", "median", "worst"], rows)


def _text(of_tile: list[Cell]) -> str:
    """Of the sizes of a tile."""
    texts = dict.fromkeys(BARS, "–")
    for cell in of_tile:
        texts[cell.size] = judged(cell.percent, BARS[cell.size], f"{cell.percent:.0f}")
    return f"{of_tile[0].tile} {'/'.join(texts.values())}"


def _cell_by_cell(cells: list[Cell]) -> list[str]:
    rows: dict[tuple[str, str, str], dict[int, dict[int, list[Cell]]]] = {}
    for cell in sorted(cells, key=lambda c: (c.op, int(c.width[1:]), ORDERS.index(c.order), c.tile0)):
        row = rows.setdefault((cell.op, cell.width, cell.order), {})
        row.setdefault(cell.tile1, {}).setdefault(cell.tile0, []).append(cell)
    columns = sorted({cell.tile1 for cell in cells})
    return markdown_table(["op", "width", "order", *(f"tile1 = {tile1}" for tile1 in columns)],
                          [[*name, *(", ".join(map(_text, row.get(tile1, {}).values())) for tile1 in columns)]
                           for name, row in rows.items()])


def report(results: Results[Cell]) -> str:
    parts = [f"Percent of memcpy's speed ({results.cpu}, {results.date}):", "", *_summary(results.cells),
             f"Cell by cell: the tile, tile0 x tile1, and its percents from L2/L3/memory ({'/'.join(BARS)}), bold "
             "where they miss their bar:", "", *_cell_by_cell(results.cells)]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    parser.add_argument("--block", default="copies", metavar="NAME",
                        help="the comments in FILE that they go between (default: copies)")
    options = parser.parse_args()
    try:
        tables = report(read(options.results))
        if options.update:
            replace_block(options.update, options.block, tables)
    except (RequestError, OSError) as error:
        print(f"copy_table.py: {error}", file=sys.stderr)
        return 2
    print(tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
