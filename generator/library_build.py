"""The sources of the tiles that the library's own build generates."""

from __future__ import annotations

import hashlib
import re
from itertools import groupby
from pathlib import Path
from typing import Iterable, Iterator

from generator import library
from generator.build import sources_hash
from generator.copy_tile import emit_copies
from generator.emit import emit
from generator.library import AnyTile
from generator.model import ARCHS, Tile
from generator.plan import make_plan
from generator.select import choose_primitive
from generator.tiles import Row, table
from generator.tiles_json import tiles_json

# A file costs a compiler about as much as ten tiles do; larger ones leave cores idle at the end.
TILES_PER_FILE = 20

ROWS = "tiles.inc"
# A line that tells what was written, and the names of the files. The build compiles these, not what else is there.
_STAMP = "stamp"
_INCOMPLETE = "incomplete"

# A stamp that is not ours must not have anything deleted but what we could have written.
_OWN_FILE = re.compile(r"tiles\.(inc|json)|\w+/(mmt4d|pack|unpack)_\w+_\d+\.cc", re.ASCII)


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
        return emit((make_plan(tile, choose_primitive(tile)) for tile in mmt4d), in_library=True)
    return emit_copies(tiles)


def _files(arch: str, extra: tuple[AnyTile, ...]) -> Iterator[tuple[str, str]]:
    """Relative paths and contents."""
    rows = [row for row in table(arch, extra) if row.origin == "generated"]
    comment = "// The generated rows of this build. See ukernel/tile.h for the columns.\n"
    yield ROWS, comment + "".join(f"{library.row_text(r.tile, r.numerics)}\n" for r in rows)
    yield "tiles.json", tiles_json(ARCHS, extra)
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


def _stamp(found: str, names: Iterable[str]) -> str:
    return "\n".join([found, *names])


def _read_stamp(out: Path) -> tuple[str, list[str]]:
    """What the last run was for, and the files that it or one before it wrote."""
    try:
        found, *names = (out / _STAMP).read_text(errors="replace").splitlines()
    except (FileNotFoundError, ValueError):
        return "", []
    return found, [name for name in names if _OWN_FILE.fullmatch(name)]


def write_library_sources(arch: str, extra: Iterable[AnyTile], out: Path) -> None:
    """Writes them into `out`, and deletes what earlier runs wrote there and this one does not. Other
    files are none of its business."""
    extra = tuple(extra)
    digest = hashlib.sha256(b"".join(map(sources_hash, ARCHS)))  # tiles.json is of all
    digest.update(arch.encode())
    digest.update("\n".join(tile.symbol for tile in extra).encode())
    wanted = digest.hexdigest()
    found, before = _read_stamp(out)
    if found == wanted and all((out / name).exists() for name in before):
        return
    files = dict(_files(arch, extra))
    # Until all is written the stamp fits no run, but names what has to go.
    _replace_if_changed(out / _STAMP, _stamp(_INCOMPLETE, sorted({*before, *files})))
    for name, text in files.items():
        _replace_if_changed(out / name, text)
    for name in set(before) - files.keys():
        (out / name).unlink(missing_ok=True)
    library.replace_file(out / _STAMP, _stamp(wanted, files))
