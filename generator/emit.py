"""Turns plans into C++ source."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Iterable

import jinja2

from generator.isas import expand, int_zero, set1
from generator.model import BITS, SCALED_STEPS, Primitive, Steps
from generator.plan import (Block, Plan, decodes_scaled, embeds_rows, gains_in_caches, one_by_one,
                            plan_abreast_from_memory, plan_on_decoded_lhs, plan_on_decoded_rhs,
                            registers_of_further_sums, reloads_columns, spare_registers, steps_of_turn, unrolls_steps)

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    keep_trailing_newline=True)


@dataclass(frozen=True)
class Statement:
    """const auto name = value;"""

    name: str
    value: str

    @property
    def text(self) -> str:
        return f"const auto {self.name} = {self.value};"


@dataclass(frozen=True)
class RowVector:
    """A vector of rows' units, by their places in the block's k step, and which accumulators' dots
    take which lane of it. With `repeated`, that many units from the first on, over and over."""

    units: list[int]
    rows: list[tuple[int, int]]
    repeated: int = 0


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


_ROW_LOADS_AT_A_TIME = 4  # for more there need not be registers


@dataclass(frozen=True)
class BlockShape:
    """What the blocks of equal rows and columns share: one function."""

    plan: Plan
    rows: int
    columns: int
    sums: int

    @cached_property
    def p(self) -> Primitive:
        return self.plan.primitive

    @cached_property
    def name(self) -> str:
        return f"block_{self.rows}x{self.columns}"

    @cached_property
    def vectors(self) -> int:
        return self.plan.vectors(self.columns)

    # ------------------------------------------------------------ OUT

    @cached_property
    def acc_rows(self) -> int:
        """Rows of accumulators."""
        return -(-self.rows // self.p.acc_rows)

    @cached_property
    def out_vectors(self) -> int:
        return -(-self.columns // self.p.acc_columns)

    @cached_property
    def acc_row_bytes(self) -> str:
        """From a row of accumulators to the next one in OUT."""
        return f"{self.p.acc_rows} * row_bytes" if self.p.acc_rows > 1 else "row_bytes"

    def _out(self, first: str, row: int, vector: int) -> tuple[str, int, int]:
        """Of a row of the accumulators whose first one begins at `first`."""
        p = self.p
        out_bytes = _out_bytes(self.plan)
        row_at = f"{first} + row_bytes" if row % p.acc_rows else first
        column, columns = vector * p.acc_columns, min(p.acc_columns, self.columns - vector * p.acc_columns)
        if self.plan.results_lie_apart:
            panel, column = divmod(column, self.plan.tile.n0)
            row_at += f" + {panel} * out_panel_bytes" if panel > 0 else ""
        return _offset(row_at, column * out_bytes), columns * out_bytes, max(128, p.lanes * out_bytes * 8)

    def _rows_of(self, acc_row: int) -> range:
        first = acc_row * self.p.acc_rows
        return range(first, min(first + self.p.acc_rows, self.rows))

    @cached_property
    def _row_bits(self) -> int:
        """Of each of an accumulator's rows in OUT."""
        return self.p.acc_columns * _out_bytes(self.plan) * 8

    def load_out(self, first: str, acc_row: int, vector: int) -> str:
        loads = []
        for row in self._rows_of(acc_row):
            pointer, size, register = self._out(first, row, vector)
            loads.append(f"load_{register}<{size}>({pointer})")
        load, = loads if len(loads) == 1 else [
            self.p.isa.join[self._row_bits].format(a=loads[0], b=loads[1])]
        return _as_out(self.plan).load_out.format(load=load)

    def store_out(self, acc_row: int, vector: int) -> list[str]:
        value = _as_out(self.plan).store_out.format(acc=self.result(acc_row, vector))
        stores = []
        for row in self._rows_of(acc_row):
            if row % self.p.acc_rows:
                value = self.p.isa.second[self._row_bits].format(x=value)
            pointer, size, register = self._out("out", row, vector)
            product = register == 512 and self._stores_products
            stores.append(f"store_{'product_' if product else ''}{register}<{size}>({pointer}, {value});")
        return stores

    @cached_property
    def _stores_products(self) -> bool:
        """Whether nothing lies between a multiplication and OUT, nor loads it again soon."""
        return self.p.only_dots and self.plan.spread == 1 and not self.plan.f32_scratch

    def result(self, row: int, vector: int) -> str:
        return f"{'sum' if self.plan.spread > 1 else 'acc'}_{row}_{vector}"

    def added_up(self, row: int, vector: int) -> str:
        """The accumulators of one vector of OUT, whose lanes are partial sums, added up."""
        p, spread = self.p, self.plan.spread
        zero = int_zero(p.isa)
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

    @cached_property
    def further_sums(self) -> list[str]:
        """What a result's sums are named, beside `acc`."""
        return [f"acc{sum}" for sum in range(1, self.sums)]

    @cached_property
    def decodes_scaled(self) -> bool:
        return not self.plan.on_decoded_lhs and decodes_scaled(self.p, self.sums, self.plan.reads_decoded)

    def further_sum(self, number: int, row: int, vector: int) -> str:
        """What it adds to its result."""
        sum = f"in_order({self.further_sums[number]}_{row}_{vector})"
        # Parts take turns, too, so that a sum always has the same one.
        bits = self.p.scaled_bits[(number + 1) % self.p.parts] if self.decodes_scaled else 0
        return self.p.scale_back.format(sum=sum, bits=bits) if bits else sum

    @cached_property
    def sums_of_rows(self) -> list[str]:
        """What sums of the tile's rows are named, which take turns as a result's sums do."""
        return ["sums", *(f"sums{sum}" for sum in range(1, self.sums))]

    @cached_property
    def steps_of_turn(self) -> int:
        return steps_of_turn(self.p, self.sums)

    @cached_property
    def one_by_one(self) -> bool:
        return one_by_one(self.p, self.rows, self.vectors) or self._widens_for_one_dot

    @cached_property
    def _widens_for_one_dot(self) -> bool:
        """Whether each product is of a column that is widened for it alone. Widening, products and sums take
        turns then: Zen 4 is up to 18 % slower with products in pairs, unless lanes are partial sums."""
        p = self.p
        return (p.product is not None and self.rows == 1 and p.parts == 1 and p.decode != ((),)
                and self.plan.spread == 1)

    @cached_property
    def unrolls_steps(self) -> bool:
        plan = self.plan
        if plan.stages_beside_dots:
            # Clang would move the first step's dots behind the second one's staging, but not the loads of their rows,
            # for which there are not enough registers.
            return False
        further = registers_of_further_sums(self.p, self.sums, self.rows, self.vectors)
        spare = spare_registers(plan.tile, self.p, plan.spread) + further
        return unrolls_steps(self.p, self.rows, self.vectors, plan.reads_decoded, spare)

    @cached_property
    def decodes_ahead(self) -> bool:
        return self.plan.decodes_ahead(self.rows, self.vectors, self.sums)

    @cached_property
    def vectors_of_step(self) -> range:
        """Those that a step decodes for itself."""
        return range(1 if self.decodes_ahead else 0, self.vectors)

    def first_columns(self, pointer: str) -> list[Statement]:
        """The first vector of the step there, decoded."""
        units, = self.units_statement(0, pointer=pointer)
        return [Statement("next_units_0", units.value), *self.columns_statements(0, 0, "next_units_0")]

    @cached_property
    def step_bytes(self) -> int:
        """Of a k step of its columns."""
        return self.columns * self.plan.units * self.p.rhs_unit_bytes

    @cached_property
    def reloads_columns(self) -> bool:
        return reloads_columns(self.p, self.rows, self.vectors, self.plan.reads_decoded)

    def _units(self, vector: int, part: int) -> str:
        return f"units_{vector}{self._suffix(part) if self.reloads_columns else ''}"

    def units_statement(self, vector: int, part: int = 0, pointer: str = "columns") -> list[Statement]:
        """A vector of columns as it lies in memory or in the stage, for all parts if they are not loaded anew."""
        p = self.p
        if self.plan.reads_vectors:
            if self.plan.staged_parts > 1:
                return []  # each part is read where it is needed
            load = self._staged_vector(vector)
        else:
            units = self.plan.spread * min(self.plan.vector_columns,
                                           self.columns - vector * self.plan.vector_columns)
            panel, vector_of_panel = divmod(vector, self.plan.operand_vectors(self.plan.tile.n0))
            columns = pointer if panel == 0 else f"{pointer} + {panel} * panel_bytes"
            load = _load(units, p.rhs_unit_bytes, p.operand_lanes,
                         _offset(columns, vector_of_panel * p.operand_lanes * p.rhs_unit_bytes))
        parts = self._decode[part:part + 1] if self.reloads_columns else self._decode
        users = sum(steps[0].count("{x}") if steps else self.rows for steps in parts)
        for step in self._steps_of_all_parts:
            load = step.format(x=load)
        return [Statement(self._units(vector, part), self._loaded(load, users))]

    def _loaded(self, load: str, users: int) -> str:
        """Of a vector that so many instructions use: of more rows no compiler loads it for each."""
        shared = users > 1 and self.rows <= 2 and self.p.isa.folds_loads
        return f"loaded_once({load})" if shared else load

    def _staged_vector(self, vector: int, part: int = 0, dot: int = 0) -> str:
        """The load of a part of a vector of columns, one of those put together before."""
        plan, size = self.plan, self.p.isa.vector_bytes
        slice_bytes = plan.column_step // plan.units // plan.staged_parts
        return _load(1, size, 1, _offset("columns", (dot * plan.staged_parts + part) * slice_bytes + vector * size))

    def _suffix(self, part: int) -> str:
        return f"_{part}" if self.p.parts > 1 else ""

    def columns_statements(self, vector: int, part: int, units: str | None = None) -> list[Statement]:
        p = self.p
        name = f"columns_{vector}{self._suffix(part)}"
        if self.plan.staged_parts > 1:
            return _applied((p.operand,), name, self._loaded(self._staged_vector(vector, part), self.rows))
        return _applied((*self._decode[part], p.operand), name, units or self._units(vector, part))

    @cached_property
    def _decode(self) -> tuple[Steps, ...]:
        """By part, what follows the steps of all parts."""
        return tuple(steps[len(self._steps_of_all_parts):] for steps in self._whole_decode)

    @cached_property
    def _steps_of_all_parts(self) -> Steps:
        """The first step, if all parts have the same, of a vector that is not loaded anew for each. It becomes one
        instruction with the load, so that a core has more loads in sight."""
        first_steps = {steps[:1] for steps in self._whole_decode}
        if self.p.parts == 1 or len(first_steps) > 1 or self.reloads_columns:
            return ()
        shared = first_steps.pop()
        assert all(step.count("{x}") == 1 for step in shared), "else it would be loaded twice"
        return shared

    @cached_property
    def _whole_decode(self) -> tuple[Steps, ...]:
        """By part. One row's vectors take turns, for which Clang has no registers if it cannot move all that decodes
        them."""
        if self.plan.reads_decoded:
            return ((),) * self.p.parts
        if self.decodes_scaled:
            return self.p.scaled_decode
        return self.p.decode if self.one_by_one else self.p.decode_for_rows or self.p.decode

    @cached_property
    def row_dot(self) -> str | None:
        """Of dots that broadcast their rows themselves; where compilers see to that, rows have statements."""
        return self.p.row_dot if embeds_rows(self.p, self.vectors, self.plan.spread) else None

    def _row(self, row: int, part: int) -> str:
        return _offset("rows", self.plan.row_at(row, part))

    def row_statement(self, row: int, part: int) -> Statement:
        p, plan = self.p, self.plan
        bits = p.lane_bits * plan.spread
        broadcast = p.broadcast if p.broadcast and bits == 32 else p.isa.broadcast[bits]
        lanes = broadcast.format(p=self._row(row, part))
        value = p.operand.format(x=lanes)
        return Statement(f"row_{row}{self._suffix(part)}", f"pinned_row({value})" if p.product else value)

    def dot(self, row: int, vector: int, part: int, step: int) -> list[str]:
        """Statements. Those that are taken in pairs leave the first one's addition to the next pair."""
        p = self.p
        sums = ["acc", *self.further_sums]
        acc = f"{sums[(step * self.p.dots_of_unit + part) % self.sums]}_{row}_{vector}"
        operands = {"acc": acc, "a": f"row_{row}{self._suffix(part)}",
                    "b": f"columns_{vector}{self._suffix(part)}"}
        for number in range(p.parts):
            operands[f"a{number}"] = f"row_{row}_{number}"
            operands[f"b{number}"] = f"columns_{vector}_{number}"
        if not p.product:
            dot = (self.row_dot or p.dot).format(**operands, p=self._row(row, part))
            return [f"{acc} = {f'in_order({dot})' if part in self.barriers else dot};"]
        dots = self._dots_of_step
        number = dots.index((row, vector, part))
        product = Statement(self._product(row, vector, part), f"pinned({p.product.format(**operands)})")
        if self._widens_for_one_dot:
            return [product.text, self._add_product(row, vector, part)]
        is_first, is_last = number % 2 == 0, number == len(dots) - 1
        return [*([self._add_product(*dots[number - 2])] if is_first and number else []),
                product.text,
                *([self._add_product(row, vector, part)] if is_last or not is_first else []),
                *([self._add_product(*dots[number - 1])] if is_last and not is_first else [])]

    @cached_property
    def _dots_of_step(self) -> list[tuple[int, int, int]]:
        """Row, vector and part, in their order."""
        first_parts = [parts[0] for parts in self.passes]
        if self.one_by_one:
            return [(row, vector, part) for vector in range(self.vectors) for part in first_parts
                    for row in range(self.rows)]
        return [(row, vector, part) for part in first_parts for row in range(self.rows)
                for vector in self.vectors_of_row]

    def _product(self, row: int, vector: int, part: int) -> str:
        return f"product_{row}_{vector}{self._suffix(part)}"

    def _add_product(self, row: int, vector: int, part: int) -> str:
        acc, p = f"acc_{row}_{vector}", self.p
        assert p.add is not None
        return f"{acc} = pinned({p.add.format(a=acc, b=self._product(row, vector, part))});"

    @cached_property
    def vectors_of_row(self) -> list[int]:
        """The order in which a row is multiplied by the columns. Of many parts with a sum each, GCC keeps all
        operands of 4 rows x 2 vectors in 16 registers only if it is the last vector first."""
        vectors = list(range(self.vectors))
        return vectors[::-1] if self.p.parts > 2 and self.p.dot_cost.total > 1 else vectors

    @cached_property
    def barriers(self) -> list[int]:
        """The parts whose dots keep their order."""
        p, first_parts = self.p, [passes[0] for passes in self.passes]
        # An addition can be rearranged with the next one. The sum in an instruction cannot, its
        # accumulator can only be renamed, which costs moves at the end of the step; but of many parts
        # compilers would bring those of later dots into registers first. Partial sums are renamed where
        # one dot a step would not be.
        adds = p.dot_cost.total > 1
        dots = len(first_parts) * self.plan.dots * (1 if adds else self.plan.spread)
        if not p.keep_order or (dots == 1 and p.keep_order == "several"):
            return []
        each = (adds or len(first_parts) > 2 or self.sums > 1  # of which each has one dot a step
                or self.plan.on_decoded_rhs or self.reloads_columns)  # with no register to rename with
        return first_parts if each else first_parts[-1:]

    # ------------------------------------------------------------ K loop, rows as they lie

    def row_vectors(self, dot: int) -> list[RowVector]:
        """What one dot of all rows takes of them."""
        p, units = self.p, self.plan.units
        if self.plan.spread > 1:
            return [RowVector([row * units], [(row, 0)], repeated=self.plan.spread)
                    for row in range(self.rows)]
        if p.acc_rows > 1:
            return [RowVector([row * units + dot for row in self._rows_of(acc_row)], [(acc_row, 0)])
                    for acc_row in range(self.acc_rows)]
        lanes, total = p.operand_lanes, self.rows * units
        lane_of: dict[int, list[tuple[int, int]]] = {}
        for row in range(self.rows):
            # The last vector ends with the rows, if that is not before they begin.
            unit = row * units + dot
            first = max(0, min(unit // lanes * lanes, total - lanes))
            lane_of.setdefault(first, []).append((row, unit - first))
        return [RowVector(list(range(first, min(first + lanes, total))), rows)
                for first, rows in lane_of.items()]

    def _row_loads(self, vector: RowVector) -> list[str]:
        p = self.p
        size = p.isa.vector_bytes
        at = [unit * p.lhs_unit_bytes for unit in vector.units]
        if vector.repeated:
            width = min(size, vector.repeated * p.lhs_unit_bytes)
            return [p.isa.broadcast[width * 8].format(p=_offset("rows", first)) for first in
                    range(at[0], at[0] + vector.repeated * p.lhs_unit_bytes, width)]
        if len(at) == 2 and at[1] - at[0] != p.lhs_unit_bytes:
            loads = [_load(1, p.lhs_unit_bytes, 1, _offset("rows", a)) for a in at]
            return [p.isa.join[p.lhs_unit_bytes * 8].format(a=loads[0], b=loads[1])]
        total = len(at) * p.lhs_unit_bytes
        loads = [_load(1, min(size, total - first), 1, _offset("rows", at[0] + first))
                 if first < total else int_zero(p.isa) for first in range(0, p.row_loads * size, size)]
        # Of vectors whose lanes are picked, compilers would load the lanes one by one.
        picked = p.lane_dot is not None and p.decode_rows == ((),)
        return [f"whole({load})" for load in loads] if picked else loads

    def _row_operands(self, number: int, vector: RowVector) -> list[Statement]:
        """rows_<number>, for each part."""
        p = self.p
        loads = self._row_loads(vector)
        if p.parts == 1:
            return _applied((*p.decode_rows[0], p.operand), f"rows_{number}", loads[0])
        names = [f"loaded_{number}_{i}" for i in range(len(loads))]
        statements = [Statement(name, load) for name, load in zip(names, loads)]
        for part, steps in enumerate(p.decode_rows):
            name = f"rows_{number}_{part}"
            expression, = steps
            value = expression.format(x=names[0], x0=names[0], x1=names[-1])
            statements.append(Statement(name, p.operand.format(x=value)))
        return statements

    def _vector_dot(self, acc_row: int, vector: int, part: int, rows: str, lane: int) -> str:
        p = self.p
        accs_of_operand = p.operand_lanes // p.acc_columns
        operand, half = divmod(vector, accs_of_operand)
        lane_dots = p.lane_dot is not None and self.plan.spread == 1
        dot = ((p.high_lane_dot if half else p.lane_dot) if lane_dots else
               (p.high_dot if half else p.dot))
        assert dot is not None
        acc = f"acc_{acc_row}_{vector}"
        value = dot.format(acc=acc, a=rows + self._suffix(part), lane=lane,
                           b=f"columns_{operand}{self._suffix(part)}")
        return f"{acc} = {value};"

    def _columns(self, operand: int, dot: int) -> list[Statement]:
        """columns_<operand>, for each part."""
        p, plan = self.p, self.plan
        if not plan.reads_vectors:
            statements = self.units_statement(operand)
            for part in range(p.parts):
                statements += self.columns_statements(operand, part)
            return statements
        return [Statement(f"columns_{operand}{self._suffix(part)}",
                          p.operand.format(x=self._staged_vector(operand, part, dot)))
                for part in range(p.parts)]

    def step_of_vectors(self) -> list[str]:
        """A k step's statements."""
        lines = []
        for dot in range(self.plan.dots):
            statements = [s for operand in range(self.plan.operand_vectors(self.columns))
                          for s in self._columns(operand, dot)]
            body = [s.text for s in statements]
            if dot:
                body.insert(0, self._load_after(range(self.acc_rows)))
            acc_rows: list[int] = []
            loads = 0
            for number, vector in enumerate(self.row_vectors(dot)):
                if loads >= _ROW_LOADS_AT_A_TIME:
                    body.append(self._load_after(acc_rows))
                    acc_rows, loads = [], 0
                body += [s.text for s in self._row_operands(number, vector)]
                body += [self._vector_dot(acc_row, j, part, f"rows_{number}", lane)
                         for acc_row, lane in vector.rows for part in range(self.p.parts)
                         for j in range(self.vectors)]
                acc_rows += [acc_row for acc_row, _ in vector.rows]
                loads += self.p.row_loads
            if self.plan.dots == 1:
                return body
            lines += ["{", *(f"  {line}" for line in body), "}"]
        return lines

    def _load_after(self, acc_rows: Iterable[int]) -> str:
        accs = ", ".join(f"acc_{i}_{j}" for i in acc_rows for j in range(self.vectors))
        return f"load_after({accs});"

    @cached_property
    def passes(self) -> list[list[int]]:
        """The parts that are multiplied at a time."""
        parts = list(range(self.p.parts))
        return [[part] for part in parts] if self.p.part_by_part else [parts]


def _as_out(plan: Plan) -> Primitive:
    return plan.primitive.f32_out if plan.f32_scratch else plan.primitive


def _out_bytes(plan: Plan) -> int:
    return 4 if plan.f32_scratch else BITS[plan.primitive.type.out] // 8


# ---------------------------------------------------------------- staging

class RhsStage:
    """A k step of the RHS as vectors [unit][vector of columns]."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.whole, self.columns_left = divmod(plan.tile.n0, self.p.operand_lanes)

    @cached_property
    def vectors(self) -> int:
        return self.plan.operand_vectors(self.plan.tile.n0)

    @cached_property
    def column_units(self) -> int:
        """Units of a staged column, a part being one where columns are staged decoded."""
        return self.plan.units * self.plan.staged_parts

    def statements(self, columns: int) -> tuple[list[Statement], list[tuple[str, str]]]:
        """One vector of columns: loads of its units as they lie, each column's padded to a power of
        two, then levels of deinterleaving. Returns the statements and what is stored where."""
        parts = self.plan.staged_parts
        statements: list[Statement] = []
        stores = []
        for part in range(parts):
            name = f"part_{part}_v" if parts > 1 else "v"
            sequence = []
            for number in range(self.plan.padded_units):
                sequence.append(f"{name}{number}")
                statements += self._padded_columns(columns, number, part, sequence[-1])
            network, units = _deinterleave(self.p, sequence, name)
            statements += network
            stores += [(_offset("to", (unit * parts + part) * self.vectors * self.p.isa.vector_bytes),
                        units[unit]) for unit in range(self.plan.units)]
        return _prune(statements, [value for _, value in stores]), stores

    def _padded_columns(self, columns: int, number: int, part: int, name: str) -> list[Statement]:
        """Vector `number` of the units of the columns, in memory order, each column's padded to
        padded_units."""
        plan, p = self.plan, self.p
        lanes, padded, units = p.operand_lanes, plan.padded_units, plan.units
        column, unit = number * lanes // padded, number * lanes % padded
        at = (column * units + unit) * p.rhs_unit_bytes
        if padded >= lanes:
            count = min(lanes, units - unit) if column < columns else 0
        else:
            count = min(lanes // padded, columns - column) * units
        if count <= 0:
            return [Statement(name, int_zero(p.isa))]
        decode = p.decode[part] if plan.reads_decoded else ()
        load = _load(count, p.rhs_unit_bytes, lanes, _offset("from", at))
        if padded < lanes and units < padded:
            packed = _applied(decode, f"{name}_packed", load)
            spread = expand(p.isa, p.operand_bits or p.lane_bits, units, padded)
            return packed + [Statement(name, spread.format(x=f"{name}_packed"))]
        return _applied(decode, name, load)


def _deinterleave(p: Primitive, sequence: list[str], name: str) -> tuple[list[Statement], list[str]]:
    """A sequence of lanes with period len(sequence), as one vector per residue."""
    if len(sequence) == 1:
        return [], sequence
    even_of, odd_of = p.isa.deinterleave[p.operand_bits or p.lane_bits]
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
    """The LHS in the dots' form: [step][row][unit][part] lanes. Beside dots, each step begins with a vector, and
    what store_parts stages is [step][part][row]."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.vector_units = self.p.lanes // self.p.parts

    @cached_property
    def tails(self) -> list[int]:
        """The numbers of units into which less than a vector of them is split."""
        return [1 << bit for bit in reversed(range(self.vector_units.bit_length() - 1))]

    @cached_property
    def step_units(self) -> int:
        return self.plan.tile.m0 * self.plan.units

    def load(self, units: int, first: int = 0) -> str:
        return _load(units, self.p.lhs_unit_bytes, self.vector_units, _offset("from", first * self.p.lhs_unit_bytes))

    @cached_property
    def vectors_of_part(self) -> list[int]:
        """Where a block stages for itself, the first units of the vectors that bring all steps of a part. The last
        vector brings some once more rather than less than a vector. Units of several parts are shuffled, by masks
        for which GCC spilled accumulators."""
        last = self.plan.stage_steps * self.step_units - self.vector_units
        if not self.plan.stages_in_block or self.plan.sums_while_staging or self.p.parts > 1 or last < 0:
            return []
        return [*range(0, last, self.vector_units), last]

    def statements(self, loaded: str) -> list[Statement]:
        assert self.p.stage_lhs is not None
        return _applied(self.p.stage_lhs, "rows", loaded)

    # ------------------------------------------------------------ beside dots

    @cached_property
    def loads_past_step(self) -> bool:
        """Whether whole vectors hold more than a step."""
        return self.plan.tile.m0 % self.plan.rows_of_vector != 0

    @cached_property
    def step_function(self) -> str:
        """What the K loop stages a step by."""
        return "restage_step" if self.plan.parts_lie_apart else "stage_step"

    def widened(self, is_last: bool) -> list[str]:
        """Statements that stage a step; of the panel's last one no more is loaded."""
        lines = []
        for number, load, at in self._step_vectors(is_last):
            if self.plan.parts_lie_apart:  # rows' units are taken apart as columns' units are
                lines.append(Statement(f"units_{number}", load).text)
                parts = [_applied(steps, f"rows_{number}_{part}", f"units_{number}")
                         for part, steps in enumerate(self.p.decode)]
            else:
                assert self.p.stage_lhs is not None
                parts = [_applied(self.p.stage_lhs, f"rows_{number}", load)]
            bits = 8 * self.p.isa.vector_bytes
            for statements, to in zip(parts, at):
                lines += [s.text for s in statements]
                lines.append(f"store_{bits}<{bits // 8}>({to}, {statements[-1].name});")
        return lines

    def stored(self, is_last: bool) -> list[str]:
        """Likewise, by stores alone."""
        lines = []
        for number, load, at in self._step_vectors(is_last):
            lines.append(Statement(f"units_{number}", load).text)
            lines += [f"{store.format(to=to, x=f'units_{number}')};" for store, to in zip(self.p.store_parts, at)]
        return lines

    def _step_vectors(self, is_last: bool) -> Iterable[tuple[int, str, list[str]]]:
        """Of each vector of a step its number, its load, and where its parts go."""
        plan, p = self.plan, self.p
        for number in range(plan.staged_vectors):
            first = number * plan.rows_of_vector
            rows = min(plan.rows_of_vector, plan.tile.m0 - first) if is_last else plan.rows_of_vector
            load = _load(rows, p.lhs_unit_bytes, plan.rows_of_vector, _offset("from", first * p.lhs_unit_bytes))
            yield number, load, [_offset("to", plan.row_at(first, part)) for part in range(p.parts)]


_REGISTERS_OF_ROW_SUMS = 3  # beside the sums: a vector of rows, what a sum needs in between, a constant
_USUAL_STEPS = 64  # for which one vector more a step costs as much as so many lanes in the end


class RowSums:
    """Sums of the rows of the LHS as it lies in memory. So many steps at a time that they fill whole
    vectors: a lane then always belongs to the same row. But of whole vectors all lanes are added up in the end, one
    by one: where they would have many, each step fills its own, the last one in part. Where these are more vectors
    than registers, only as many of them at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.p = plan, plan.primitive
        self.size = self.p.isa.vector_bytes
        self.step_bytes = plan.tile.m0 * plan.units * self.p.lhs_unit_bytes
        self.period_steps = self.size // math.gcd(self.step_bytes, self.size)
        self.period_vectors = self.step_bytes * self.period_steps // self.size
        # Sums in flight: of dots, one waits five cycles for the last one into its register.
        wanted = 8 if self.p.row_sums_cost.total == 1 else 4
        step_vectors = -(-self.step_bytes // self.size)
        most_vectors = self.p.isa.registers - _REGISTERS_OF_ROW_SUMS
        lanes_saved = (self.period_vectors - step_vectors) * self.size // 4
        vectors_added = step_vectors - self.step_bytes / self.size  # by a step
        if self.period_vectors > most_vectors or lanes_saved > _USUAL_STEPS * vectors_added:
            self.period_steps, self.period_vectors = 1, step_vectors
        self.step_by_step = self.period_vectors > most_vectors
        self.periods = 1
        while not self.step_by_step and self.periods * self.period_vectors < wanted:
            self.periods *= 2

    @cached_property
    def vectors(self) -> int:
        return self.periods * self.period_vectors

    @cached_property
    def steps(self) -> list[int]:
        """Steps at a time: as many as there are vectors for, and the numbers that the rest is split
        into."""
        most = self.periods * self.period_steps
        return [most >> bit for bit in range(most.bit_length())]

    @cached_property
    def groups(self) -> list[range]:
        """The vectors of a step whose sums are in registers at a time."""
        at_a_time = self.p.isa.registers // 4
        return [range(first, min(first + at_a_time, self.vectors)) for first in range(0, self.vectors, at_a_time)]

    def pieces(self, steps: int) -> list[tuple[str, str]]:
        """Loads, and sums with what they load."""
        period_bytes = self.period_steps * self.step_bytes
        found = []
        for first in range(0, steps * self.step_bytes, period_bytes):
            end = min(first + period_bytes, steps * self.step_bytes)
            found += [self._piece(len(found) + number, at, min(self.size, end - at))
                      for number, at in enumerate(range(first, end, self.size))]
        return found

    def piece(self, vector: int) -> tuple[str, str]:
        """The same of a vector of one step."""
        at = vector * self.size
        return self._piece(vector, at, min(self.size, self.step_bytes - at))

    def _piece(self, vector: int, at: int, size: int) -> tuple[str, str]:
        load = f"load_{self.size * 8}<{size}>({_offset('from', at)})"
        assert self.p.row_sums is not None
        sum = self.p.row_sums.format(sums=f"sums_{vector}", x=f"rows_{vector}")
        return load, f"in_order({sum})" if self.step_by_step else sum

    def folded(self) -> list[tuple[str, str]]:
        """Sums of the same lanes added to the first ones."""
        assert self.p.add is not None
        return [(f"sums_{v % self.period_vectors}",
                 self.p.add.format(a=f"sums_{v % self.period_vectors}", b=f"sums_{v}"))
                for v in range(self.period_vectors, self.vectors)]

    @cached_property
    def row_lanes(self) -> int:
        return self.plan.units * self.p.lhs_unit_bytes // 4

    @cached_property
    def lanes(self) -> int:
        """Of the vectors of a period, the first ones: all that belong to rows."""
        return self.period_steps * self.plan.tile.m0 * self.row_lanes


# ---------------------------------------------------------------- a tile

@dataclass(frozen=True)
class TileSource:
    """What the template reads of one tile."""

    plan: Plan
    on_decoded_rhs: TileSource | None = None  # the same tile where an op has decoded the RHS
    on_decoded_lhs: TileSource | None = None  # or staged the LHS
    abreast: TileSource | None = None  # on several RHS panels at once, if only on those from memory
    abreast_in_caches: bool = False

    @cached_property
    def p(self) -> Primitive:
        return self.plan.primitive

    @cached_property
    def shapes(self) -> list[BlockShape]:
        shapes = dict.fromkeys((b.rows, b.columns, b.sums) for b in self.plan.blocks)
        return [BlockShape(self.plan, *shape) for shape in shapes]

    @cached_property
    def lhs_stage(self) -> LhsStage:
        return LhsStage(self.plan)

    @cached_property
    def rhs_stage(self) -> RhsStage:
        return RhsStage(self.plan)

    @cached_property
    def row_sums(self) -> RowSums:
        return RowSums(self.plan)

    def sum_rows(self, steps: str) -> str:
        """Before the K loops."""
        assert not (self.plan.on_decoded_lhs and self.runs_in_parts), "lhs_panel is of all steps"
        panel = "static_cast<const char*>(lhs_panel)" if self.plan.on_decoded_lhs else "lhs"
        if not self.plan.sums_panel:
            return f"sum_rows_ahead(row_sums, {panel}, {steps})"
        assert self.p.panel_row_sums is not None
        bits = 8 * self.p.isa.vector_bytes
        sums = self.p.panel_row_sums.format(rows=self.plan.tile.m0, panel=panel, steps=steps)
        return f"store_{bits}<{bits // 8}>(row_sums, {self.p.acc_to_int.format(x=sums)})"

    @cached_property
    def takes_row_sums(self) -> bool:
        """Whether a block's function is told what to take off, or where to leave it."""
        return self.p.sums_rows and not (self.plan.sums_while_staging and self.plan.stages_in_block)

    def set1(self, value: str) -> str:
        return set1(self.p.isa, value)

    @cached_property
    def neighbours(self) -> str:
        """Lanes of two vectors, added to their neighbours."""
        even, odd = (self.p.int_to_acc.format(x=x.format(a="a", b="b"))
                     for x in self.p.isa.deinterleave[self.p.lane_bits])
        assert self.p.add is not None
        return self.p.add.format(a=even, b=odd)

    @cached_property
    def lhs_step(self) -> int:
        """Bytes from a k step of what `lhs` is to the next one."""
        return self.plan.row_step if self.plan.on_decoded_lhs else self.panel_step

    @cached_property
    def panel_step(self) -> int:
        """Bytes of a k step of the LHS panel."""
        return self.plan.tile.m0 * self.plan.units * self.p.lhs_unit_bytes

    @cached_property
    def rhs_step(self) -> int:
        return self.plan.tile.n0 * self.plan.units * self.p.rhs_unit_bytes

    @cached_property
    def columns_step(self) -> int:
        """Bytes from a k step of what the blocks are given as RHS to the next one."""
        return self.plan.column_step if self.plan.on_decoded_rhs else self.rhs_step

    @cached_property
    def unit_bytes(self) -> int:
        """From a row's unit to its next one, as the dots read it."""
        return self.p.parts * self.plan.lane_bytes

    def _out_of(self, block: Block) -> str:
        """Where a block's results go, and from one of their rows to the next."""
        column = block.column * _out_bytes(self.plan)
        if self.plan.f32_scratch:
            row_bytes = self.plan.tile.n0 * _out_bytes(self.plan)
            return f"{_offset('sums', block.row * row_bytes + column)}, {row_bytes}"
        row = f"out + {block.row} * row_bytes" if block.row else "out"
        return f"{_offset(row, column)}, row_bytes"

    def lhs_offset(self, block: Block) -> int:
        unit_bytes = self.unit_bytes if self.plan.stages_lhs else self.p.lhs_unit_bytes
        return block.row * self.plan.units * unit_bytes

    def rhs_offset(self, block: Block) -> int:
        if self.plan.reads_vectors:
            return block.column // self.p.operand_lanes * self.p.isa.vector_bytes
        return block.column * self.plan.units * self.p.rhs_unit_bytes

    def arguments(self, block: Block) -> str:
        """Of the call of a block's function."""
        plan = self.plan
        lhs = "staged_lhs" if self.stages_lhs_for_blocks else "lhs"
        rhs = "staged_rhs" if plan.stages_rhs else "rhs"
        found = [self._out_of(block), _offset(lhs, self.lhs_offset(block)), _offset(rhs, self.rhs_offset(block)),
                 self._block_steps, "flags"]
        if self.takes_row_sums:
            found.append(_offset("row_sums", 4 * block.row))
        if plan.panels > 1:
            found.append("context.rhs_panel_bytes")
        if plan.results_lie_apart:
            found.append(f"context.out_panel_stride * {_out_bytes(plan)}")
        return ", ".join(found)

    @cached_property
    def prefetches_beside_dots(self) -> bool:
        """Whether its blocks can: staging does it ahead of them, and several panels are on their way by themselves."""
        return not self.plan.stages_rhs and self.plan.panels == 1

    @cached_property
    def template_parameters(self) -> str:
        """Of a block's function."""
        found = ["int kPrefetchBlocks"] if self.prefetches_beside_dots else []
        if self.p.sums_rows_in_block:
            found.append("int kSummedRows")
        return ", ".join(found)

    def template_arguments(self, block: Block, prefetches: bool, knows_sums: bool) -> str:
        """Of the call of a block's function. Unless their sums are known, the first block sums the rows of all: that
        costs it a dot a step, however many rows there are."""
        found = [self.prefetch_blocks(block) if prefetches else 0] if self.prefetches_beside_dots else []
        if self.p.sums_rows_in_block:
            found.append(self.plan.tile.m0 if block is self.plan.blocks[0] and not knows_sums else 0)
        return f"<{', '.join(map(str, found))}>" if found else ""

    @cached_property
    def stages_lhs_for_blocks(self) -> bool:
        return self.plan.stages_for_blocks and self.plan.stages_lhs

    @cached_property
    def runs_in_parts(self) -> bool:
        """Whether all blocks run on a few steps, then on the next ones, adding to their results. Not where an op keeps
        the sums of their rows: those are of all steps, and would be subtracted with each few. Such blocks prefetch the
        panel behind theirs."""
        prefetches_own = self.shares_prefetch and not self.plan.on_decoded_rhs and not self.plan.shares_row_sums
        return self.plan.stages_for_blocks or prefetches_own or self.decodes_scaled

    @cached_property
    def decodes_scaled(self) -> bool:
        """Whether a block takes only `scaled_steps` at a time, so that its scaled sums stay exact."""
        return any(shape.decodes_scaled for shape in self.shapes)

    @cached_property
    def scaled_steps(self) -> int:
        return SCALED_STEPS

    @cached_property
    def context(self) -> str:
        """What says where to prefetch."""
        return "part" if self.runs_in_parts else "context"

    @cached_property
    def _block_steps(self) -> str:
        return "steps" if self.runs_in_parts else "k1"

    @cached_property
    def shares_prefetch(self) -> bool:
        """Whether all blocks prefetch a part of the RHS: where columns are read more than once, and
        the results can wait in memory while a few steps come in."""
        plan = self.plan
        reread = any(block.row for block in plan.blocks)
        p = plan.primitive
        out_holds_sums = p.acc_rows * p.lanes * _out_bytes(plan) == p.isa.vector_bytes
        return reread and not plan.stages_rhs and (plan.stages_for_blocks or out_holds_sums)

    def prefetch_blocks(self, block: Block) -> int:
        """How many blocks share the prefetching that this one takes part in, 0 if it does not: one
        that is alone prefetches its own columns."""
        if self.shares_prefetch:
            return len(self.plan.blocks)
        return int(block.row == 0)

    def prefetched_step(self, shape: BlockShape) -> str:
        """The bytes of a step that a block of this shape prefetches, or takes part in prefetching."""
        step_bytes = self.rhs_step if self.shares_prefetch else shape.step_bytes
        return f"prefetched_bytes({step_bytes}, {shape.rows})"

    def prefetch_start(self, block: Block) -> str:
        blocks = self.prefetch_blocks(block)
        if blocks == 0:
            return "{}"
        fetching = [b for b in self.plan.blocks if self.prefetch_blocks(b)]
        arguments = f"{self._block_steps}, {fetching.index(block)}, {self.context}"
        if self.plan.on_decoded_rhs:
            return f"fetch_start<{len(fetching)}>(rhs, {arguments})"
        prefetched = self.prefetched_step(BlockShape(self.plan, block.rows, block.columns, block.sums))
        rhs = "rhs" if self.shares_prefetch else _offset("rhs", self.rhs_offset(block))
        return f"prefetch_start<{blocks}, {self.rhs_step}, {len(fetching)}, {prefetched}>({rhs}, {arguments})"

    @cached_property
    def out_bytes(self) -> int:
        """Of an element of OUT."""
        return BITS[self.p.type.out] // 8


def _in_library(plan: Plan) -> TileSource:
    abreast = plan_abreast_from_memory(plan)
    forms = (plan_on_decoded_rhs(plan), plan_on_decoded_lhs(plan), abreast)
    return TileSource(plan, *(TileSource(form) if form else None for form in forms),
                      abreast_in_caches=abreast is not None and gains_in_caches(plan, abreast))


def emit(plans: Iterable[Plan], in_library: bool = False) -> str:
    """One source file with the tiles of these plans, all of one ISA. Those in the library are called by ops, too,
    which may have an operand decoded or staged once for several, or one of them take several RHS panels."""
    sources = [_in_library(plan) if in_library else TileSource(plan) for plan in plans]
    includes = {i for s in sources for i in s.p.isa.includes}
    arch, = {s.p.isa.arch for s in sources}
    return TEMPLATES.get_template("mmt4d.cc.j2").render(
        tiles=sources, in_library=in_library, arch=arch, includes=sorted(includes))
