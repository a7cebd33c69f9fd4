"""Pack and unpack tiles: what is asked for by them, and their source.

Their code is arch/pack_tile.h, for every shape, width and order; a tile is a row on it, with the
vectors of arch/<arch>/pack_tile.h."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable

from generator.model import ARCHS, MAX_TILE, RequestError

WIDTHS = ("x4", "x8", "x16", "x32", "x64")

_SYMBOL = re.compile(
    r"uk_(?P<op>pack|unpack)_tile_(?P<width>x\d+)_(?P<tile0>[0-9]{1,9})x(?P<tile1>[0-9]{1,9})"
    rf"(?P<transposed>_t)?_(?P<arch>{'|'.join(ARCHS)})_(?P<isa>[a-z0-9_]+)$")


# The levels whose vectors pack_tile.h has code for.
LEVELS = {"x86_64": ("sse2", "avx2_fma", "avx512_base"), "arm_64": ("neon",)}


@dataclass(frozen=True)
class CopyTile:
    """One pack or unpack tile function, as its symbol names it."""

    op: str
    width: str
    tile0: int
    tile1: int
    transposed: bool
    arch: str
    isa: str

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            raise RequestError(f"unknown element width '{self.width}'; there are {', '.join(WIDTHS)}")
        for name, value in (("tile0", self.tile0), ("tile1", self.tile1)):
            if not 1 <= value <= MAX_TILE:
                raise RequestError(f"{name} = {value} is out of range, 1 to {MAX_TILE}")
        if self.width == "x4" and self.tile1 % 2:
            raise RequestError(f"tile1 = {self.tile1} splits a byte: x4 has four-bit elements")

    @property
    def symbol(self) -> str:
        return (f"uk_{self.op}_tile_{self.width}_{self.tile0}x{self.tile1}"
                f"{'_t' if self.transposed else ''}_{self.arch}_{self.isa}")

    @staticmethod
    def from_symbol(symbol: str) -> CopyTile:
        match = _SYMBOL.match(symbol)
        if not match:
            raise RequestError(f"'{symbol}' is not the symbol of a pack or unpack tile")
        return CopyTile(match["op"], match["width"], int(match["tile0"]), int(match["tile1"]),
                        bool(match["transposed"]), match["arch"], match["isa"])


@dataclass(frozen=True)
class CopyCode:
    """What a tile is generated with: the one way that there is."""

    numerics: str = "exact"


def copy_level(arch: str, level: str) -> str:
    """The level that serves copies where `level` is asked for: the best with code of its own."""
    from generator import library  # which knows copy tiles
    return next(served.name for served in library.levels_served_by(arch, level)
                if served.name in LEVELS[arch])


_SOURCE = """\
// {what}, generated.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/{arch}/pack_tile.h"

{rows}
"""


def emit_copies(tiles: Iterable[CopyTile]) -> str:
    """One source file for tiles of one level that copy_level names."""
    from generator.library import row_text  # which knows copy tiles
    tiles = list(tiles)
    (arch, isa), = {(tile.arch, tile.isa) for tile in tiles}
    what = tiles[0].symbol if len(tiles) == 1 else f"Pack and unpack tiles of {isa}"
    rows = (row_text(tile, "exact").replace("UK_", "UK_DEFINE_", 1) for tile in tiles)
    return _SOURCE.format(what=what, arch=arch, rows="\n".join(rows))
