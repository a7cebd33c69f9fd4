"""Names of functions that a compiled module calls, and which of them the generator can make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from generator.copy_tile import CopyTile
from generator.library import AnyTile
from generator.model import TYPES, RequestError, Tile
from generator.requests import Request

_MMT4D, _BATCH_MMT4D = "linalg_mmt4d", "linalg_batch_mmt4d"
_COPIES = {"uk_memref_pack": "pack", "uk_memref_unpack": "unpack"}

_MEMREF_CALL = re.compile(
    rf"(?P<by_pointer>_mlir_ciface_)?(?P<function>{_MMT4D}|{_BATCH_MMT4D}|uk_memref_[a-z0-9]+)"
    r"(?:_(?P<rest>.*))?$")
_TILE = re.compile(r"uk_(mmt4d|pack|unpack)_tile_")
_VIEW = re.compile(r"view(?P<sizes>(?:(?:s|[0-9]+)x)*)(?P<element>[A-Za-z]\w*?)(?:as(?P<space>[0-9]+))?$")

# As linalg.mmt4d extends them: with their sign.
_MATMUL_ELEMENTS = {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "i32": "s32", "i16": "s16",
                    "i8": "s8", "i4": "s4"}
_COPIED_ELEMENTS = {"f64": "x64", "f32": "x32", "f16": "x16", "bf16": "x16", "i64": "x64", "i32": "x32",
                    "i16": "x16", "i8": "x8", "i4": "x4"}

# LLVM's address spaces from here on are relative to a segment register, or have shorter pointers.
_SPECIAL_SPACE = 256

Size = int | None  # None: known to the descriptor alone


def read_number(text: str) -> int:
    """A size or a position, as MLIR's index holds it."""
    if not (text.isascii() and text.isdigit()):
        raise RequestError(f"'{text}' is not a number")
    if len(text) > 19 or int(text) >= 2**63:  # Python itself reads no more than 4300 digits
        raise RequestError(f"{text[:20]}{'...' * (len(text) > 20)} is 2^63 or more, which no index holds")
    return int(text)


@dataclass(frozen=True)
class View:
    """A memref as MLIR mangles its type; its offset and strides are always dynamic."""

    sizes: tuple[Size, ...]
    element: str
    space: int = 0

    @staticmethod
    @cache  # as a model's calls share most of theirs
    def parse(text: str) -> View:
        match = _VIEW.match(text)
        if not match:
            raise RequestError(f"'{text}' is not a memref, such as view4x8xf32 or viewsxsxf32as1")
        sizes = tuple(None if s == "s" else read_number(s) for s in match["sizes"].split("x")[:-1])
        return View(sizes, match["element"], read_number(match["space"] or "0"))

    @property
    def text(self) -> str:
        sizes = "".join("sx" if size is None else f"{size}x" for size in self.sizes)
        return f"view{sizes}{self.element}" + (f"as{self.space}" if self.space else "")

    def check_rank(self, name: str, rank: int) -> None:
        if len(self.sizes) != rank:
            raise RequestError(f"{name} has {len(self.sizes)} dimensions, not {rank}")

    def check_memory(self, name: str) -> None:
        if self.element == "i4":
            raise RequestError(f"{name} has i4 elements, each of which MLIR keeps in a byte of its own; "
                               "tiles take two from a byte")
        if self.space >= _SPECIAL_SPACE:
            raise RequestError(f"{name} is in memory space {self.space}, where pointers are no plain ones")


def _same(name: str, *sizes: Size) -> Size:
    """A dimension that several operands have."""
    known = {size for size in sizes if size is not None}
    if len(known) > 1:
        raise RequestError(f"{name} is {' in one operand and '.join(map(str, sorted(known)))} in another")
    return known.pop() if known else None


def _static(**sizes: Size) -> tuple[int, ...]:
    for name, size in sizes.items():
        if size is None:
            raise RequestError(f"{name} is dynamic in all operands: a tile has a fixed shape")
    return tuple(sizes.values())


@dataclass(frozen=True)
class Mmt4dCall:
    """linalg.mmt4d on memrefs, or linalg.batch_mmt4d on those with one dimension more."""

    symbol: str
    by_pointer: bool  # of descriptors; otherwise each of their fields is an argument
    type: str
    tile: tuple[int, ...]
    extents: tuple[Size, Size, Size]  # M1, N1, K1
    is_batch: bool = False
    batch: Size = None

    def request(self, level: str) -> Request:
        return Request("mmt4d", self.type, self.tile, level)


@dataclass(frozen=True)
class CopyCall:
    """This library's pack and unpack on memrefs."""

    symbol: str
    by_pointer: bool
    op: str
    width: str
    tile: tuple[int, ...]  # as stored
    outer: tuple[Size, Size]  # as stored
    matrix: tuple[Size, Size]
    transposes_outer: bool
    transposes_inner: bool

    def request(self, level: str) -> Request:
        return Request(self.op, self.width, self.tile, level, "t" if self.transposes_inner else "")


