"""Plans and the code made of them, for random tiles: registers, coverage of the output, names."""

from __future__ import annotations

import re
import unittest
from collections import Counter
from functools import cache
from itertools import product
from typing import Sequence

from generator import library
from generator.copy_tile import CopyTile
from generator.emit import emit
from generator.model import ARCHS, BITS, RequestError, Tile
from generator.plan import (PANELS_ABREAST, Plan, make_plan, plan_abreast, plan_abreast_from_memory,
                            plan_on_decoded_lhs, plan_on_decoded_rhs, reloads_columns)
from generator.requests import parse_line
from generator.select import choose_primitive
from generator.tiles import generated_rows
from tests.generator.support import SIZE_CLASSES, draw_tiles, seeds_and_main, strata

SEEDS = [1, 2]

_BLOCK = re.compile(r"^(?:UK_NOINLINE )?void (block_\d+x\d+)\(char\* out, .*?^}$", re.MULTILINE | re.DOTALL)
# Where there are calls with and without prefetching.
_PREFETCHING = re.compile(r"^ +if \(flags & UK_MMT4D_PREFETCH_RHS\) \{$.*?^ +\} else \{$",
                          re.MULTILINE | re.DOTALL)
_AT = r"(?: \+ (?:(\d+) \* )?(row_bytes))?(?: \+ (\d+) \* out_panel_bytes)?(?: \+ (\d+))?, "
_CALL = re.compile(r"^ +(block_\d+x\d+)(?:<0(?:, \d+)?>)?\((?:out|sums)" + _AT, re.MULTILINE)
_STORE = re.compile(r"store(?:_product)?_\d+<(\d+)>\(out" + _AT)
_NEXT_ROW = re.compile(r"out = next_row\(out, (?:(\d+) \* )?row_bytes\)")


@cache
def _plans() -> list[Plan]:
    return [make_plan(tile, choose_primitive(tile)) for seed in SEEDS for arch in ARCHS
            for tile in draw_tiles(seed, len(strata(arch)), arch)]


@cache
def _plans_of_grid() -> list[Plan]:
    return [make_plan(row.tile, choose_primitive(row.tile)) for row in generated_rows("x86_64")
            if isinstance(row.tile, Tile)]


@cache
def _plans_on_decoded_rhs() -> list[Plan]:
    return [plan for plan in map(plan_on_decoded_rhs, [*_plans(), *_plans_of_grid()]) if plan]


@cache
def _plans_abreast() -> list[Plan]:
    return [plan for plan in map(plan_abreast_from_memory, [*_plans(), *_plans_of_grid()]) if plan]


class DrawTest(unittest.TestCase):
    def test_covers_every_stratum_and_size(self) -> None:
        for seed, arch in product(SEEDS, ARCHS):
            tiles = draw_tiles(seed, len(strata(arch)), arch)
            drawn = {(t.type, t.isa, t.f32acc) for t in tiles}
            self.assertEqual(drawn, {(s.tile.type, s.tile.isa, s.tile.f32acc) for s in strata(arch)})
            for sizes in SIZE_CLASSES:
                self.assertTrue(set(sizes) & {t.m0 for t in tiles}, f"M0 of {sizes}, seed {seed}")
                self.assertTrue(set(sizes) & {t.n0 for t in tiles}, f"N0 of {sizes}, seed {seed}")


