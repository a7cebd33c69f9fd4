"""The map of what bench_query measured: how good the tile shapes are that uk_query_tile_sizes returns.

python3 bench/query/map.py RESULT.json... [--update FILE [--block NAME]]

RESULT.json are what `bench_query --benchmark_out=RESULT.json` wrote, in one run or in several of parts of
the cells, on one CPU; of a cell that was measured more than once the most certain counts. A cell's figure
is the speed of the query's shape in percent of the fastest shape's. The query loses a cell if it is more
than 5 % behind for certain, by the quartiles of at least five pairs. A cell is disturbed, and in no mean,
where that cannot be told. --update writes the tables between the lines <!-- NAME --> and <!-- /NAME --> of
a Markdown file, NAME being query unless --block says another.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from re import Match

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench.results import (MOST_UNCERTAINTY, Results, markdown_table, median_uncertainty,  # noqa: E402
                           most_certain, positive_of, read_results, text_of)
from generator.document import replace_block  # noqa: E402
from generator.model import RequestError  # noqa: E402

LEAST_SHARE = 0.95  # of the fastest shape's speed
LEAST_PAIRS = 5  # whose quartiles say how certain their median is

_CELL_NAME = re.compile(r"(?P<level>\w+)/(?P<type>\w+)/(?P<m>[1-9]\d*)x(?P<n>[1-9]\d*)x(?P<k>[1-9]\d*)/"
                        r"(?P<weights>free|packed)(?P<cold>/cold)?")
_SHAPE = re.compile(r"[1-9]\d*x[1-9]\d*x[1-9]\d*")


@dataclass(frozen=True)
class Rival:
    """A shape, and the speed of the query's shape by its own."""

    shape: str
    ratio: float
    uncertainty: float  # of the ratio, by itself


@dataclass(frozen=True)
class Cell:
    level: str
    type: str
    m: int
    n: int
    k: int
    weights: str
    shape: str  # the query's
    fastest: Rival | None  # of the others; None: no other came near

    @property
    def share(self) -> float:
        """Of the fastest shape's speed."""
        return min(1, self.fastest.ratio) if self.fastest else 1

    @property
    def uncertainty(self) -> float:
        return self.fastest.uncertainty if self.fastest else 0

    @property
    def is_lost(self) -> bool:
        return self.share * (1 + self.uncertainty) < LEAST_SHARE

    @property
    def is_disturbed(self) -> bool:
        return self.uncertainty > MOST_UNCERTAINTY and not self.is_lost


# ---------------------------------------------------------------- reading

def read(paths: Iterable[Path]) -> Results[Cell]:
    return read_results(paths, "bench_query", _CELL_NAME, _cell, most_certain)


def _cell(match: Match[str], entry: dict[str, object]) -> Cell:
    name = match[0]
    shape = text_of(entry, "label").split(" ")[0]
    if not _SHAPE.fullmatch(shape):
        raise ValueError(f"{name}: the label '{shape}' is no shape")
    pairs = positive_of(entry, "pairs", name)
    rivals = []
    for figure in filter(_SHAPE.fullmatch, entry):
        lower, ratio, upper = (positive_of(entry, figure + end, name) for end in ("_q1", "", "_q3"))
        rivals.append(Rival(figure, ratio, median_uncertainty(lower, ratio, upper, pairs)
                            if pairs >= LEAST_PAIRS else math.inf))
    return Cell(match["level"], match["type"], int(match["m"]), int(match["n"]), int(match["k"]),
                match["weights"], shape, min(rivals, key=lambda rival: rival.ratio, default=None))


# ---------------------------------------------------------------- tables

def _text(cell: Cell) -> str:
    if cell.is_disturbed:
        return f"{cell.shape} ?"
    percent = f"{100 * cell.share:.0f}"
    if cell.is_lost and cell.fastest:
        return f"{cell.shape} **{percent}** {cell.fastest.shape}"
    return f"{cell.shape} {percent}"


def _groups(cells: list[Cell], *members: str) -> dict[tuple[str, ...], list[Cell]]:
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(str(getattr(cell, name)) for name in members), []).append(cell)
    return groups


def _summary(cells: list[Cell]) -> list[str]:
    rows = []
    for (level, kind, weights), all_cells in _groups(cells, "level", "type", "weights").items():
        group = [cell for cell in all_cells if not cell.is_disturbed]
        if not group:
            continue
        worst = min(group, key=lambda cell: cell.share)
        mean = math.exp(statistics.fmean(math.log(cell.share) for cell in group))
        rows.append([level, kind, weights, f"{len(group)} of {len(all_cells)}", f"{100 * mean:.1f}",
                     f"{100 * worst.share:.0f} at {worst.m}x{worst.n}x{worst.k}",
                     str(sum(cell.is_lost for cell in group))])
    return markdown_table(["level", "type", "weights", "cells", "geometric mean", "worst", "lost"], rows)


def _map(cells: list[Cell]) -> list[str]:
    sizes = sorted({cell.m for cell in cells})
    rows = []
    for names, group in _groups(cells, "level", "type", "weights", "n", "k").items():
        level, kind, weights, n, k = names
        texts = {cell.m: _text(cell) for cell in group}
        rows.append([level, kind, weights, f"{n} x {k}", *(texts.get(m, "") for m in sizes)])
    return markdown_table(["level", "type", "weights", "N x K", *(f"M = {m}" for m in sizes)], rows)


def report(results: Results[Cell]) -> str:
    percent = f"{100 * (1 - LEAST_SHARE):.0f}"
    parts = [f"{results.cpu}, {results.date}. Speeds of the query's shapes in percent of the fastest "
             f"shape's; lost: more than {percent} % behind for certain.", "", *_summary(results.cells),
             "Cell by cell: the query's shape, its percent, bold where it loses, and then the fastest shape; "
             "'?' where a disturbance leaves it open.", "", *_map(results.cells)]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    parser.add_argument("--block", default="query", metavar="NAME",
                        help="between <!-- NAME --> and <!-- /NAME --> (default: %(default)s)")
    options = parser.parse_args()
    try:
        tables = report(read(options.results))
        print(tables)
        if options.update:
            replace_block(options.update, options.block, tables)
    except (RequestError, OSError) as error:
        print(f"map.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