@dataclass(frozen=True)
class TileCall:
    """A tile function itself."""

    symbol: str
    tile: AnyTile

    def request(self, level: str) -> Request:
        """Of the level in the symbol."""
        tile = self.tile
        if isinstance(tile, Tile):
            return Request("mmt4d", tile.type.name, (tile.m0, tile.n0, tile.k0), tile.isa,
                           "f32acc" if tile.f32acc else "")
        return Request(tile.op, tile.width, (tile.tile0, tile.tile1), tile.isa,
                       "t" if tile.transposed else "")


Call = Mmt4dCall | CopyCall | TileCall


def matmul_type(lhs: View, rhs: View, out: View) -> str:
    name = "".join(_MATMUL_ELEMENTS.get(view.element, view.element) for view in (lhs, rhs, out))
    if name not in TYPES:
        raise RequestError(f"no tile multiplies {lhs.element} by {rhs.element} into {out.element}")
    return name


def mmt4d_tile(lhs: View, rhs: View, out: View) -> tuple[int, ...]:
    """M0, N0, K0."""
    (*_, m0, k0), (*_, n0, k0_of_rhs), (*_, m0_of_out, n0_of_out) = lhs.sizes, rhs.sizes, out.sizes
    return _static(M0=_same("M0", m0, m0_of_out), N0=_same("N0", n0, n0_of_out),
                   K0=_same("K0", k0, k0_of_rhs))


def copy_width(element: str, other: str) -> str:
    if element != other or element not in _COPIED_ELEMENTS:
        raise RequestError(f"no tile copies {element} to {other}")
    return _COPIED_ELEMENTS[element]


def _mmt4d_call(symbol: str, by_pointer: bool, is_batch: bool, rest: str) -> Mmt4dCall:
    views = [View.parse(text) for text in rest.split("_")]
    if len(views) != 3:
        raise RequestError(f"it has {len(views)} memrefs, not LHS, RHS and OUT")
    for name, view in zip(("LHS", "RHS", "OUT"), views):
        view.check_rank(name, 5 if is_batch else 4)
        view.check_memory(name)
    (*_, m1, k1, _, _), (*_, n1, k1_of_rhs, _, _), (*_, m1_of_out, n1_of_out, _, _) = (
        view.sizes for view in views)
    batch = _same("the batch", *(view.sizes[0] for view in views)) if is_batch else None
    extents = (_same("M1", m1, m1_of_out), _same("N1", n1, n1_of_out), _same("K1", k1, k1_of_rhs))
    return Mmt4dCall(symbol, by_pointer, matmul_type(*views), mmt4d_tile(*views), extents, is_batch,
                     batch)


def _copy_call(symbol: str, by_pointer: bool, op: str, rest: str) -> CopyCall:
    match = re.match(r"(?P<outer>outer10_)?(?P<inner>inner10_)?(?P<views>.*)", rest)
    views = [View.parse(text) for text in match["views"].split("_")]
    if len(views) != 2:
        raise RequestError(f"it has {len(views)} memrefs, not a source and a destination")
    matrix, tiles = views if op == "pack" else views[::-1]
    matrix.check_rank("the matrix", 2)
    tiles.check_rank("the tiled memref", 4)
    for view in views:
        view.check_memory("it")
    outer, tile = tiles.sizes[:2], _static(tile0=tiles.sizes[2], tile1=tiles.sizes[3])
    width = copy_width(views[0].element, views[1].element)
    call = CopyCall(symbol, by_pointer, op, width, tile, outer, matrix.sizes,
                    bool(match["outer"]), bool(match["inner"]))
    for size, step, count in zip(matrix.sizes, reversed(tile) if call.transposes_inner else tile,
                                 reversed(outer) if call.transposes_outer else outer):
        if size is not None and count is not None and count * step < size:
            raise RequestError(f"{count} tiles of {step} do not cover {size} elements")
    return call


def find_call(symbol: str, arch: str) -> Call | None:
    """None: not a name of MLIR's mmt4d or of this library."""
    if _TILE.match(symbol):
        tile = (Tile if symbol.startswith("uk_mmt4d") else CopyTile).from_symbol(symbol)
        if tile.arch != arch:
            raise RequestError(f"it is a tile of {tile.arch}, and the archive is for {arch}")
        return TileCall(symbol, tile)
    match = _MEMREF_CALL.match(symbol)
    if not match:
        return None
    by_pointer, rest = bool(match["by_pointer"]), match["rest"] or ""
    if match["function"] in (_MMT4D, _BATCH_MMT4D):
        return _mmt4d_call(symbol, by_pointer, match["function"] == _BATCH_MMT4D, rest)
    if match["function"] in _COPIES:
        return _copy_call(symbol, by_pointer, _COPIES[match["function"]], rest)
    raise RequestError(f"there is no '{match['function']}', but {' and '.join(_COPIES)}")
