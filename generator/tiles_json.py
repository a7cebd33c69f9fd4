"""The library's table as data, for whoever picks tiles without linking the library."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Iterable

from generator import library
from generator.build import layout
from generator.copy_tile import CopyTile
from generator.library import AnyTile
from generator.model import ARCHS, RequestError, Tile
from generator.tiles import Row, table


def _level(arch: str, level: library.Level) -> dict:
    return {"arch": arch, "name": level.name, "rank": level.rank, "features": sorted(level.features),
            "slow": sorted(level.slow)}


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


def read_rows(path: Path, arch: str) -> tuple[Row, ...]:
    """Those of an architecture in a file that holds what tiles_json returned."""
    try:
        content = json.loads(library.read_text(path))
        rows = [row for row in content["tiles"] if row["arch"] == arch]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RequestError(f"{path}: not a table of tiles, as tiles.json is") from None
    return tuple(_read_row(path, arch, row) for row in rows)


def _read_row(path: Path, arch: str, fields: dict) -> Row:
    """The symbol says what the tile is; the rest has to be what this generator writes with it, whose levels
    and costs are not those of another version."""
    symbol = fields.get("symbol")
    if not isinstance(symbol, str):
        raise RequestError(f"{path}: a tile has no symbol")
    try:
        tile = (Tile if fields.get("op") == "mmt4d" else CopyTile).from_symbol(symbol)
        row = Row(tile, fields.get("numerics"), fields.get("origin"))
        is_ours = (tile.isa in library.levels(arch) and isinstance(row.numerics, str)
                   and row.origin in ("hand", "generated") and _row(row) == fields)
    except RequestError:
        is_ours = False
    if not is_ours:
        raise RequestError(f"{path}: {library.quoted(symbol)} is not as this version of the generator writes it")
    return row


# ---------------------------------------------------------------- command line

def add_table_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("table", help="print the library's table, of all CPUs, as JSON")
    parser.add_argument("--arch", action="append", choices=ARCHS,
                        help="of this architecture only; may be repeated")
    parser.set_defaults(
        run=lambda arguments: print(tiles_json(list(dict.fromkeys(arguments.arch or ARCHS))), end=""))
