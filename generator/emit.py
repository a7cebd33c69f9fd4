"""Turns plans into C++ source."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable

import jinja2

from generator.isa_x86 import expand
from generator.model import BITS, Primitive, Steps
from generator.plan import Block, Plan, one_by_one

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    keep_trailing_newline=True)


@dataclass(frozen=True)
class Statement:
    """const auto name = value;"""

    name: str
    value: str


def _applied(steps: Steps, name: str, x: str) -> list[Statement]:
    """Statements that leave the result of the steps in `name`. A step that mentions its input twice
    gets it from a statement of its own."""
    statements: list[Statement] = []
    for number, step in enumerate(steps):
        if step.count("{x}") > 1 and not x.isidentifier():
            statements.append(Statement(f"{name}_{number}", x))
            x = f"{name}_{number}"
        x = step.format(x=x)
    return statements + [Statement(name, x)]


def _load(units: int, unit_bytes: int, most_units: int, pointer: str) -> str:
    """A load of `units` units into the narrowest register that holds `most_units` of them."""
    register = max(128, most_units * unit_bytes * 8)
    return f"load_{register}<{units * unit_bytes}>({pointer})"


def _offset(pointer: str, count: int) -> str:
    return f"{pointer} + {count}" if count else pointer


@dataclass(frozen=True)
class BlockShape:
    """What the blocks of equal rows and columns share: one function."""

    plan: Plan
    rows: int
    columns: int

    @property
    def p(self) -> Primitive:
        return self.plan.primitive

    @property
    def name(self) -> str:
        return f"block_{self.rows}x{self.columns}"

    @property
    def vectors(self) -> int:
        return self.plan.vectors(self.columns)

    # ------------------------------------------------------------ OUT

    @property
    def out_vectors(self) -> int:
        return -(-self.columns // self.p.lanes)

    def _out(self, row: int, vector: int) -> tuple[str, int, int]:
        p = self.p
        out_bytes = _out_bytes(self.plan)
        at = (row * self.plan.tile.n0 + vector * p.lanes) * out_bytes
        columns = min(p.lanes, self.columns - vector * p.lanes)
        return _offset("out", at), columns * out_bytes, max(128, p.lanes * out_bytes * 8)

    def load_out(self, row: int, vector: int) -> str:
        pointer, size, register = self._out(row, vector)
        return _as_out(self.plan).load_out.format(load=f"load_{register}<{size}>({pointer})")

    def store_out(self, row: int, vector: int) -> str:
        pointer, size, register = self._out(row, vector)
        acc = _as_out(self.plan).store_out.format(acc=self.result(row, vector))
        return f"store_{register}<{size}>({pointer}, {acc});"

    def result(self, row: int, vector: int) -> str:
        return f"{'sum' if self.plan.spread > 1 else 'acc'}_{row}_{vector}"

    def added_up(self, row: int, vector: int) -> str:
        """The accumulators of one vector of OUT, whose lanes are partial sums, added up."""
        p, spread = self.p, self.plan.spread
        zero = _int_zero(p)
        sequence = [f"acc_{row}_{v}" if v < self.vectors else None
                    for v in range(vector * spread, (vector + 1) * spread)]
        while len(sequence) > 1:
            pairs = list(zip(sequence[::2], sequence[1::2]))
            sequence = [self._add_pair(p, a, b, zero) if a else None for a, b in pairs]
        assert sequence[0] is not None
        return sequence[0]

    @staticmethod
    def _add_pair(p: Primitive, a: str, b: str | None, zero: str) -> str:
        ints = {"a": p.acc_to_int.format(x=a), "b": p.acc_to_int.format(x=b) if b else zero}
        return f"add_neighbours({ints['a']}, {ints['b']})"

    # ------------------------------------------------------------ K loop

    @property
    def one_by_one(self) -> bool:
        return one_by_one(self.p, self.rows, self.vectors)

    @property
    def prefetch_bytes(self) -> int:
        return self.columns * self.plan.units * self.p.rhs_unit_bytes

    def units_statement(self, vector: int) -> list[Statement]:
        """A vector of columns as it lies in memory or in the stage."""
        p = self.p
        if self.plan.stages_rhs:
            size = p.isa.vector_bytes
            load = f"load_{size * 8}<{size}>({_offset('columns', vector * size)})"
        else:
            units = self.plan.spread * min(self.plan.vector_columns,
                                           self.columns - vector * self.plan.vector_columns)
            load = _load(units, p.rhs_unit_bytes, p.lanes,
                         _offset("columns", vector * p.lanes * p.rhs_unit_bytes))
        return [Statement(f"units_{vector}", load)]

    def _suffix(self, part: int) -> str:
        return f"_{part}" if self.p.parts > 1 else ""

    def columns_statements(self, vector: int, part: int) -> list[Statement]:
        p = self.p
        steps = () if self.plan.stages_decoded else p.decode[part]
        name = f"columns_{vector}{self._suffix(part)}"
        return _applied((*steps, p.operand), name, f"units_{vector}")

    def row_statement(self, row: int, part: int) -> Statement:
        p, plan = self.p, self.plan
        at = (row * plan.units * p.parts + part) * plan.lane_bytes
        lanes = p.isa.broadcast[p.lane_bits * plan.spread].format(p=_offset("rows", at))
        return Statement(f"row_{row}{self._suffix(part)}", p.operand.format(x=lanes))

    def dot(self, row: int, vector: int, part: int) -> str:
        operands = {"acc": f"acc_{row}_{vector}", "a": f"row_{row}{self._suffix(part)}",
                    "b": f"columns_{vector}{self._suffix(part)}"}
        for p in range(self.p.parts):
            operands[f"a{p}"] = f"row_{row}_{p}"
            operands[f"b{p}"] = f"columns_{vector}_{p}"
        dot = self.p.dot.format(**operands)
        return f"in_order({dot})" if part in self.barriers else dot

    @property
    def barriers(self) -> list[int]:
        """The parts whose dots keep their order."""
        p, first_parts = self.p, [passes[0] for passes in self.passes]
        # An addition can be rearranged with the next one, the sum in an instruction cannot: its
        # accumulator can only be renamed, which costs moves at the end of the step. Partial sums are
        # renamed where one dot a step would not be.
        adds = p.dot_cost.total > 1
        dots = len(first_parts) * self.plan.dots * (1 if adds else self.plan.spread)
        if not p.keep_order or (dots == 1 and p.keep_order == "several"):
            return []
        return first_parts if adds else first_parts[-1:]

    @property
    def passes(self) -> list[list[int]]:
        """The parts that are multiplied at a time."""
        parts = list(range(self.p.parts))
        return [[part] for part in parts] if self.p.part_by_part else [parts]


def _int_zero(p: Primitive) -> str:
    bits = p.isa.vector_bytes * 8
    return f"_mm{'' if bits == 128 else bits}_setzero_si{bits}()"


def _as_out(plan: Plan) -> Primitive:
    return plan.primitive.f32_out if plan.f32_scratch else plan.primitive


def _out_bytes(plan: Plan) -> int:
    return 4 if plan.f32_scratch else BITS[plan.primitive.type.out] // 8


# ---------------------------------------------------------------- staging

class RhsStage:
    """A k step of the RHS as vectors [unit][vector of columns]."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.whole, self.columns_left = divmod(plan.tile.n0, self.p.lanes)

    @property
    def vectors(self) -> int:
        return self.plan.vectors(self.plan.tile.n0)

    def statements(self, columns: int) -> tuple[list[Statement], list[tuple[str, str]]]:
        """One vector of columns: loads of its units as they lie, each column's padded to a power of
        two, then levels of deinterleaving. Returns the statements and what is stored where."""
        statements: list[Statement] = []
        sequence = []
        for number in range(self.plan.padded_units):
            sequence.append(f"v{number}")
            statements += self._padded_columns(columns, number, sequence[-1])
        network, units = _deinterleave(self.p, sequence, "v")
        stores = [(_offset("to", unit * self.vectors * self.p.isa.vector_bytes), units[unit])
                  for unit in range(self.plan.units)]
        return _prune(statements + network, [value for _, value in stores]), stores

    def _padded_columns(self, columns: int, number: int, name: str) -> list[Statement]:
        """Vector `number` of the units of the columns, in memory order, each column's padded to
        padded_units."""
        plan, p = self.plan, self.p
        lanes, padded, units = p.lanes, plan.padded_units, plan.units
        column, unit = number * lanes // padded, number * lanes % padded
        at = (column * units + unit) * p.rhs_unit_bytes
        if padded >= lanes:
            count = min(lanes, units - unit) if column < columns else 0
        else:
            count = min(lanes // padded, columns - column) * units
        if count <= 0:
            return [Statement(name, _int_zero(p))]
        decode = p.decode[0] if plan.stages_decoded else ()
        load = _load(count, p.rhs_unit_bytes, lanes, _offset("from", at))
        if padded < lanes and units < padded:
            packed = _applied(decode, f"{name}_packed", load)
            spread = expand(p.isa, p.lane_bits, units, padded).format(x=f"{name}_packed")
            return packed + [Statement(name, spread)]
        return _applied(decode, name, load)


def _deinterleave(p: Primitive, sequence: list[str], name: str) -> tuple[list[Statement], list[str]]:
    """A sequence of lanes with period len(sequence), as one vector per residue."""
    if len(sequence) == 1:
        return [], sequence
    even_of, odd_of = p.isa.deinterleave[p.lane_bits]
    statements, evens, odds = [], [], []
    for pair in range(0, len(sequence), 2):
        a, b = sequence[pair], sequence[pair + 1]
        for kind, expression, names in (("e", even_of, evens), ("o", odd_of, odds)):
            names.append(f"{name}{kind}{pair // 2}")
            statements.append(Statement(names[-1], expression.format(a=a, b=b)))
    even_statements, even_units = _deinterleave(p, evens, name + "e")
    odd_statements, odd_units = _deinterleave(p, odds, name + "o")
    units = [u for pair in zip(even_units, odd_units) for u in pair]
    return statements + even_statements + odd_statements, units


def _prune(statements: list[Statement], used: list[str]) -> list[Statement]:
    """Without what only fed units beyond the tile's."""
    live = set(used)
    kept = []
    for statement in reversed(statements):
        if statement.name in live:
            kept.append(statement)
            live.update(re.findall(r"\w+", statement.value))
    return kept[::-1]


class LhsStage:
    """The LHS in the dots' form: [step][row][unit][part] lanes."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.vector_units = self.p.lanes // self.p.parts

    @property
    def tails(self) -> list[int]:
        """The numbers of units into which less than a vector of them is split."""
        return [1 << bit for bit in reversed(range(self.vector_units.bit_length() - 1))]

    @property
    def step_units(self) -> int:
        return self.plan.tile.m0 * self.plan.units

    def statements(self, units: int) -> list[Statement]:
        assert self.p.stage_lhs is not None
        load = _load(units, self.p.lhs_unit_bytes, self.vector_units, "from")
        return _applied(self.p.stage_lhs, "rows", load)


class RowSums:
    """Sums of the rows of the LHS as it lies in memory. So many steps at a time that they fill whole
    vectors: a lane then always belongs to the same row."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.size = self.p.isa.vector_bytes
        self.step_bytes = plan.tile.m0 * plan.units * self.p.lhs_unit_bytes
        self.period_steps = self.size // math.gcd(self.step_bytes, self.size)
        self.period_vectors = self.step_bytes * self.period_steps // self.size
        self.periods = 1
        # Sums in flight: of dots, one waits five cycles for the last one into its register.
        wanted = 8 if self.p.row_sums_cost.total == 1 else 4
        while self.periods * self.period_vectors < wanted:
            self.periods *= 2

    @property
    def vectors(self) -> int:
        return self.periods * self.period_vectors

    @property
    def steps(self) -> list[int]:
        """Steps at a time: as many as there are vectors for, and the numbers that the rest is split
        into."""
        most = self.periods * self.period_steps
        return [most >> bit for bit in range(most.bit_length())]

    def pieces(self, steps: int) -> list[tuple[str, str]]:
        """Loads, and sums with what they load."""
        found = []
        for vector, at in enumerate(range(0, steps * self.step_bytes, self.size)):
            size = min(self.size, steps * self.step_bytes - at)
            load = f"load_{self.size * 8}<{size}>({_offset('from', at)})"
            assert self.p.row_sums is not None
            found.append((load, self.p.row_sums.format(sums=f"sums_{vector}", x=f"rows_{vector}")))
        return found

    def folded(self) -> list[tuple[str, str]]:
        """Sums of the same lanes added to the first ones."""
        assert self.p.add is not None
        return [(f"sums_{v % self.period_vectors}",
                 self.p.add.format(a=f"sums_{v % self.period_vectors}", b=f"sums_{v}"))
                for v in range(self.period_vectors, self.vectors)]

    @property
    def row_lanes(self) -> int:
        return self.plan.units * self.p.lhs_unit_bytes // 4

    @property
    def lanes(self) -> int:
        return self.period_vectors * self.p.lanes


# ---------------------------------------------------------------- a tile

@dataclass(frozen=True)
class TileSource:
    """What the template reads of one tile."""

    plan: Plan

    @property
    def p(self) -> Primitive:
        return self.plan.primitive

    @property
    def shapes(self) -> list[BlockShape]:
        sizes = dict.fromkeys((b.rows, b.columns) for b in self.plan.blocks)
        return [BlockShape(self.plan, rows, columns) for rows, columns in sizes]

    @property
    def lhs_stage(self) -> LhsStage:
        return LhsStage(self.plan)

    @property
    def rhs_stage(self) -> RhsStage:
        return RhsStage(self.plan)

    @property
    def row_sums(self) -> RowSums:
        return RowSums(self.plan)

    def start_row(self) -> list[tuple[str, str, str]]:
        """Of a row of OUT, per vector: pointer, its store, its load."""
        found = []
        for column in range(0, self.plan.tile.n0, self.p.lanes):
            size = 4 * min(self.p.lanes, self.plan.tile.n0 - column)
            bits = self.p.isa.vector_bytes * 8
            pointer = _offset("out", 4 * column)
            found.append((pointer, f"store_{bits}<{size}>", f"load_{bits}<{size}>"))
        return found

    @property
    def neighbours(self) -> str:
        """Lanes of two vectors, added to their neighbours."""
        even, odd = (self.p.int_to_acc.format(x=x.format(a="a", b="b"))
                     for x in self.p.isa.deinterleave[self.p.lane_bits])
        assert self.p.add is not None
        return self.p.add.format(a=even, b=odd)

    @property
    def lhs_step(self) -> int:
        """Bytes of a k step of the LHS panel."""
        return self.plan.tile.m0 * self.plan.units * self.p.lhs_unit_bytes

    @property
    def rhs_step(self) -> int:
        return self.plan.tile.n0 * self.plan.units * self.p.rhs_unit_bytes

    @property
    def unit_bytes(self) -> int:
        """From a row's unit to its next one, as the dots read it."""
        return self.p.parts * self.plan.lane_bytes

    def out_offset(self, block: Block) -> int:
        return (block.row * self.plan.tile.n0 + block.column) * _out_bytes(self.plan)

    def lhs_offset(self, block: Block) -> int:
        unit_bytes = self.unit_bytes if self.plan.stages_lhs else self.p.lhs_unit_bytes
        return block.row * self.plan.units * unit_bytes

    def rhs_offset(self, block: Block) -> int:
        if self.plan.stages_rhs:
            return block.column // self.p.lanes * self.p.isa.vector_bytes
        return block.column * self.plan.units * self.p.rhs_unit_bytes

    def arguments(self, block: Block) -> str:
        """Of the call of a block's function."""
        plan = self.plan
        by_tile = plan.stages and not plan.stages_in_block
        lhs = "staged_lhs" if by_tile and plan.stages_lhs else "lhs"
        rhs = "staged_rhs" if plan.stages_rhs else "rhs"
        found = [_offset("sums" if plan.f32_scratch else "out", self.out_offset(block)),
                 _offset(lhs, self.lhs_offset(block)), _offset(rhs, self.rhs_offset(block)),
                 "steps" if by_tile else "k1", "flags"]
        return ", ".join(found)

    def out_pieces(self) -> list[tuple[int, int]]:
        """OUT as a number of whole vectors, and lanes that are left."""
        return divmod(self.plan.tile.m0 * self.plan.tile.n0, self.p.lanes)


def emit(plans: Iterable[Plan]) -> str:
    """One source file with the tiles of these plans, all of one ISA."""
    sources = [TileSource(plan) for plan in plans]
    includes = {i for s in sources for i in s.p.isa.includes}
    return _TEMPLATES.get_template("mmt4d.cc.j2").render(tiles=sources, includes=sorted(includes))
