"""Turns plans into C++ source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable

import jinja2

from generator.isa_x86 import expand
from generator.model import BITS, Primitive
from generator.plan import Block, Plan

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    keep_trailing_newline=True)




@dataclass(frozen=True)
class Statement:
    """const <vector> name = value;"""

    name: str
    value: str


def _widened(steps: tuple[str, ...] | None, name: str, load: str) -> list[Statement]:
    """Statements that leave the widened units in `name`. A step that mentions its input twice gets it
    from a statement of its own."""
    if not steps:
        return [Statement(name, load)]
    statements: list[Statement] = []
    x = load
    for number, step in enumerate(steps):
        if step.count("{x}") > 1:
            statements.append(Statement(f"{name}_{number}", x))
            x = f"{name}_{number}"
        x = step.format(x=x)
    statements.append(Statement(name, x))
    return statements


def _load(units: int, unit_bytes: int, lanes: int, pointer: str) -> str:
    """A partial load of `units` units into the narrowest register that holds `lanes` of them."""
    register = max(128, lanes * unit_bytes * 8)
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
    def name(self) -> str:
        return f"block_{self.rows}x{self.columns}"

    @property
    def vectors(self) -> int:
        return self.plan.vectors(self.columns)

    def lanes_of(self, vector: int) -> int:
        return min(self.plan.primitive.lanes, self.columns - vector * self.plan.primitive.lanes)

    # ------------------------------------------------------------ OUT

    def _out(self, row: int, vector: int) -> tuple[str, int, int]:
        p = self.plan.primitive
        out_bytes = BITS[p.type.out] // 8
        at = (row * self.plan.tile.n0 + vector * p.lanes) * out_bytes
        return _offset("out", at), self.lanes_of(vector) * out_bytes, max(128, p.lanes * out_bytes * 8)

    def load_out(self, row: int, vector: int) -> str:
        pointer, size, register = self._out(row, vector)
        load = f"load_{register}<{size}>({pointer})"
        return self.plan.primitive.load_out.format(load=load)

    def store_out(self, row: int, vector: int) -> str:
        p = self.plan.primitive
        acc = f"acc_{row}_{vector}"
        if p.subtract:
            acc = p.subtract.format(acc=acc, sums=f"sums_{vector}")
        pointer, size, register = self._out(row, vector)
        return f"store_{register}<{size}>({pointer}, {p.store_out.format(acc=acc)});"

    # ------------------------------------------------------------ K loop

    def columns_statements(self, vector: int) -> list[Statement]:
        """A step's columns, from the panel or, already widened, from the stage."""
        p = self.plan.primitive
        if self.plan.stages_rhs:
            at = vector * p.isa.vector_bytes
            return [Statement(f"units_{vector}",
                              f"load_{p.isa.vector_bytes * 8}<{p.isa.vector_bytes}>({_offset('columns', at)})")]
        load = _load(self.lanes_of(vector), p.rhs_unit_bytes, p.lanes,
                     _offset("columns", vector * p.lanes * p.rhs_unit_bytes))
        return _widened(p.widen_rhs, f"units_{vector}", load)

    def operand(self, x: str) -> str:
        return self.plan.primitive.operand.format(x=x)

    def broadcast(self, row: int) -> str:
        p = self.plan.primitive
        lane = p.isa.broadcast[p.lane_bits].format(
            p=_offset("rows", row * self.plan.units * p.lane_bits // 8))
        return self.operand(lane)

    def dot(self, row: int, vector: int) -> str:
        return self.plan.primitive.dot.format(acc=f"acc_{row}_{vector}", a=f"row_{row}",
                                              b=f"columns_{vector}")

    def column_sum(self, vector: int) -> str:
        sums = self.plan.primitive.column_sums
        assert sums is not None
        return sums.format(sums=f"sums_{vector}", b=f"columns_{vector}")

    # ------------------------------------------------------------ staging the RHS

    @property
    def stage_name(self) -> str:
        return f"stage_rhs_{self.columns}"

    def stage_statements(self) -> tuple[list[Statement], list[tuple[str, str]]]:
        """One k step: loads of the columns' units as they lie, rows padded to a power of two, then
        levels of deinterleaving. Returns the statements and what is stored where."""
        plan, p = self.plan, self.plan.primitive
        statements: list[Statement] = []
        stores: list[tuple[str, str]] = []
        for vector in range(self.vectors):
            sequence = []
            for part in range(plan.padded_units):
                name = f"v{vector}_{part}"
                sequence.append(name)
                statements += self._padded_rows(vector, part, name)
            network, units = _deinterleave(p, sequence, f"v{vector}")
            statements += network
            for unit in range(plan.units):
                at = (unit * self.vectors + vector) * p.isa.vector_bytes
                stores.append((_offset("to", at), units[unit]))
        return _prune(statements, [value for _, value in stores]), stores

    def _padded_rows(self, vector: int, part: int, name: str) -> list[Statement]:
        """Vector `part` of the units of the columns of one vector, in memory order, each column's
        padded to padded_units."""
        plan, p = self.plan, self.plan.primitive
        lanes, padded, units = p.lanes, plan.padded_units, plan.units
        zero = f"_mm{'' if p.isa.vector_bytes == 16 else p.isa.vector_bytes * 8}_setzero_si{p.isa.vector_bytes * 8}()"
        first_lane = part * lanes
        column, unit = first_lane // padded, first_lane % padded
        column_bytes = units * p.rhs_unit_bytes
        at = (vector * lanes + column) * column_bytes + unit * p.rhs_unit_bytes
        columns_left = self.lanes_of(vector) - column
        if padded >= lanes:
            count = min(lanes, units - unit) if columns_left > 0 else 0
        else:
            count = min(lanes // padded, columns_left) * units
        if count <= 0:
            return [Statement(name, zero)]
        load = _load(count, p.rhs_unit_bytes, lanes, _offset("from", at))
        if padded < lanes and units < padded:
            statements = _widened(p.widen_rhs, f"{name}_packed", load)
            return statements + [Statement(name, expand(p.isa, p.lane_bits, units, padded).format(
                x=f"{name}_packed"))]
        return _widened(p.widen_rhs, name, load)


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


def _shapes(plan: Plan) -> list[BlockShape]:
    shapes: list[BlockShape] = []
    for block in plan.blocks:
        shape = BlockShape(plan, block.rows, block.columns)
        if shape not in shapes:
            shapes.append(shape)
    return shapes


@dataclass(frozen=True)
class TileSource:
    """What the template reads of one tile."""

    plan: Plan

    @property
    def p(self) -> Primitive:
        return self.plan.primitive

    @property
    def shapes(self) -> list[BlockShape]:
        return _shapes(self.plan)

    @property
    def staged_shapes(self) -> list[BlockShape]:
        """One per number of columns."""
        by_columns = {s.columns: s for s in self.shapes}
        return list(by_columns.values()) if self.plan.stages_rhs else []

    @property
    def lane_bytes(self) -> int:
        return self.p.lane_bits // 8

    @property
    def lhs_step(self) -> int:
        """Bytes of a k step of the LHS panel."""
        return self.plan.tile.m0 * self.plan.units * self.p.lhs_unit_bytes

    @property
    def rhs_step(self) -> int:
        return self.plan.tile.n0 * self.plan.units * self.p.rhs_unit_bytes

    @property
    def row_step(self) -> int:
        """Bytes of a k step of the LHS as the dots read it."""
        return self.plan.tile.m0 * self.plan.units * self.lane_bytes

    def lhs_stage_statements(self, units: int) -> list[Statement]:
        return _widened(self.p.widen_lhs, "widened",
                        _load(units, self.p.lhs_unit_bytes, self.p.lanes, "from"))

    def out_offset(self, block: Block) -> int:
        return (block.row * self.plan.tile.n0 + block.column) * BITS[self.p.type.out] // 8

    def rhs_offset(self, block: Block) -> int:
        return block.column * self.plan.units * self.p.rhs_unit_bytes


def emit(plans: Iterable[Plan]) -> str:
    """One source file with the tiles of these plans, all of one ISA."""
    sources = [TileSource(plan) for plan in plans]
    includes = sorted({i for s in sources for i in s.p.isa.includes})
    return _TEMPLATES.get_template("mmt4d.cc.j2").render(tiles=sources, includes=includes)
