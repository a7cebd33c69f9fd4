"""The sources of the tiles that the library's own build generates."""

from __future__ import annotations

import hashlib
from itertools import groupby
from pathlib import Path
from typing import Iterable, Iterator

from generator import library
from generator.build import sources_hash
from generator.copy_tile import emit_copies
from generator.emit import emit
from generator.library import AnyTile
from generator.model import Tile
from generator.plan import make_plan
from generator.select import choose_primitive
from generator.tiles import Row, table
from generator.tiles_json import tiles_json

# A file costs a compiler about as much as ten tiles do; larger ones leave cores idle at the end.
TILES_PER_FILE = 20

ROWS = "tiles.inc"
_STAMP = "stamp"


def _topic(row: Row) -> str:
    """What the tiles of a file have in common. A file per type, so that a tile more in the grid
    changes few of them."""
    tile = row.tile
    if isinstance(tile, Tile):
        return f"mmt4d_{tile.type.name}" + ("_f32acc" if tile.f32acc else "")
    return f"{tile.op}_{tile.width}"


def _source(rows: list[Row]) -> str:
    tiles = [row.tile for row in rows]
    mmt4d = [tile for tile in tiles if isinstance(tile, Tile)]
    if mmt4d:
        return emit(make_plan(tile, choose_primitive(tile)) for tile in mmt4d)
    return emit_copies(tiles)


def _files(arch: str, extra: tuple[AnyTile, ...]) -> Iterator[tuple[str, str]]:
    """Relative paths and contents."""
    rows = [row for row in table(arch, extra) if row.origin == "generated"]
    comment = "// The generated rows of this build. See ukernel/tile.h for the columns.\n"
    yield ROWS, comment + "".join(f"{library.row_text(r.tile, r.numerics)}\n" for r in rows)
    yield "tiles.json", tiles_json(library.ARCHS, extra)
    for (level, topic), group in groupby(rows, lambda row: (row.tile.isa, _topic(row))):
        of_topic = list(group)
        for number, first in enumerate(range(0, len(of_topic), TILES_PER_FILE)):
            yield (f"{level}/{topic}_{number}.cc",
                   _source(of_topic[first:first + TILES_PER_FILE]))


def _replace_if_changed(path: Path, text: str) -> None:
    """A file that did not change keeps its time, and what was compiled from it stays good."""
    if path.exists() and path.read_bytes() == text.encode():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    library.replace_file(path, text)


def _is_written(out: Path, stamp: str) -> bool:
    """The stamp is followed by the names of the files."""
    try:
        found, *names = (out / _STAMP).read_text(errors="replace").splitlines()
    except (FileNotFoundError, ValueError):
        return False
    return found == stamp and all((out / name).exists() for name in names)


def write_library_sources(arch: str, extra: Iterable[AnyTile], out: Path) -> None:
    """Fills `out`, which is this function's own: files that are no longer wanted go."""
    extra = tuple(extra)
    stamp = hashlib.sha256(sources_hash(arch))
    stamp.update("\n".join(tile.symbol for tile in extra).encode())
    if _is_written(out, stamp.hexdigest()):
        return
    (out / _STAMP).unlink(missing_ok=True)  # until all is written
    names = []
    for name, text in _files(arch, extra):
        _replace_if_changed(out / name, text)
        names.append(name)
    written = {out / name for name in names}
    for path in out.rglob("*"):
        if path.is_file() and path not in written:
            path.unlink()
    library.replace_file(out / _STAMP, "\n".join([stamp.hexdigest(), *names]))