class PlanTest(unittest.TestCase):
    def test_blocks_fit_the_registers(self) -> None:
        for plan in [*_plans(), *_plans_on_decoded_rhs(), *_plans_abreast()]:
            for block in plan.blocks:
                self.assertLessEqual(plan.registers_of(block), plan.primitive.isa.registers,
                                     plan.tile.symbol)

    def test_sums_that_would_wait_are_split_if_their_order_is_free(self) -> None:
        def sums(name: str, shape: str, isa: str) -> list[int]:
            tile = parse_line(f"mmt4d {name} {shape} {isa}").tile("x86_64")
            return [block.sums for block in make_plan(tile, choose_primitive(tile)).blocks]

        for name, shape, isa, expected in (
                ("u8s8s32", "1x16x4", "avx512_vnni", [4]), ("u8s8s32", "4x32x4", "avx512_vnni", [2]),
                ("u8s8s32", "16x16x4", "avx512_vnni", [1]), ("s8s4s32", "2x32x8", "avx_vnni", [2, 2]),
                ("s16s16s32", "2x16x2", "avx2_fma", [1]),  # additions wait for a cycle only
                ("u8s8s32", "1x16x8", "avx512_vnni", [1]),  # whose lanes are partial sums
                ("f32f32f32", "1x16x1", "avx512_base", [1]), ("bf16bf16f32", "1x16x2", "avx512_bf16", [1]),
                ("f16f16f16", "1x32x1", "avx512_fp16", [1])):
            self.assertEqual(sums(name, shape, isa), expected, f"{name} {shape} {isa}")

    def test_stages_beside_dots_where_that_fills_vectors(self) -> None:
        for line, alone, decoded in (("bf16bf16f32 13x32x2 avx512_base", True, True),
                                     ("bf16bf16f32 14x32x2 avx512_base", False, True),  # alone it has two blocks
                                     ("bf16bf16f32 9x32x2 avx512_base", False, False),
                                     ("bf16bf16f32 17x16x2 avx512_base", False, False),
                                     ("bf16bf16bf16 13x32x2 avx512_base f32acc", True, False),
                                     ("bf16bf16f32 6x16x2 avx2_fma", True, True),
                                     ("s8s8s32 6x16x2 avx2_fma", True, True),
                                     ("bf16bf16f32 6x16x1 avx2_fma", True, False),
                                     ("f16f16f32 8x8x1 avx2_fma", True, False),
                                     ("f16f16f32 4x16x1 avx2_fma", False, False),
                                     ("f16f16f16 8x8x1 avx2_fma", False, False),  # rounding overlaps by itself
                                     ("f16f16f32 13x32x1 avx512_base", False, False),
                                     ("s8s4s32 13x32x8 avx512_vnni", False, False),
                                     ("s8s4s32 8x8x8 avx_vnni", True, False),
                                     ("s8s4s32 10x8x8 avx_vnni", False, False),  # for want of registers
                                     ("s8s4s32 14x16x8 avx512_vnni", True, False)):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            on_decoded_rhs = plan_on_decoded_rhs(plan)
            found = plan.stages_beside_dots, on_decoded_rhs is not None and on_decoded_rhs.stages_beside_dots
            self.assertEqual(found, (alone, decoded), line)

    def test_columns_are_decoded_ahead_beside_many_rows(self) -> None:
        for line, expected in (("f16f16f32 13x32x1 avx512_base", True), ("f16f16f32 16x32x1 avx512_base", True),
                               ("f16f16f32 14x32x1 avx512_base", False),  # for want of registers
                               ("f16f16f32 6x16x1 avx512_base", False),  # whose dots wait for each other
                               ("s8s8s32 8x16x4 avx512_vnni", False),  # which has two sums of each result
                               ("f16f16f16 16x16x1 avx512_base", False),  # each dot rounds, which overlaps by itself
                               ("bf16bf16bf16 16x16x1 avx512_base", True), ("bf16bf16bf16 5x32x1 avx512_base", True),
                               ("bf16bf16bf16 9x32x1 avx512_base", True),  # in blocks of five and four rows
                               ("bf16bf16f32 13x32x2 avx512_base", False),  # of two parts
                               ("s8s8s32 12x32x4 avx512_vnni", True), ("s8s8s32 9x20x2 avx512_vnni", True),
                               ("s8s8s32 8x16x12 avx512_vnni", False),  # of several dots a step
                               ("u8s8s32 13x32x4 avx512_vnni", False), ("f32f32f32 13x32x1 avx512_base", False),
                               ("f16f16f32 8x8x1 avx2_fma", False)):  # nobody measured it
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            text = emit([plan])
            self.assertEqual("next_columns_0 = " in text, expected, line)
            self.assertEqual(any(plan.decodes_ahead(block.rows, plan.vectors(block.columns), block.sums)
                                 for block in plan.blocks), expected, line)

    def test_what_widens_from_memory_is_issued_as_two_on_cascade_lake(self) -> None:
        for line, vectors in (("s8s8s32 4x32x2 avx512_vnni", 2), ("s8s8s32 4x16x2 avx512_vnni", 1),
                              ("s16s16s32 4x32x2 avx512_vnni", 0), ("f16f16f32 4x32x1 avx512_base", 0)):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            bounds = make_plan(tile, choose_primitive(tile)).bounds
            self.assertEqual(bounds["Cascade Lake"].issue - bounds["Intel"].issue, vectors / 4, line)

    def test_dots_of_one_vector_broadcast_their_rows(self) -> None:
        for line, expected in (("s8s8s32 6x16x2 avx512_vnni", "dpwssd_row("),
                               ("s8s8s32 6x16x4 avx512_vnni", "dpbusd_row("),
                               ("s8s4s32 4x16x8 avx512_vnni", "dpbusd_row("),
                               ("f16f16f32 6x16x1 avx512_base", "fmadd_row("),
                               ("f64f64f64 6x8x1 avx512_base", "fmadd_row("),
                               ("u8s8s32 6x16x4 avx512_vnni", None),  # broadcasts no u8
                               ("s16s16s32 6x16x2 avx512_base", None), ("f32f32f32 6x8x1 avx2_fma", None)):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            text = emit([make_plan(tile, choose_primitive(tile))])
            self.assertEqual("const auto row_0" in text, expected is None, line)
            self.assertEqual(set(re.findall(r"\w+_row\((?=acc)", text)), {expected} if expected else set(), line)
        # Of two vectors each would load its rows anew, and of partial sums a row is more than a lane.
        for line in ("f32f32f32 6x32x1 avx512_base", "s8s8s32 6x8x8 avx512_vnni"):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            self.assertNotIn("_row(acc", emit([make_plan(tile, choose_primitive(tile))]), line)

    def test_rows_of_nibbles_that_are_decoded_once_are_used_as_they_lie(self) -> None:
        for line, stages in (("s8s4s32 13x32x8 avx512_vnni", False), ("s8s4s32 13x32x8 avx512_base", False),
                             ("s8s4s32 6x16x8 avx2_fma", False), ("s16u4s32 6x16x8 avx_vnni", False),
                             ("s16u4s32 4x16x8 sse2", True),  # has no byte shuffle
                             ("s8s4s32 6x16x2 avx2_fma", True)):  # widened
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            on_decoded_rhs = plan_on_decoded_rhs(plan)
            assert on_decoded_rhs, line
            self.assertEqual((plan.stages_lhs, on_decoded_rhs.stages_lhs), (True, stages), line)

    def test_rows_are_staged_once_for_several_tiles_where_that_was_faster(self) -> None:
        for line, expected in (("s8s8s32 4x16x2 avx2_fma", True), ("s8s8s32 3x16x2 avx2_fma", False),
                               ("s8s8s32 4x32x4 avx2_fma", True), ("u8s8s32 16x16x2 avx2_fma", True),
                               ("s8s4s32 4x16x8 avx2_fma", True),
                               ("s8s4s32 17x16x8 avx2_fma", False),  # has no room for the sums of so many
                               ("f16f16f32 4x16x1 avx2_fma", True), ("f16f16f32 3x16x1 avx2_fma", False),
                               ("bf16bf16f32 17x16x2 avx2_fma", True),
                               ("f16f16f16 6x16x1 avx2_fma", False),  # whose OUT holds no sums
                               ("s8s8s32 6x16x3 avx2_fma", False),  # stages columns, too
                               ("s16s16s32 6x16x2 avx2_fma", False), ("s16u4s32 6x16x8 avx2_fma", False),
                               ("f16f16f32 6x32x1 avx512_base", False), ("s8s4s32 6x16x8 avx_vnni", False)):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            self.assertEqual(plan_on_decoded_lhs(plan) is not None, expected, line)

    def test_a_decoded_rhs_leaves_registers_for_larger_blocks(self) -> None:
        def rows(plan: Plan | None) -> list[int]:
            assert plan
            return [block.rows for block in plan.blocks]

        for line, alone, decoded in (("s8s4s32 13x32x8 avx512_vnni", [7, 6], [13]),
                                     ("s8s4s32 6x16x8 avx_vnni", [4, 2], [6])):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            self.assertEqual((rows(plan), rows(plan_on_decoded_rhs(plan))), (alone, decoded), line)

    def test_columns_are_loaded_anew_for_want_of_registers(self) -> None:
        for line, expected in (("bf16bf16f32 6x16x2 avx2_fma", [True]), ("bf16bf16f32 2x32x2 avx2_fma", [True]),
                               ("bf16bf16f32 16x16x2 avx2_fma", [True, False, False]),  # of 6, 5 and 5 rows
                               ("bf16bf16f32 4x16x2 avx2_fma", [False]), ("bf16bf16f32 1x64x2 avx2_fma", [False]),
                               ("bf16bf16f32 6x16x1 avx2_fma", [False]), ("bf16bf16f32 6x8x2 sse2", [False, False])):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            found = [reloads_columns(plan.primitive, block.rows, plan.vectors(block.columns), plan.reads_decoded)
                     for block in plan.blocks]
            self.assertEqual(found, expected, line)

    def test_panels_are_read_abreast_where_sums_would_wait(self) -> None:
        for line, expected in (("f32f32f32 1x16x1 avx2_fma", True), ("f32f32f32 2x16x1 avx2_fma", False),
                               ("f32f32f32 1x64x1 avx2_fma", False),  # whose own sums do not
                               ("f32f32f32 1x12x1 avx2_fma", False),  # whose vectors are not whole
                               ("bf16bf16f32 1x16x2 avx2_fma", True),
                               ("bf16bf16f32 1x32x2 avx2_fma", False),  # for want of registers
                               ("s8s4s32 1x16x8 avx2_fma", True), ("s8s4s32 2x16x8 avx512_vnni", True),
                               ("s8s8s32 3x16x4 avx512_vnni", False),
                               ("f16f16f16 1x32x1 avx512_fp16", True), ("f32f32f32 1x8x1 sse2", True),
                               ("f64f64f64 4x4x1 avx2_fma", True), ("f16f16f32 4x8x1 avx2_fma", False),
                               ("f32f32f32 6x16x1 avx512_base", True), ("f32f32f32 6x32x1 avx512_base", False)):
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            self.assertEqual(plan_abreast(make_plan(tile, choose_primitive(tile))) is not None, expected, line)

    def test_more_panels_are_read_abreast_from_memory(self) -> None:
        for line, anywhere, from_memory in (("s8s4s32 1x16x8 avx512_vnni", True, True),
                                            ("s8s4s32 1x32x8 avx512_vnni", False, True),
                                            ("s16s8s32 4x32x2 avx512_vnni", False, True),
                                            ("f32f32f32 4x32x1 avx512_base", False, True),
                                            ("s8s4s32 4x32x8 avx512_vnni", False, False),  # for want of registers
                                            ("f32f32f32 1x64x1 avx2_fma", False, False)):  # nobody measured it
            tile = parse_line(f"mmt4d {line}").tile("x86_64")
            plan = make_plan(tile, choose_primitive(tile))
            found = plan_abreast(plan) is not None, plan_abreast_from_memory(plan) is not None
            self.assertEqual(found, (anywhere, from_memory), line)

    def test_blocks_cover_each_element_once(self) -> None:
        for plan in [*_plans(), *_plans_on_decoded_rhs(), *_plans_abreast()]:
            tile = plan.tile
            written = Counter((i, j) for b in plan.blocks for i in range(b.row, b.row + b.rows)
                              for j in range(b.column, b.column + b.columns))
            wanted = Counter((i, j) for i in range(tile.m0) for j in range(plan.panels * tile.n0))
            self.assertEqual(written, wanted, tile.symbol)


