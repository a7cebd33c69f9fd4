"""Plans carried out in Python on integers equal the plain sum of products, for random tiles."""

from __future__ import annotations

import random
import re
import struct
import unittest
from collections import Counter
from dataclasses import fields
from functools import cached_property
from itertools import product
from typing import Callable, Iterator

from generator.emit import BlockShape, LhsStage, TileSource
from generator.isas import primitives
from generator.model import ARCHS, BITS, MAX_K0, Primitive, Tile
from generator.plan import Plan, make_plan, plan_on_decoded_lhs, plan_on_decoded_rhs
from generator.requests import parse_line
from generator.select import choose_primitive
from tests.generator.support import draw_tiles, seeds_and_main, strata

SEEDS = [1]
MOST_ELEMENTS = 1500  # of OUT: Python takes its time

Unit = tuple[int, ...]
Dot = tuple[int, int, Unit, Unit]  # row and lane of the accumulators, and what is added there


def _range(element: str) -> tuple[int, int]:
    """Of its values, as far as the types that are not integers are concerned small ones."""
    if element[0] not in "su":
        return -3, 3
    bits = BITS[element]
    return (0, 2**bits - 1) if element[0] == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)


class Machine:
    """A plan, carried out on panels that are lists of units in memory order."""

    def __init__(self, plan: Plan, lhs: list[Unit], rhs: list[Unit], out: list[int]) -> None:
        self.plan, self.p, self.source = plan, plan.primitive, TileSource(plan)
        self.lhs, self.rhs, self.out = lhs, rhs, out
        self.writes: Counter[int] = Counter()  # of the last chunk

    def run(self, k1: int, accumulate: bool) -> None:
        plan, p, tile = self.plan, self.p, self.plan.tile
        self.first_k = 0
        if p.sums_rows_before:
            for row in range(tile.m0):
                units = [self.lhs[(step * tile.m0 + row) * plan.units + unit]
                         for step in range(k1) for unit in range(plan.units)]
                for column in range(tile.n0):
                    at = row * tile.n0 + column
                    self.out[at] = (self.out[at] if accumulate else 0) - p.rhs_offset * sum(map(sum, units))
            accumulate = True
        chunk = plan.stage_steps if plan.stages else max(k1, 1)
        step = 0
        while True:
            steps = min(chunk, k1 - step)
            lhs = self.lhs[step * tile.m0 * plan.units:][:steps * tile.m0 * plan.units]
            if plan.stages_beside_dots:
                lhs = self._staged_lhs(lhs, steps)
            rhs = self.rhs[step * tile.n0 * plan.units:][:steps * tile.n0 * plan.units]
            columns = self._staged_rhs(rhs, steps) if plan.reads_vectors else rhs
            self.writes.clear()
            for block in plan.blocks:
                shape = BlockShape(plan, block.rows, block.columns, block.sums)
                row_unit = self.source.lhs_offset(block) // self._row_unit_bytes()
                column_unit = self.source.rhs_offset(block) // self._column_unit_bytes()
                self._block(shape, block.row * tile.n0 + block.column, lhs, row_unit, columns,
                            column_unit, steps, accumulate)
            accumulate = True
            step += steps
            self.first_k += steps * tile.k0
            if step >= k1:
                return

    def _row_unit_bytes(self) -> int:
        return self.source.unit_bytes if self.plan.stages_lhs else self.p.lhs_unit_bytes

    def _column_unit_bytes(self) -> int:
        staged = self.p.isa.vector_bytes // self.p.operand_lanes
        return staged if self.plan.reads_vectors else self.p.rhs_unit_bytes

    def _staged_lhs(self, lhs: list[Unit], steps: int) -> list[Unit]:
        """[step][row, up to whole vectors], of one unit each; parts are their own lanes, wherever these lie."""
        padding = [()] * (self.plan.row_step // self._row_unit_bytes() - self.plan.tile.m0)
        return [unit for step in range(steps)
                for unit in [*lhs[step * self.plan.tile.m0:][:self.plan.tile.m0], *padding]]

    def _staged_rhs(self, rhs: list[Unit], steps: int) -> list[Unit | None]:
        """[step][unit][column, up to whole vectors]."""
        plan, tile = self.plan, self.plan.tile
        width = plan.operand_vectors(tile.n0) * self.p.operand_lanes
        return [rhs[(step * tile.n0 + column) * plan.units + unit] if column < tile.n0 else None
                for step in range(steps) for unit in range(plan.units) for column in range(width)]

    def _parts(self, unit: Unit, offset: int) -> list[Unit]:
        return [tuple(unit[k] + offset for k in part) for part in self.p.k_order]

    def _block(self, shape: BlockShape, out: int, lhs: list[Unit], row_unit: int,
               columns: list, column_unit: int, steps: int, accumulate: bool) -> None:
        plan, p, tile = self.plan, self.p, self.plan.tile
        lanes, spread = p.lanes, plan.spread
        width = shape.vectors * lanes
        acc = [[0] * width for _ in range(shape.acc_rows)]
        last_k = [[-1] * width for _ in range(shape.acc_rows)]
        row_step = plan.row_step // self._row_unit_bytes()
        column_step = plan.column_step // plan.staged_parts // self._column_unit_bytes()
        dots = self._dots_of_vectors if p.vectors_of_rows else self._dots_of_broadcasts
        for step in range(steps):
            for dot in range(plan.dots):
                at = step * column_step + dot * (column_step // plan.dots) + column_unit
                for row, lane, a, b in dots(shape, dot, lhs[step * row_step + row_unit:], columns[at:]):
                    parts = zip(self._parts(a, 0), self._parts(b, p.rhs_offset))
                    acc[row][lane] += sum(x * y for part in parts for x, y in zip(*part))
                    self._check_order(last_k[row], lane, step, dot)
        for row in range(shape.rows):
            of_acc = row % p.acc_rows * p.acc_columns
            sums = [acc[row // p.acc_rows][first + of_acc + column]
                    for first in range(0, width, lanes) for column in range(p.acc_columns)]
            while len(sums) < shape.out_vectors * p.acc_columns * spread:
                sums = sums + [0] * lanes
            for _ in range(spread.bit_length() - 1):
                sums = [a + b for a, b in zip(sums[::2], sums[1::2])]
            start = 0
            if p.sums_rows_in_block:
                start -= p.rhs_offset * sum(sum(lhs[step * row_step + row_unit + row])
                                            for step in range(steps))
            for column in range(shape.columns):
                at = out + row * tile.n0 + column
                self.out[at] = (self.out[at] if accumulate else 0) + start + sums[column]
                self.writes[at] += 1

    def _dots_of_broadcasts(self, shape: BlockShape, dot: int, lhs: list[Unit],
                            columns: list) -> Iterator[Dot]:
        spread = self.plan.spread
        for row in range(shape.rows):
            for lane in range(shape.columns * spread):
                yield row, lane, lhs[row * self.plan.units + dot + lane % spread], columns[lane]

    def _dots_of_vectors(self, shape: BlockShape, dot: int, lhs: list[Unit],
                         columns: list) -> Iterator[Dot]:
        """Lanes of rows by lanes of columns, and of those that are not there nothing is stored."""
        plan, p = self.plan, self.p
        lanes = p.operand_lanes
        there = plan.operand_vectors(shape.columns) * lanes if plan.reads_vectors else (
            shape.columns * plan.spread)
        for vector in shape.row_vectors(dot):
            assert max(vector.units) + max(vector.repeated - 1, 0) < shape.rows * plan.units
            rows = [lhs[vector.units[0] + lane % vector.repeated] for lane in range(lanes)
                    ] if vector.repeated else [lhs[unit] for unit in vector.units]
            for acc_row, lane in vector.rows:
                for at in range(shape.vectors * p.lanes):
                    row_of_acc, column = divmod(at % p.lanes, p.acc_columns)
                    place = at // p.lanes * p.acc_columns + column
                    if p.acc_rows > 1:
                        from_rows = row_of_acc
                    else:
                        from_rows = place % lanes if vector.repeated else lane
                    b = columns[place] if place < there else None
                    if b is not None and from_rows < len(rows):
                        yield acc_row, at, rows[from_rows], b

    def _check_order(self, last_k: list[int], lane: int, step: int, dot: int) -> None:
        """Chains keep the order of k."""
        if self.p.add is None:
            k = self.first_k + step * self.plan.tile.k0 + dot * self.p.k
            for part in self.p.k_order:
                assert k + part[0] > last_k[lane], self.plan.tile.symbol
                last_k[lane] = k + part[0]


def _small(tile: Tile) -> bool:
    return tile.m0 * tile.n0 <= MOST_ELEMENTS


def _primitives() -> list[Primitive]:
    return [p for arch in ARCHS for of_level in primitives(arch).values() for p in of_level]


class InterpreterTest(unittest.TestCase):
    def test_plans_multiply(self) -> None:
        for seed, arch in product(SEEDS, ARCHS):
            numbers = random.Random(seed)
            for tile in filter(_small, draw_tiles(seed, len(strata(arch)), arch)):
                plan = make_plan(tile, choose_primitive(tile))
                few = 3 if tile.m0 * tile.n0 * tile.k0 > 200 else 40
                for k1, accumulate in ((0, False), (numbers.randint(1, few), True)):
                    with self.subTest(tile=tile.symbol, k1=k1):
                        self._check(plan, k1, accumulate, numbers)

    def test_plans_multiply_on_a_decoded_rhs(self) -> None:
        types = set()
        for p, (m0, n0) in product(_primitives(), ((4, 16), (6, 16), (7, 35))):
            tile = Tile(p.type, m0, n0, p.k, p.isa.arch, p.isa.name, p.numerics.endswith("f32acc"))
            plan = plan_on_decoded_rhs(make_plan(tile, p))
            if plan:
                types.add(p.type.name)
                self._check(plan, 0, True, random.Random(1))
                self._check(plan, 5, True, random.Random(2))
                self._check(_Chunked.of(plan), 5, False, random.Random(3))
        self.assertLessEqual({"f16f16f32", "bf16bf16f32", "s8s8s32", "s8s4s32", "s16u4s32"}, types)

    def test_plans_multiply_on_a_decoded_lhs(self) -> None:
        types = set()
        for p, (m0, n0), units in product(_primitives(), ((4, 16), (6, 16), (13, 35)), (1, 2)):
            if p.k * units > MAX_K0:
                continue
            tile = Tile(p.type, m0, n0, p.k * units, p.isa.arch, p.isa.name, p.numerics.endswith("f32acc"))
            plan = plan_on_decoded_lhs(make_plan(tile, p))
            if plan:
                types.add(p.type.name)
                self._check(plan, 0, True, random.Random(1))
                self._check(plan, 5, True, random.Random(2))
        self.assertLessEqual({"f16f16f32", "bf16bf16f32", "s8s8s32", "u8s8s32", "s8s4s32"}, types)

    def test_chunks_carry_on(self) -> None:
        """More steps than are staged at a time."""
        for p, units in product(_primitives(), (1, 3)):
            if p.k * units > MAX_K0:
                continue
            tile = Tile(p.type, 2, 3, p.k * units, p.isa.arch, p.isa.name, p.numerics.endswith("f32acc"))
            plan = make_plan(tile, p)
            if plan.stages:
                self._check(_Chunked.of(plan), 5, False, random.Random(1))
                self._check(_Chunked.of(plan), 5, True, random.Random(2))

    def _check(self, plan: Plan, k1: int, accumulate: bool, numbers: random.Random) -> None:
        tile, p = plan.tile, plan.primitive

        def panel(rows: int, element: str) -> list[Unit]:
            low, high = _range(element)
            return [tuple(numbers.randint(low, high) for _ in range(p.k))
                    for _ in range(k1 * rows * plan.units)]

        lhs, rhs = panel(tile.m0, tile.type.lhs), panel(tile.n0, tile.type.rhs)
        out = [numbers.randint(-9, 9) for _ in range(tile.m0 * tile.n0)]
        wanted = [out[i] if accumulate else 0 for i in range(len(out))]
        for row in range(tile.m0):
            for column in range(tile.n0):
                for step in range(k1):
                    for unit in range(plan.units):
                        a = lhs[(step * tile.m0 + row) * plan.units + unit]
                        b = rhs[(step * tile.n0 + column) * plan.units + unit]
                        wanted[row * tile.n0 + column] += sum(x * y for x, y in zip(a, b))
        machine = Machine(plan, lhs, rhs, out)
        machine.run(k1, accumulate)
        self.assertEqual(machine.out, wanted, tile.symbol)
        self.assertEqual(machine.writes, Counter(range(len(out))), tile.symbol)


class _Chunked(Plan):
    """Stages two steps at a time."""

    @cached_property
    def stage_steps(self) -> int:
        return 2

    @classmethod
    def of(cls, plan: Plan) -> _Chunked:
        return cls(**{field.name: getattr(plan, field.name) for field in fields(Plan)})


# ---------------------------------------------------------------- what decode and staging do

def _evaluate(expression: str, x: object, functions: dict) -> object:
    """A C++ expression of intrinsics."""
    text = re.sub(r"static_cast<int>\((\w+)\)", r"\1", expression.format(x="x"))
    text = re.sub(r"\b_mm\d*_(\w+?)(?:_si\d+)?\(", r"mm_\1(", text)
    names = {f"mm_{name}": function for name, function in functions.items()}
    names |= functions
    # It only keeps the compiler from changing what makes its argument.
    names["in_order"] = lambda value: value
    return eval(text, {"__builtins__": {}}, {**names, "x": x})  # of our own text


def _ternary(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
               for i in range(32))


def _of_halves(lane: int, result: Callable[[int], int]) -> int:
    """Both 16 bits of a lane apart."""
    return sum((result(lane >> shift & 0xFFFF) & 0xFFFF) << shift for shift in (0, 16))


def _shuffled(lane: int, control: tuple[int, ...]) -> int:
    """The first lane of a vector, by its own bytes."""
    return sum((lane >> 8 * byte & 0xFF) << 8 * place for place, byte in enumerate(control[:4]) if byte >= 0)


# On a 32-bit lane.
_LANE = {
    "setr_epi8": lambda *control: control, "broadcastsi128": lambda control: control,
    "broadcast_i32x4": lambda control: control, "shuffle_epi8": _shuffled, "or": lambda a, b: a | b,
    "mulhi_epu16": lambda a, b: sum((a >> i & 0xFFFF) * (b >> i & 0xFFFF) >> 16 << i for i in (0, 16)),
    "and": lambda a, b: a & b, "andnot": lambda a, b: ~a & b, "xor": lambda a, b: a ^ b, "set1_epi32": lambda a: a,
    "srli_epi32": lambda a, n: a >> n, "slli_epi32": lambda a, n: a << n & 0xFFFFFFFF,
    "srli_epi16": lambda a, n: _of_halves(a, lambda half: half >> n),
    "slli_epi16": lambda a, n: _of_halves(a, lambda half: half << n),
    "srai_epi16": lambda a, n: _of_halves(a, lambda half: (half ^ 0x8000) - 0x8000 >> n),
    "ternarylogic_epi32": _ternary, "upper_halves": lambda a: a & 0xFFFF0000}


def _words(b: bytes) -> list[int]:
    return [int.from_bytes(b[i:i + 2], "little", signed=True) for i in range(0, len(b), 2)]


def _unpack(a: bytes, b: bytes, size: int) -> bytes:
    return b"".join(a[i:i + size] + b[i:i + size] for i in range(0, 8, size))


# On 16 bytes.
_VECTOR = {
    "setr_epi8": lambda *control: bytes(control), "broadcastsi128": lambda v: v,
    "broadcast_i32x4": lambda v: v,
    "shuffle_epi8": lambda v, control: bytes(v[i] for i in control),
    "unpacklo_epi8": lambda a, b: _unpack(a, b, 1), "unpacklo_epi16": lambda a, b: _unpack(a, b, 2),
    "srli": lambda v, n: v[n:] + bytes(n),
    "srai_epi16": lambda v, n: b"".join((w >> n).to_bytes(2, "little", signed=True)
                                        for w in _words(v))}


class DecodeTest(unittest.TestCase):
    """Of units of several parts, whose elements change places."""

    def _of_parts(self, vectors_of_rows: bool) -> list[Primitive]:
        found = [p for p in _primitives() if p.parts > 1 and p.vectors_of_rows == vectors_of_rows]
        self.assertTrue(found)
        return found

    def test_orders_are_permutations(self) -> None:
        for p in _primitives():
            self.assertEqual(sorted(k for part in p.k_order for k in part), list(range(p.k)))
            if p.parts == 1:
                self.assertEqual(p.k_order, (tuple(range(p.k)),))

    def test_columns(self) -> None:
        numbers = random.Random(1)
        for p in self._of_parts(vectors_of_rows=False):
            bits = BITS[p.type.rhs]
            field = 32 // len(p.k_order[0])
            unscaled = (0,) * p.parts
            ways = [*zip(p.k_order, p.decode, unscaled), *zip(p.k_order, p.decode_for_rows, unscaled),
                    *zip(p.k_order, p.scaled_decode, p.scaled_bits),
                    *zip(p.on_decoded_columns.k_order, p.decode_in_order, unscaled)]
            for _ in range(100):
                lane = numbers.getrandbits(32)
                elements = [lane >> bits * k & (1 << bits) - 1 for k in range(p.k)]
                for part, steps, scaled_bits in ways:
                    x: object = lane
                    for step in steps:
                        x = _evaluate(step, x, _LANE)
                    for place, k in enumerate(part):
                        wanted = elements[k]
                        if p.type.rhs[0] == "s":
                            wanted = (wanted ^ 1 << bits - 1) - (1 << bits - 1) + p.rhs_offset
                        if p.type.rhs == "bf16":
                            wanted <<= 16
                        wanted <<= scaled_bits
                        got = x >> field * place & (1 << field) - 1
                        self.assertEqual(got, wanted & (1 << field) - 1, f"{p.isa.name} {p.type.name}")

    def test_rows(self) -> None:
        numbers = random.Random(1)
        for p in self._of_parts(vectors_of_rows=False):
            if p.type.lhs == "bf16":  # widened in order
                continue
            size = BITS[p.type.lhs] // 8
            field = 4 // len(p.k_order[0])
            unit = numbers.randbytes(p.lhs_unit_bytes)
            memory = unit * (16 // len(unit)) if field == size else unit + bytes(16 - len(unit))
            x: object = memory
            for step in p.stage_lhs:
                x = _evaluate(step, x, _VECTOR)
            got = [int.from_bytes(x[i:i + field], "little", signed=True)
                   for i in range(0, 4 * p.parts, field)]
            wanted = [int.from_bytes(unit[size * k:size * k + size], "little", signed=True)
                      for part in p.k_order for k in part]
            self.assertEqual(got, wanted, f"{p.isa.name} {p.type.name}")

    def test_vectors(self) -> None:
        """Of units as they lie, of columns and of rows, on Arm."""
        numbers = random.Random(1)
        for p in _primitives():
            if not p.vectors_of_rows or p.numerics != "exact":
                continue
            for element, unit_bytes, decode, offset in (
                    (p.type.rhs, p.rhs_unit_bytes, p.decode, p.rhs_offset),
                    (p.type.lhs, p.lhs_unit_bytes, p.decode_rows, 0)):
                memory = numbers.randbytes(max(16, p.operand_lanes * unit_bytes))
                vectors = [memory[i:i + 16] for i in range(0, len(memory), 16)]
                for part, steps in zip(p.k_order, decode):
                    names = {"x": vectors[0], "x0": vectors[0], "x1": vectors[-1]}
                    for step in steps:
                        names = {"x": eval(step.format(**{name: name for name in names}),
                                           {"__builtins__": {}}, {**_NEON, **names})}  # our own text
                    wanted = [_elements(memory, element, p.k, unit)[k] + offset
                              for unit in range(p.operand_lanes) for k in part]
                    size = 16 // len(wanted)
                    signed = element[0] == "s" and not offset
                    got = [int.from_bytes(names["x"][i:i + size], "little", signed=signed)
                           for i in range(0, 16, size)]
                    self.assertEqual(got, wanted, f"{p.isa.name} {p.type.name} {element}")


def _of_lanes(v: bytes, result: Callable[[int], int]) -> bytes:
    """Of each 32 bits."""
    return b"".join((result(int.from_bytes(v[i:i + 4], "little")) & 0xFFFFFFFF).to_bytes(4, "little")
                    for i in range(0, len(v), 4))


# On whole vectors.
_STAGED: dict = {
    "slli_epi32": lambda v, n: _of_lanes(v, lambda lane: lane << n),
    "and": lambda v, mask: _of_lanes(v, lambda lane: lane & mask), "set1_epi32": lambda a: a,
    "castps": lambda v: v, "bf16_to_f32": lambda v: b"".join(bytes(2) + v[i:i + 2] for i in range(0, len(v), 2)),
    "f16_to_f32": lambda v: b"".join(struct.pack("<f", *struct.unpack("<e", v[i:i + 2])) for i in range(0, len(v), 2)),
    "cvtepu8_epi16": lambda v: b"".join(bytes((byte, 0)) for byte in v),
    "cvtepi8_epi16": lambda v: b"".join(struct.pack("<h", *struct.unpack("<b", v[i:i + 1])) for i in range(len(v))),
    "setr_epi8": lambda *control: control, "broadcast_i32x4": lambda control: control,
    "broadcastsi128": lambda control: control,
    "shuffle_epi8": lambda v, control: bytes(v[i // 16 * 16 + control[i % 16]] for i in range(len(v)))}


def _widened(element: str, value: bytes, size: int) -> bytes:
    """As dots take it, in `size` bytes."""
    if len(value) == size:
        return value
    if element == "f16":
        return struct.pack("<f", *struct.unpack("<e", value))
    if element == "bf16":
        return bytes(size - len(value)) + value
    return int.from_bytes(value, "little", signed=element[0] == "s").to_bytes(size, "little", signed=True)


class StageTest(unittest.TestCase):
    """Of the emitted statements that stage a step beside dots, on a panel's bytes."""

    LINES = ("bf16bf16f32 13x32x2 avx512_base", "bf16bf16f32 14x32x2 avx512_base", "bf16bf16f32 16x16x2 avx512_base",
             "bf16bf16bf16 13x32x2 avx512_base f32acc", "bf16bf16f32 6x16x2 avx2_fma",
             "bf16bf16f32 8x8x2 avx2_fma", "s8s8s32 6x16x2 avx2_fma", "u8s8s32 7x8x2 avx2_fma",
             "f16f16f32 8x8x1 avx2_fma",
             "bf16bf16f32 6x16x1 avx2_fma", "s8s4s32 8x8x8 avx2_fma", "s8s4s32 8x8x8 avx_vnni",
             "s8s4s32 14x16x8 avx512_vnni", "s8s4s32 16x16x8 avx512_vnni")

    def test_steps_are_there_for_their_dots(self) -> None:
        numbers = random.Random(1)
        for line in self.LINES:
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plain = make_plan(tile, choose_primitive(tile))
            plans = [plan for plan in (plain, plan_on_decoded_rhs(plain)) if plan and plan.stages_beside_dots]
            self.assertTrue(plans, line)
            for plan in plans:
                for k1 in (1, 2, plan.stage_steps, plan.stage_steps + 1, 2 * plan.stage_steps - 1,
                           2 * plan.stage_steps, 3 * plan.stage_steps + 1):
                    with self.subTest(tile=line, k1=k1):
                        self._check(plan, k1, numbers)

    def _check(self, plan: Plan, k1: int, numbers: random.Random) -> None:
        stage, part_steps = LhsStage(plan), plan.stage_steps
        panel = numbers.randbytes(k1 * plan.tile.m0 * plan.primitive.lhs_unit_bytes)
        memory = bytearray(numbers.randbytes(2 * part_steps * plan.row_step))
        if plan.parts_lie_apart:
            memory[part_steps * plan.row_step:] = bytes(part_steps * plan.row_step)

        def run(step: int, statements: Callable[[bool], list[str]]) -> None:
            is_last = step + 1 == k1 and stage.loads_past_step
            self._run(statements(is_last), panel[step * len(panel) // k1:], memory,
                      step % (2 * part_steps) * plan.row_step)

        for step in range(min(k1, part_steps)):
            run(step, stage.widened)
        for step in range(k1):
            if step + part_steps < k1:
                run(step + part_steps, stage.stored if plan.parts_lie_apart else stage.widened)
            at = step % (2 * part_steps) * plan.row_step
            for row in range(plan.tile.m0):
                unit = panel[(step * plan.tile.m0 + row) * plan.primitive.lhs_unit_bytes:]
                for part, elements in enumerate(plan.primitive.k_order):
                    size, field = BITS[plan.tile.type.lhs] // 8, plan.lane_bytes // len(elements)
                    wanted = b"".join(_widened(plan.tile.type.lhs, unit[k * size:][:size], field) for k in elements)
                    lane = at + plan.row_at(row, part)
                    self.assertEqual(bytes(memory[lane:lane + plan.lane_bytes]), wanted, f"step {step} row {row}")

    def _run(self, lines: list[str], panel: bytes, memory: bytearray, to: int) -> None:
        values: dict[str, bytes] = {}
        for line in lines:
            if store := re.fullmatch(r"store_(\w+?)(?:<\d+>)?\(to(?: \+ (\d+))?, (\w+)\);", line):
                at, value = to + int(store[2] or 0), values[store[3]]
                if store[1] in ("low_halves", "high_halves"):
                    upper = store[1] == "high_halves"
                    for lane in range(0, len(value), 4):
                        memory[at + lane + 2:at + lane + 4] = value[lane + 2 * upper:][:2]
                else:
                    self.assertLessEqual(at + len(value), len(memory), "is in the stage")
                    memory[at:at + len(value)] = value
                continue
            statement = re.fullmatch(r"const auto (\w+) = (.*);", line)
            assert statement, line
            name, text = statement.groups()
            if load := re.search(r"load_(\d+)<(\d+)>\(from(?: \+ (\d+))?\)", text):
                first, size = int(load[3] or 0), int(load[2])
                self.assertLessEqual(first + size, len(panel), "is in the panel")
                x = panel[first:first + size].ljust(int(load[1]) // 8, b"\0")
                text = text.replace(load[0], "{x}")
            else:
                operand = next(operand for operand in values if re.search(rf"\b{operand}\b", text))
                x, text = values[operand], re.sub(rf"\b{operand}\b", "{x}", text)
            values[name] = _evaluate(text, x, _STAGED)


def _elements(memory: bytes, element: str, k: int, unit: int) -> list[int]:
    bits = BITS[element]
    number = int.from_bytes(memory, "little") >> unit * k * bits
    found = [number >> i * bits & (1 << bits) - 1 for i in range(k)]
    sign = 1 << bits - 1 if element[0] == "s" else 0
    return [(x ^ sign) - sign for x in found]


def _lanes(v: bytes, lane: str) -> list[int]:
    size = int(lane[1:]) // 8
    return [int.from_bytes(v[i:i + size], "little", signed=lane[0] == "s")
            for i in range(0, len(v), size)]


def _vector(lanes: list[int], lane: str) -> bytes:
    bits = int(lane[1:])
    return b"".join((x & (1 << bits) - 1).to_bytes(bits // 8, "little") for x in lanes)


_NEON: dict = {"vandq_u8": lambda a, b: bytes(x & y for x, y in zip(a, b)),
               "veorq_u8": lambda a, b: bytes(x ^ y for x, y in zip(a, b)),
               "vdupq_n_u8": lambda x: bytes([x] * 16)}
for _lane in ("u8", "s8", "u16", "s16"):
    _wide = f"{_lane[0]}{2 * int(_lane[1:])}"
    _NEON |= {
        f"vreinterpretq_{_lane}_u8": lambda v: v, f"vreinterpretq_u8_{_lane}": lambda v: v,
        f"vget_low_{_lane}": lambda v: v[:8],
        f"vmovl_{_lane}": lambda v, lane=_lane, wide=_wide: _vector(_lanes(v, lane), wide),
        f"vshrq_n_{_lane}": lambda v, n, lane=_lane: _vector([x >> n for x in _lanes(v, lane)], lane),
        f"vshlq_n_{_lane}": lambda v, n, lane=_lane: _vector([x << n for x in _lanes(v, lane)], lane),
        f"vuzp1q_{_lane}": lambda a, b, lane=_lane: _vector(_lanes(a + b, lane)[::2], lane),
        f"vuzp2q_{_lane}": lambda a, b, lane=_lane: _vector(_lanes(a + b, lane)[1::2], lane)}


if __name__ == "__main__":
    seeds_and_main(SEEDS)
