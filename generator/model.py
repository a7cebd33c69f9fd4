"""What the generator speaks of: types, tiles, ISA levels, primitives."""

from __future__ import annotations

import re
from dataclasses import dataclass

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "s32": 32, "s16": 16, "s8": 8, "u8": 8,
        "s4": 4, "u4": 4}

MAX_TILE = 64  # M0 and N0
MAX_K0 = 16


class RequestError(Exception):
    """A request that no tile can answer; its text is one line for the user."""


@dataclass(frozen=True)
class MatmulType:
    lhs: str
    rhs: str
    out: str

    @property
    def name(self) -> str:
        return self.lhs + self.rhs + self.out


TYPES = {t.name: t for t in (
    MatmulType("f32", "f32", "f32"),
    MatmulType("s8", "s8", "s32"),
    MatmulType("f16", "f16", "f32"),
    MatmulType("f16", "f16", "f16"),
    MatmulType("bf16", "bf16", "f32"),
    MatmulType("bf16", "bf16", "bf16"),
    MatmulType("s16", "s16", "s32"),
    MatmulType("s16", "u4", "s32"),
    MatmulType("s16", "s8", "s32"),
    MatmulType("s8", "s4", "s32"),
    MatmulType("u8", "s8", "s32"),
    MatmulType("f64", "f64", "f64"),
)}


@dataclass(frozen=True)
class Isa:
    """An ISA level: its registers, and the operations that any lane type needs.

    The operations are C++ expressions. {a}, {b} stand for operands, {p} for a const char*.
    Lanes have 32 or 64 bits; the dictionaries are keyed by that.
    """

    name: str
    arch: str
    includes: tuple[str, ...]
    registers: int
    vector_bytes: int
    int_vector: str
    deinterleave: dict[int, tuple[str, str]]  # two vectors -> their even lanes, their odd lanes
    broadcast: dict[int, str]  # one lane at {p}, in every lane

    def lanes(self, lane_bits: int) -> int:
        return self.vector_bytes * 8 // lane_bits


@dataclass(frozen=True)
class Primitive:
    """How one ISA multiplies and accumulates `k` elements a lane for one matmul type.

    A unit is the k elements of one row or column that one dot consumes: `unit_bytes` in memory, one
    lane once widened. Expressions take {src} (a vector of units as loaded), {a}, {b}, {acc}.
    """

    isa: Isa
    type: MatmulType
    k: int
    lane_bits: int
    acc_vector: str
    operand_vector: str  # of {a} and {b}; {operand} makes one of an integer vector {x}
    operand: str
    zero: str
    dot: str
    load_out: str  # {load}: loads the out elements of the lanes
    store_out: str  # {acc}: what the store writes
    numerics: str
    lhs_unit_bytes: int
    rhs_unit_bytes: int
    widen_lhs: tuple[str, ...] | None = None  # None: used as it lies in memory
    widen_rhs: tuple[str, ...] | None = None
    column_sums: str | None = None  # {sums}, {b}: what each column adds to the dots beside its result
    subtract: str | None = None  # {acc}, {sums}
    temporaries: int = 0  # registers that dot and widen_rhs need beside their operands
    multiplies: int = 1  # instructions of a dot that take a multiplier's slot

    @property
    def lanes(self) -> int:
        return self.isa.lanes(self.lane_bits)


_SYMBOL = re.compile(
    r"uk_mmt4d_tile_(?P<types>[a-z0-9]+?)_(?P<m0>\d+)x(?P<n0>\d+)x(?P<k0>\d+)_(?P<arch>x86_64|arm_64)_"
    r"(?P<isa>[a-z0-9_]+?)(?P<f32acc>_f32acc)?$")


@dataclass(frozen=True)
class Tile:
    """One mmt4d tile function, as its symbol names it."""

    type: MatmulType
    m0: int
    n0: int
    k0: int
    arch: str
    isa: str
    f32acc: bool = False

    def __post_init__(self) -> None:
        for name, value, most in (("M0", self.m0, MAX_TILE), ("N0", self.n0, MAX_TILE),
                                  ("K0", self.k0, MAX_K0)):
            if not 1 <= value <= most:
                raise RequestError(f"{name} = {value} is out of range, 1 to {most}")
        if self.k0 % 2 and 4 in (BITS[self.type.lhs], BITS[self.type.rhs]):
            raise RequestError(f"K0 = {self.k0} splits a byte: {self.type.name} has four-bit elements")
        if self.f32acc and BITS[self.type.out] != 16:
            raise RequestError(f"f32acc means nothing for {self.type.name}, whose output is wider")

    @property
    def symbol(self) -> str:
        return (f"uk_mmt4d_tile_{self.type.name}_{self.m0}x{self.n0}x{self.k0}_{self.arch}_{self.isa}"
                + ("_f32acc" if self.f32acc else ""))

    @staticmethod
    def from_symbol(symbol: str) -> Tile:
        match = _SYMBOL.match(symbol)
        if not match or match["types"] not in TYPES:
            raise RequestError(f"'{symbol}' is not the symbol of an mmt4d tile")
        return Tile(TYPES[match["types"]], int(match["m0"]), int(match["n0"]), int(match["k0"]),
                    match["arch"], match["isa"], bool(match["f32acc"]))
