"""The library's table as data, for whoever picks tiles without linking the library."""

from __future__ import annotations

import argparse
import json
from typing import Iterable

from generator import library
from generator.build import layout
from generator.library import AnyTile
from generator.model import Tile
from generator.tiles import Row, table


def _level(arch: str, level: library.Level) -> dict:
    return {"arch": arch, "name": level.name, "rank": level.rank, "features": sorted(level.features)}


def _row(row: Row) -> dict:
    t = row.tile
    if isinstance(t, Tile):
        what = {"op": "mmt4d", "type": t.type.name, "shape": [t.m0, t.n0, t.k0],
                "needs_skip": t.f32acc}
    else:
        what = {"op": t.op, "type": t.width, "shape": [t.tile0, t.tile1], "transposed": t.transposed}
    features = library.levels(t.arch)[t.isa].features
    return {"symbol": t.symbol, **what, "arch": t.arch, "isa": t.isa, "features": sorted(features),
            "numerics": row.numerics, "origin": row.origin, "layout": layout(t)}


def _lines(objects: Iterable[dict]) -> str:
    return ",\n".join(map(json.dumps, objects))


def tiles_json(archs: Iterable[str], extra: Iterable[AnyTile] = ()) -> str:
    """JSON with a line per level and per row: those of the library as it is built with the tiles of
    `extra` beside the grid. "needs_skip": only for callers who permit SKIP_INTERMEDIATE_ROUNDINGS."""
    archs, extra = list(archs), list(extra)
    levels = [_level(arch, level) for arch in archs for level in library.levels(arch).values()]
    rows = [_row(row) for arch in archs
            for row in table(arch, tuple(tile for tile in extra if tile.arch == arch))]
    return f'{{"levels": [\n{_lines(levels)}\n], "tiles": [\n{_lines(rows)}\n]}}\n'


# ---------------------------------------------------------------- command line

def add_table_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("table", help="print the library's table, of all CPUs, as JSON")
    parser.add_argument("--arch", action="append", choices=library.ARCHS,
                        help="of this architecture only; may be repeated")
    parser.set_defaults(
        run=lambda arguments: print(tiles_json(arguments.arch or library.ARCHS), end=""))
