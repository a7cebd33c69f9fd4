"""What the library is built with: the hand-written tiles, the grid below, and what a build asks for.

A shape of the grid is wanted at every CPU level of its architecture, so that operands packed on one machine can be
multiplied on any other of it. A level that has no instructions of its own for a type, or whose vectors are
wider than N0, leaves the shape to the levels below it; but not to one that rounds in software what it
rounds by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Iterable, Iterator

from generator import library
from generator.copy_tile import CopyTile, copy_level
from generator.library import AnyTile
from generator.model import BITS, TYPES, Primitive, RequestError, Tile
from generator.select import choose_primitive


@dataclass(frozen=True)
class Wanted:
    """Every combination of a type, an M0xN0 and a K0. "f16f16f16 f32acc" is the variant that rounds
    once."""

    types: tuple[str, ...]
    m0xn0: tuple[str, ...]
    k0: tuple[int, ...]


def _every(m0s: Iterable[int], n0s: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{m0}x{n0}" for m0, n0 in product(m0s, n0s))


_NARROW_TO_SQUARE = (1, 2, 4, 8, 16)
# x86_64. Beside the powers of two: the shapes that fill the 16 registers of AVX2 and the 32 of AVX-512, those
# that leave few M above 16 with much padding (128 = 10 * 13 - 2, 17 = 2 * 9 - 1), and one row of enough
# vectors to hide the latency of a multiplication.
_LITTLE_PADDING = (9, 13)
_SHAPES = (*_every(_NARROW_TO_SQUARE, (8, 16, 32)), *_every(_LITTLE_PADDING, (32,)), "6x16", "14x32", "1x64")
_AMX_SHAPES = ("32x32",)  # two by two of its registers
_SHAPES_F64 = (*_every(_NARROW_TO_SQUARE, (4, 8, 16)), *_every(_LITTLE_PADDING, (16,)), "6x8", "14x16", "1x32")
_SHAPES_ROUNDING_EACH_STEP = (*_every(_NARROW_TO_SQUARE, (8, 16)), "1x64")

_X86_64 = (
    Wanted(("f32f32f32", "f16f16f32", "f16f16f16 f32acc"), _SHAPES, (1,)),
    Wanted(("f64f64f64",), _SHAPES_F64, (1,)),
    Wanted(("bf16bf16f32", "bf16bf16bf16 f32acc"), _SHAPES, (1, 2)),
    Wanted(("f16f16f16", "bf16bf16bf16"), _SHAPES_ROUNDING_EACH_STEP, (1,)),
    Wanted(("f16f16f16",), _every(_NARROW_TO_SQUARE, (32,)), (1,)),
    Wanted(("s8s8s32", "u8s8s32"), _SHAPES, (2, 4)),
    Wanted(("s8s8s32",), ("12x32",), (4,)),
    Wanted(("s8s8s32", "u8s8s32"), _AMX_SHAPES, (4,)),
    Wanted(("bf16bf16f32",), _AMX_SHAPES, (2,)),
    Wanted(("s16s16s32", "s16s8s32"), _SHAPES, (2,)),
    Wanted(("s16u4s32", "s8s4s32"), _SHAPES, (8,)),
)

# arm_64. Beside the powers of two: the shapes that fill the 32 registers, and one row of enough
# vectors. K0 is what an instruction of some level takes, and what one of the baseline does.
_NARROW_TO_8 = (1, 2, 4, 8)
_ARM_SHAPES = (*_every(_NARROW_TO_8, (8, 16)), "1x32")
_ARM_64 = (
    Wanted(("f32f32f32",), (*_every(_NARROW_TO_8, (8, 12, 16)), "6x16", "1x32"), (1,)),
    Wanted(("f64f64f64",), (*_every(_NARROW_TO_8, (4, 8)), "1x16"), (1,)),
    Wanted(("f16f16f32", "f16f16f16 f32acc"), _ARM_SHAPES, (1,)),
    Wanted(("bf16bf16f32", "bf16bf16bf16 f32acc"), _ARM_SHAPES, (1, 4)),
    Wanted(("bf16bf16f32", "bf16bf16bf16 f32acc"), ("8x12",), (4,)),
    Wanted(("f16f16f16",), (*_ARM_SHAPES, "8x24", "1x64"), (1,)),
    Wanted(("bf16bf16bf16",), _every(_NARROW_TO_8, (8, 16)), (1,)),
    Wanted(("s8s8s32", "u8s8s32"), _ARM_SHAPES, (1, 4, 8)),
    Wanted(("s8s8s32", "u8s8s32"), ("8x12", "1x64"), (4, 8)),
    Wanted(("s8s4s32",), _ARM_SHAPES, (2, 8, 16)),
    Wanted(("s16s16s32", "s16s8s32"), _ARM_SHAPES, (1,)),
    Wanted(("s16u4s32",), _ARM_SHAPES, (2,)),
)

_GRIDS = {"x86_64": _X86_64, "arm_64": _ARM_64}


# ---------------------------------------------------------------- rows

@dataclass(frozen=True)
class Row:
    """A row of the library's table."""

    tile: AnyTile
    numerics: str
    origin: str  # "hand" or "generated"


