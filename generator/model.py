"""What the generator speaks of: types, tiles, ISA levels, primitives."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "s32": 32, "s16": 16, "s8": 8, "u8": 8,
        "s4": 4, "u4": 4}

ARCHS = ("x86_64", "arm_64")

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


class Cost(NamedTuple):
    """Vector instructions: on the two ports that multiply, on any, on those that shuffle, sums of
    floats, conversions of a vector of f32 from or to f16, what no port executes: copies, zeroing; shifts, and
    conversions of f16 in memory. A tuple, as planning a library adds up a million of them."""

    multiply: int = 0
    any: int = 0
    shuffle: int = 0
    add: int = 0
    convert: int = 0
    renamed: int = 0
    shift: int = 0
    widen: int = 0

    @property
    def total(self) -> int:
        return sum(self)

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost._make(map(operator.add, self, other))

    def __mul__(self, times: int) -> Cost:  # type: ignore[override]
        return Cost._make([count * times for count in self])


@dataclass(frozen=True, eq=False)  # as the key of a cache a core is itself
class Core:
    """What cores of one kind do in a cycle: vector instructions, of which two may multiply; of them,
    shuffles; loads of whole vectors; all instructions, and of them those with vector registers."""

    name: str
    vector_ports: int
    shuffle_ports: int = 1
    loads: int = 2
    passes: int = 1  # cycles that a vector, wider than the ports, takes from each of them, but not a broadcast's load
    chooses: bool = True  # between plans, not only says what the chosen one needs
    issued: int = 4
    vectors_issued: int = 4
    # Sums of floats have two ports that are not those that multiply, or of three ports one that does both;
    # shuffles have one of each.
    adds_apart: bool = False
    half_conversion: Cost = field(default_factory=lambda: Cost(multiply=1, shuffle=1))  # in registers
    half_widening: Cost = field(default_factory=lambda: Cost(multiply=1))  # of f16 in memory
    shift: Cost = field(default_factory=lambda: Cost(multiply=1))  # as which ports take it
    steady_clock: bool = True  # whatever it executes
    issues_shuffles_as_one: bool = True  # with the loads of their operands
    # Of what a loop needs for second longest, how much of its own time it adds, by these two needs, as bench_overlap
    # measures it; where nothing is given it is not known.
    measured_contention: dict[frozenset[str], float] = field(default_factory=dict)
    other_contention: float = 0.12

    def contention(self, *needs: str) -> float:
        return self.measured_contention.get(frozenset(needs), self.other_contention)

    def cycles(self, cost: Cost) -> float:
        """That the vector ports need at least."""
        replaced = cost.convert + cost.widen + cost.shift
        if replaced:
            cost += (self.half_conversion * cost.convert + self.half_widening * cost.widen + self.shift * cost.shift)
        executed = cost.total - replaced - cost.renamed
        of_all = max(cost.shuffle / self.shuffle_ports, executed / self.vector_ports)
        if not self.adds_apart:
            return self.passes * max(of_all, (cost.multiply + cost.add) / 2)
        return self.passes * max(of_all, *(max(kind / 2, (kind + cost.shuffle) / 3)
                                           for kind in (cost.multiply, cost.add)))


@dataclass(frozen=True)
class Isa:
    """An ISA level: its registers, and the operations that any lane type needs.

    The operations are C++ expressions. {a}, {b} stand for operands, {p} for a const char*.
    `deinterleave` is keyed by the bits of a lane.
    """

    name: str
    arch: str
    includes: tuple[str, ...]
    registers: int
    vector_bytes: int
    cores: tuple[Core, ...]  # a plan suits all of them that choose
    int_vector: str
    deinterleave: dict[int, tuple[str, str]]  # two vectors -> their even lanes, their odd lanes
    deinterleave_shuffles: int  # instructions that each of the two takes
    broadcast: dict[int, str]  # that many bits at {p}, repeated over the vector
    broadcast_shuffles: int = 0  # instructions on a vector port for a broadcast of its own
    copies_operands: bool = False  # instructions overwrite an operand, so that dots need copies
    unrolls_steps: bool = False  # short K loops take two steps a turn
    folds_loads: bool = False  # GCC folds a load into each of its users, though it saves no copy
    decodes_ahead: bool = False  # steps decode the next one's columns ahead of their dots, if there are registers
    # The lower parts of {a} and {b}, of that many bits, behind each other; of {x} the second one.
    join: dict[int, str] = field(default_factory=dict)
    second: dict[int, str] = field(default_factory=dict)

    @property
    def choosing_cores(self) -> tuple[Core, ...]:
        return tuple(core for core in self.cores if core.chooses)

    def lanes(self, lane_bits: int) -> int:
        return self.vector_bytes * 8 // lane_bits


# The sums that bench_overlap rounds in turns. No core waits for one of the last ones.
CHAINS = (1, 2, 4, 8, 12)

# Sums of so many products that are scaled stay within 32 bits: a dot of four u8 by s8 is 4 * 255 * 128 at most.
SCALED_STEPS = 8 << 10

# Steps of a conversion take {x}, the value so far; the first one takes the units as loaded.
Steps = tuple[str, ...]


@dataclass(frozen=True, eq=False)  # as the key of a cache a primitive is itself
class Primitive:
    """How one ISA multiplies and accumulates `k` elements a lane for one matmul type.

    A unit is the k elements of one row or column. A column's is what one lane of an RHS load holds;
    in registers it becomes one lane in each of `parts` vectors, elements k_order[part] of the unit. A
    row's becomes as many adjacent lanes, alike. `dot` multiplies parts with each other: part by part
    in order if it takes {a} and {b}, all at once if it takes {a0}, {b0}, {a1}, {b1}.

    {a} is one row in every lane, unless rows are loaded as they lie, a vector of units at a time:
    - with `lane_dot`, whose {a} holds several rows and {lane} tells which;
    - with acc_rows = 2, where a dot multiplies two rows by two columns, and an accumulator is a row's
      two columns after the other's.
    A vector of narrower operands than accumulators feeds two of these: `high_...` are the dots of its
    upper half.
    """

    isa: Isa
    type: MatmulType
    k_order: tuple[tuple[int, ...], ...]
    lane_bits: int
    acc_vector: str
    operand_vector: str  # of {a} and {b}; {operand} makes one of an integer vector {x}
    operand: str
    zero: str
    dot: str
    dot_cost: Cost  # with round_dot
    # Cycles from one accumulation into a register to the next, by core, but for those of dot_cycles.
    latency: dict[str, int] | int
    load_out: str  # {load}: loads the out elements of the lanes
    store_out: str  # {acc}: what the store writes
    numerics: str
    lhs_unit_bytes: int
    rhs_unit_bytes: int
    decode: tuple[Steps, ...]  # of a column's unit, per part
    decode_cost: Cost = Cost()  # of all parts
    stage_lhs: Steps | None = None  # of the rows' units; None: used as they lie in memory
    stage_lhs_cost: Cost = Cost()
    # {to}, {x}: by part, a store that stages it, of rows' units as loaded, over one staged before, or zeros.
    store_parts: tuple[str, ...] = ()
    # The rows from which it was measured to be faster to stage the next steps beside these ones' dots; 0: it was not.
    least_rows_beside_dots: int = 0
    # Likewise, for ops to have them staged once for several tiles.
    least_rows_staged_once: int = 0
    # {a}, {b}: of a dot that adds a product to {acc}, taken in pairs: see dots_in_pairs in
    # arch/x86_64/mmt4d_tile.h.
    product: str | None = None
    # {acc}: the rest of a dot. It follows all rows' dots: a core overlaps what is close together.
    round_dot: str | None = None
    broadcast: str | None = None  # {p}: of 32 bits, instead of the ISA's
    rhs_offset: int = 0  # so much are decoded columns above their elements
    row_sums: str | None = None  # {sums}, {x}: adds rhs_offset times what 32-bit lanes of rows hold
    row_sums_cost: Cost = Cost()
    # {sums}, {rows}, {p}: likewise of that many rows of one unit each, that of row i to lane i.
    block_row_sums: str | None = None
    # {rows}, {panel}, {steps}: likewise of a panel of them, of no more rows than lanes.
    panel_row_sums: str | None = None
    subtract: str | None = None  # {a}, {b}: accumulators, with row_sums
    add: str | None = None  # {a}, {b}: accumulators, where the order of the sum is free
    acc_to_int: str = "{x}"
    int_to_acc: str = "{x}"
    # Whether compilers must be kept from rearranging or renaming sums, at a cost of registers: in steps
    # of several dots, or always. A barrier where none is needed costs moves.
    keep_order: Literal["", "several", "always"] = ""
    embeds_broadcast: bool = False  # compilers make the broadcast of a row an operand of the dot
    # {acc}, {b}, {p}: a dot that broadcasts its row of one lane itself, where compilers do not.
    row_dot: str | None = None
    registers: int = 0  # that a dot needs beside its operands: temporaries and constants
    decode_registers: int = 0  # likewise the decoding of columns
    decode_constants: int = 0  # of `registers`, those that decoding alone takes
    decodes_side_by_side: bool = False  # compilers decode all columns at a time: a register more for each
    # Of columns that several rows share, if that differs: by no constant that takes a register, so that where these are
    # scarce columns may be loaded anew for each part.
    decode_for_rows: tuple[Steps, ...] = ()
    # Of an RHS that is decoded once for several tiles, where each takes rows as they lie for it: its parts are in the
    # order of memory.
    decode_in_order: tuple[Steps, ...] = ()
    # By fewer instructions, where each part has sums of its own, for up to SCALED_STEPS steps: columns with rhs_offset,
    # shifted left by so many bits. {sum}, {bits}: scales a sum back.
    scaled_decode: tuple[Steps, ...] = ()
    scaled_decode_cost: Cost = Cost()
    scaled_bits: tuple[int, ...] = ()
    scale_back: str = ""
    # By core, where measured: cycles of a dot to each of CHAINS sums in turns, with nothing beside them.
    dot_cycles: dict[str, tuple[float, ...]] = field(default_factory=dict)
    # By core, cycles of widening a vector of columns or rows, where measured to be more than there are ports for.
    decode_cycles: dict[str, float] = field(default_factory=dict)
    # What columns that are staged decoded must leave of the cycles to be worth it: results pass through memory
    # more often, and each block starts anew, which the bound does not have.
    staging_worth: float = 0.88
    lane_dot: str | None = None
    high_dot: str | None = None
    high_lane_dot: str | None = None
    acc_rows: int = 1
    operand_bits: int = 0  # of a lane; 0: as of the accumulators
    decode_rows: tuple[Steps, ...] = ()  # of a vector of rows' units, per part: {x}, or {x0} and {x1}
    decode_rows_cost: Cost = Cost()  # of all parts

    def chain_cycles(self, core: Core, sums: int) -> float:
        """Of a dot to each of so many sums: of one, or as measured, and between measurements on the line."""
        if core.name not in self.dot_cycles:
            return self.latency if isinstance(self.latency, int) else self.latency[core.name]
        points = [(n, n * cycles) for n, cycles in zip(CHAINS, self.dot_cycles[core.name], strict=True)]
        for (n, cycles), (more, more_cycles) in zip(points, points[1:]):
            if sums <= more:
                return cycles + (more_cycles - cycles) * (sums - n) / (more - n)
        return sums * self.dot_cycles[core.name][-1]

    @cached_property
    def k(self) -> int:
        return sum(map(len, self.k_order))

    @cached_property
    def parts(self) -> int:
        return len(self.k_order)

    @cached_property
    def rounds_in_software(self) -> bool:
        """To 16 bits at every step: a long chain of instructions, of which few are the dot's."""
        return self.numerics == "round_each_step" and self.dot_cost.total > 1

    @cached_property
    def only_dots(self) -> bool:
        """A K loop of nothing but loads and dots, of one instruction each."""
        return self.decode == ((),) and self.stage_lhs is None and self.dot_cost == Cost(1)

    @cached_property
    def part_by_part(self) -> bool:
        return "{a}" in self.dot

    @cached_property
    def dots_of_unit(self) -> int:
        """For a row and a vector of columns."""
        return self.parts if self.part_by_part else 1

    @cached_property
    def lanes(self) -> int:
        return self.isa.lanes(self.lane_bits)

    @cached_property
    def acc_columns(self) -> int:
        """That an accumulator holds of each of its rows."""
        return self.lanes // self.acc_rows

    @cached_property
    def operand_lanes(self) -> int:
        return self.isa.lanes(self.operand_bits or self.lane_bits)

    @cached_property
    def vectors_of_rows(self) -> bool:
        """Whether rows are loaded as they lie, and decoded in the K loop."""
        return bool(self.decode_rows)

    @cached_property
    def row_loads(self) -> int:
        """Loads of a vector of rows' units."""
        return -(-self.operand_lanes * self.lhs_unit_bytes // self.isa.vector_bytes)

    @cached_property
    def sums_rows(self) -> bool:
        return self.row_sums is not None

    @cached_property
    def sums_rows_in_block(self) -> bool:
        """In the K loop of the tile's first block."""
        return self.block_row_sums is not None

    @cached_property
    def sums_rows_before(self) -> bool:
        """In a pass over the LHS before the K loops."""
        return self.sums_rows and not self.sums_rows_in_block

    @cached_property
    def with_sums_before(self) -> Primitive:
        """The same with one register less, for sums of rows are not taken in the K loops."""
        return replace(self, block_row_sums=None, registers=self.registers - 1)

    @cached_property
    def on_decoded_columns(self) -> Primitive:
        """The same without what it takes to decode, and where sums of rows are known."""
        p = self.with_sums_before if self.sums_rows_in_block else self
        p = replace(p, registers=p.registers - p.decode_constants)
        if not p.decode_in_order:
            return p
        k = p.k // p.parts
        return replace(p, decode=p.decode_in_order, k_order=tuple(tuple(range(i, i + k)) for i in range(0, p.k, k)),
                       stage_lhs=None)

    @cached_property
    def f32_out(self) -> Primitive:
        """The same with the accumulators themselves as OUT."""
        return replace(self, load_out=self.int_to_acc.format(x="{load}"),
                       store_out=self.acc_to_int.format(x="{acc}"))


_SYMBOL = re.compile(
    r"uk_mmt4d_tile_(?P<types>[a-z0-9]+?)_(?P<m0>[0-9]{1,9})x(?P<n0>[0-9]{1,9})x(?P<k0>[0-9]{1,9})_"
    rf"(?P<arch>{'|'.join(ARCHS)})_(?P<isa>[a-z0-9_]+?)(?P<f32acc>_f32acc)?$")


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