def _most_columns_alive(block: str) -> int:
    """Vectors of columns between their definition and their last use, on any line."""
    lines: dict[str, list[int]] = {}
    for number, line in enumerate(block.splitlines()):
        for name in re.findall(r"\bcolumns_\d+(?:_\d+)?\b", line):
            lines.setdefault(name, []).append(number)
    return max(sum(uses[0] <= line < uses[-1] for uses in lines.values())
               for line in range(block.count("\n") + 1))


def _at(match: Sequence[str], row_bytes: int, out_panel_bytes: int = 0) -> int:
    """What _AT found, as bytes."""
    rows, row, panels, bytes_of_row = match
    return ((int(rows or 1) * row_bytes if row else 0) + int(panels or 0) * out_panel_bytes
            + int(bytes_of_row or 0))


def _stores(block: str, row_bytes: int, out_panel_bytes: int = 0) -> list[tuple[int, int]]:
    """Where a block stores, from its first result on, and how many bytes."""
    found, out = [], 0
    for line in block.splitlines():
        if next_row := _NEXT_ROW.search(line):
            out += int(next_row[1] or 1) * row_bytes
        for size, *at in _STORE.findall(line):
            found.append((out + _at(at, row_bytes, out_panel_bytes), int(size)))
    return found


class SourceTest(unittest.TestCase):
    """Of the emitted text, whatever the planner thinks."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.sources = [(plan, emit([plan])) for plan in _plans()]

    def test_accumulators_columns_and_sums_fit_the_registers(self) -> None:
        for plan, _ in self.sources:
            text = emit([plan], in_library=True)
            for block in _BLOCK.finditer(text):
                sums = set(re.findall(r"\b(?:acc\d*_\d+_\d+|sums_\d+|sums\d+)\b", block[0]))
                one_row = 1
                self.assertLessEqual(len(sums) + _most_columns_alive(block[0]) + one_row,
                                     plan.primitive.isa.registers, f"{plan.tile.symbol} {block[1]}")

    def test_each_panel_is_read_where_it_is(self) -> None:
        """By tiles on several of them: all vectors of a panel's columns."""
        for plan in _plans_abreast():
            text = emit([make_plan(plan.tile, plan.primitive)], in_library=True).partition("namespace abreast {")[2]
            found = re.findall(r"load_\d+<(\d+)>\(columns(?: \+ (\d+) \* panel_bytes)?(?: \+ (\d+))?\)", text)
            read = Counter((int(panel or 0), int(at or 0) + byte) for size, panel, at in found
                           for byte in range(int(size)))
            step = plan.tile.n0 * plan.tile.k0 * BITS[plan.tile.type.rhs] // 8
            panels = set(product(range(PANELS_ABREAST), range(step)))
            self.assertEqual(set(read), panels, plan.tile.symbol)
            self.assertEqual(len(set(read.values())), 1, plan.tile.symbol)  # as often in each step of a turn

    def test_results_of_each_panel_are_stored_where_they_belong(self) -> None:
        """By tiles on several of them: each byte of each panel's rows, once."""
        for plan in _plans_abreast():
            tile = plan.tile
            text = emit([make_plan(tile, plan.primitive)], in_library=True).partition("namespace abreast {")[2]
            panel_bytes = tile.n0 * BITS[tile.type.out] // 8
            row_bytes = PANELS_ABREAST * panel_bytes + 1000
            written = Counter(at + byte for at, size in _stores(text, row_bytes, panel_bytes) for byte in range(size))
            expected = Counter(row * row_bytes + byte
                               for row, byte in product(range(tile.m0), range(PANELS_ABREAST * panel_bytes)))
            self.assertEqual(written, expected, tile.symbol)
            self.assertEqual("out_panel_bytes" in text, tile.m0 > 1, tile.symbol)

    def test_sums_of_rows_take_turns_where_results_do(self) -> None:
        tile = parse_line("mmt4d s8s8s32 6x16x4 avx512_vnni").tile("x86_64")
        text = emit([make_plan(tile, choose_primitive(tile))])
        for sums, dot in (("sums", "acc_5_0"), ("sums1", "acc1_5_0")):
            sum_rows = re.escape(f"{sums} = sum_rows<kSummedRows>({sums}, rows);")
            last_dot = re.escape(f"{dot} = dpbusd_row({dot}, ")
            self.assertRegex(text, rf"{sum_rows}(?:(?!sum_rows)[^}}])*{last_dot}")

    def test_stores_write_each_byte_once(self) -> None:
        for plan, text in self.sources:
            tile = plan.tile
            columns = tile.n0 * (4 if plan.f32_scratch else BITS[tile.type.out] // 8)
            # Rows of a matrix lie apart, those of the scratch do not.
            row_bytes = columns + (0 if plan.f32_scratch else 1000)
            stores = {block[1]: _stores(block[0], row_bytes) for block in _BLOCK.finditer(text)}
            written = Counter(byte for block, *out in _CALL.findall(_PREFETCHING.sub("", text))
                              for at, size in stores[block]
                              for byte in range(_at(out, row_bytes) + at, _at(out, row_bytes) + at + size))
            expected = Counter(row * row_bytes + byte for row, byte in product(range(tile.m0), range(columns)))
            self.assertEqual(written, expected, tile.symbol)


class NameTest(unittest.TestCase):
    def test_symbols_round_trip(self) -> None:
        hand = [tile for arch in ARCHS for tile in library.hand_rows(arch)]
        for tile in [*(plan.tile for plan in _plans()), *hand]:
            self.assertEqual(type(tile).from_symbol(tile.symbol), tile)

    def test_other_names_are_refused(self) -> None:
        good = "uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_avx2_fma"
        Tile.from_symbol(good)
        for bad in (good + "_f32acc", good.replace("s8s8s32", "s8s8s16"), good.replace("4x8x2", "4x8"),
                    good.replace("4x8", "0x8"), good[1:], good.replace("x86_64", "x86")):
            with self.assertRaises(RequestError, msg=bad):
                Tile.from_symbol(bad)
        good = "uk_pack_tile_x32_8x1_t_x86_64_avx2_fma"
        CopyTile.from_symbol(good)
        for bad in (good.replace("x32", "x33"), good.replace("pack", "mmt4d"), good.replace("8x1", "8")):
            with self.assertRaises(RequestError, msg=bad):
                CopyTile.from_symbol(bad)


if __name__ == "__main__":
    seeds_and_main(SEEDS)