def grid_shapes(arch: str) -> Iterator[tuple[str, str, int, bool]]:
    for wanted in _GRIDS[arch]:
        for name, shape, k0 in product(wanted.types, wanted.m0xn0, wanted.k0):
            type_name, _, option = name.partition(" ")
            yield type_name, shape, k0, option == "f32acc"


def _rounds_by_itself(primitive: Primitive) -> bool:
    return primitive.numerics == "round_each_step" and not primitive.rounds_in_software


def _grid_tiles(arch: str) -> Iterator[Tile]:
    for type_name, shape, k0, f32acc in grid_shapes(arch):
        m0, n0 = map(int, shape.split("x"))
        for level in library.levels(arch):
            tile = Tile(TYPES[type_name], m0, n0, k0, arch, level, f32acc)
            try:
                primitive = choose_primitive(tile)
            except RequestError:
                continue
            if n0 >= primitive.lanes or _rounds_by_itself(primitive):
                yield tile


def copies_for(tile: Tile) -> list[CopyTile]:
    """The pack and unpack tiles that go with an mmt4d tile: its operands from rows along K and from
    columns, its result in rows."""
    level = copy_level(tile.arch, tile.isa)

    def copy(op: str, element: str, tile0: int, tile1: int, transposed: bool) -> CopyTile:
        bits = BITS[element]
        if bits < 8 and not transposed:  # two elements move as a byte
            bits, tile1 = 8, tile1 * bits // 8
        return CopyTile(op, f"x{bits}", tile0, tile1, transposed, tile.arch, level)

    operands = [copy("pack", element, outer, tile.k0, transposed)
                for element, outer in ((tile.type.lhs, tile.m0), (tile.type.rhs, tile.n0))
                for transposed in (False, True)]
    return operands + [copy(op, tile.type.out, tile.m0, tile.n0, False) for op in ("pack", "unpack")]


def generated_rows(arch: str, extra: Iterable[AnyTile] = ()) -> list[Row]:
    """What is generated for the library: the grid and `extra`, each with its pack and unpack tiles,
    less what is there by hand."""
    hand = library.hand_rows(arch)
    wanted = [*_grid_tiles(arch), *extra]
    copies = {copy for tile in wanted if isinstance(tile, Tile) for copy in copies_for(tile)
              if not any(replace(copy, isa=level.name) in hand
                         for level in library.levels_served_by(arch, copy.isa))}
    mmt4d = {tile for tile in wanted if isinstance(tile, Tile)}
    copies |= {tile for tile in wanted if isinstance(tile, CopyTile)}
    return ([Row(tile, choose_primitive(tile).numerics, "generated")
             for tile in sorted(mmt4d - hand.keys(), key=_order)]
            + [Row(tile, "exact", "generated") for tile in sorted(copies - hand.keys(), key=_order)])


def _order(tile: AnyTile) -> tuple:
    if isinstance(tile, Tile):
        return tile.isa, tile.type.name, tile.f32acc, tile.k0, tile.m0, tile.n0
    return tile.isa, tile.op, int(tile.width[1:]), tile.transposed, tile.tile0, tile.tile1


@cache
def table(arch: str, extra: tuple[AnyTile, ...] = ()) -> tuple[Row, ...]:
    """Every row of the library as it is built with these tiles beside the grid."""
    return (*(Row(row.tile, row.numerics, "hand") for row in library.hand_rows(arch).values()),
            *generated_rows(arch, extra))
