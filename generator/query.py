"""uk_query_tile_sizes without the library: for compilers that compile for another CPU.

The cost model is that of ukernel/tile_cost.cc, where its figures are explained, with the same operations
in the same order, so that both give the same answers.
"""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Iterable

from generator import library
from generator.library import Level
from generator.model import BITS, TYPES, RequestError, Tile
from generator.plan import (MOST_SUMS_ABREAST, PANELS_ABREAST, SPLITTABLE, can_decode_rhs_once, can_stage_lhs_once,
                            make_plan, plan_abreast, plan_on_decoded_lhs, plan_on_decoded_rhs)
from generator.select import choose_primitive
from generator.tiles import Row, table
from generator.tiles_json import read_rows

_PER_INSTRUCTION, _PER_COLUMNS_INSTRUCTION, _PER_LOAD, _PER_LOOP, _PER_LINE = 2, 1, 2, 6, 3
_OVERLAP, _LONE_VECTOR_LOADS, _IN_PARTS, _WHOLE = 8, 4, 17, 16
_PER_STAGED_VECTOR, _PER_VECTOR_WIDENED_BESIDE_DOTS, _PER_PAIRS_BESIDE_DOTS, _STAGED_QUARTERS = 6, 5, 3, 3
_PER_ORDERED_VECTOR, _PER_FAR_LINE = 18, 1
_STEPS_PER_SUMMED_LANE = 64
_LINE_BITS = 64 * 8
_TILE_ROWS, _PER_TILE_PRODUCT, _PER_TILE_OF_COLUMNS, _PER_TILE_OF_ROWS = 16, 19, 23, 8
_PER_TRANSPOSED_TILE, _PER_TRANSPOSED_TILE_OF_ONE = 82, 70
_MULTIPLY_ADD_CHAIN, _INTEGER_ADD_CHAIN, _BF16_DOT_CHAIN = 19, 4, 24
_ROUNDING_INSTRUCTIONS, _ROUNDING_CHAIN = 8, 160

_LARGE = 1 << 20  # what an unknown size counts as
_MOST_RESULTS_ON_DECODED_S4 = 1 << 21
_FEW_LHS_PANELS, _FEW_LHS_PANELS_TO_FLIP, _FEW_RHS_PANELS, _FEW_RHS_PANELS_OF_STAGED_ROWS = 4, 6, 1, 4
_FEW_STAGED_ROWS = 128
_SLOW = 4  # times as long: a dot of the one level that CPUs are slow at
_FEW_ROWS_OF_TILES, _MOSTLY_PADDING = 3, 16
_ROWS_OF_TALL, _ROWS_OF_TALL_F64, _TALL = 17, 9, 1.125
_READS_AHEAD = "READS_AHEAD"  # the tail of UK_CPU_FIELD7_X86_64_READS_AHEAD
_ALONE, _FEW_ROWS = 1.375, 4
_OF_SEVERAL, _ROUNDED_OF_SEVERAL, _LEAST_ROWS_OF_SEVERAL = 1.0625, 1.25, 3
_FEW_SUMS = 4  # kFewSums of ukernel/tile.h
# kTemporaries of tiles by hand that round each step, in arch/x86_64/avx2_fma and avx512_base.
_ROUNDING_TEMPORARIES = {(16, "f16f16f16"): 6, (16, "bf16bf16bf16"): 8, (32, "f16f16f16"): 4, (32, "bf16bf16bf16"): 15}
_STREAM_BYTES, _MEMORY_BYTES, _LEFT_OVER = 4 << 20, 2, 0.125  # ukernel/internal.h, query_tile_sizes.cc
_LEAST_BYTES_ABREAST, _FAR_PANEL_BYTES = 64 << 10, 256 << 10  # the same
_ROWS_TO_FETCH_BESIDE = 256  # ukernel/internal.h


# ---------------------------------------------------------------- rows

def further_features(arch: str) -> frozenset[str]:
    """That a CPU may have beside those of its levels."""
    return library.slow_features(arch) | ({_READS_AHEAD} if arch == "x86_64" else set())


@cache
def level_of_cpu(arch: str, name: str) -> frozenset[str]:
    """The features of a CPU of this level, or of these, with what else field 7 says of it that tiles depend on:
    "avx512_vnni+avx512_bf16+slow_avx512bf16"."""
    features_of = {level.name: level.features for level in library.levels(arch).values()}
    features_of |= {further.lower(): frozenset({further}) for further in sorted(further_features(arch))}
    features: frozenset[str] = frozenset()
    for part in name.split("+"):
        library.check_level(arch, part, features_of)
        features |= features_of[part]
    return features


def _is_slow(row: Row, features: frozenset[str]) -> bool:
    """Whether the CPU says that it is slow at a feature of the row's level."""
    return bool(library.levels(row.tile.arch)[row.tile.isa].slow & features)


def select(rows: Iterable[Row], features: frozenset[str], skip: bool
           ) -> dict[tuple[str, int, int, int], Row]:
    """By type and shape, the mmt4d row that a CPU with these features uses: of those that it can run,
    with SKIP one that rounds once, then the one of the highest rank, those last that the CPU is slow at."""
    best: dict[tuple[str, int, int, int], tuple[tuple[bool, bool, int], Row]] = {}
    for row in rows:
        tile = row.tile
        if not isinstance(tile, Tile) or tile.f32acc > skip:
            continue
        level = library.levels(tile.arch)[tile.isa]
        if not level.features <= features:
            continue
        shape = tile.type.name, tile.m0, tile.n0, tile.k0
        rank = tile.f32acc, not _is_slow(row, features), level.rank
        if shape not in best or rank > best[shape][0]:
            best[shape] = rank, row
    return {shape: row for shape, (_, row) in best.items()}


class Library:
    """A build of the library for an architecture, by the rows of its table."""

    def __init__(self, arch: str, rows: tuple[Row, ...]) -> None:
        self.arch, self.rows = arch, rows

    @cache
    def selected(self, level: str, skip: bool) -> dict[str, list[Row]]:
        """By type, what a CPU of this level uses."""
        by_type: dict[str, list[Row]] = {name: [] for name in TYPES}
        for shape, row in select(self.rows, level_of_cpu(self.arch, level), skip).items():
            by_type[shape[0]].append(row)
        return by_type


@cache
def _library_of_grid(arch: str) -> Library:
    return Library(arch, table(arch))


# ---------------------------------------------------------------- cost

@dataclass
class _Dot:
    k: int = 1
    rows: int = 1
    instructions: int = 1
    columns_instructions: int = 0
    row_sum_instructions: int = 0
    sums_rows_before: bool = False
    temporaries: int = 0
    chain: int = _MULTIPLY_ADD_CHAIN


def _sums_f16(row: Row, level: Level) -> bool:
    return bool(level.f16_fma and row.tile.type.name == "f16f16f16"
                and row.numerics == "round_each_step")


def _lane_bits(row: Row, level: Level) -> int:
    bits = BITS[row.tile.type.out]
    return bits if _sums_f16(row, level) else max(32, bits)


def _byte_dot(row: Row, level: Level) -> int:
    if level.byte_dot and row.tile.k0 % level.byte_dot == 0:
        return level.byte_dot
    return 4 if level.byte_dot > 4 and row.tile.k0 % 4 == 0 else 0


def _dot(row: Row, level: Level, wide: bool, decoded: bool) -> _Dot:
    tile = row.tile
    assert isinstance(tile, Tile)
    dot = _Dot()
    if row.numerics == "exact":
        if BITS[tile.type.lhs] == 8 and _byte_dot(row, level):
            dot.k = _byte_dot(row, level)
            if level.byte_flip and tile.type.lhs == "s8":
                dot.columns_instructions += not wide
                dot.temporaries += not decoded
                dot.sums_rows_before = BITS[tile.type.rhs] < 8
                if level.byte_flip > 1 and tile.type.rhs == "s8" and not decoded:
                    dot.row_sum_instructions += 1
                    dot.temporaries += 1
        else:
            dot.k = level.s16_k if tile.k0 % level.s16_k == 0 else 1
            dot.instructions = level.s16_dot
            if dot.instructions > 1:
                dot.chain = _INTEGER_ADD_CHAIN
            dot.temporaries += BITS[tile.type.rhs] < 8 and not decoded and not level.lhs_by_lane
    elif row.numerics in ("bf16_dot", "bf16_dot_f32acc"):
        dot.k = level.bf16_dot if level.bf16_dot and tile.k0 % level.bf16_dot == 0 else 2
        if not level.lhs_by_lane:
            dot.chain = _BF16_DOT_CHAIN
    else:
        dot.instructions = level.fma
        if row.numerics == "round_each_step" and not _sums_f16(row, level):
            dot.instructions += _ROUNDING_INSTRUCTIONS
            dot.chain += _ROUNDING_CHAIN
            dot.temporaries += level.vector_registers // 2
    if (level.lhs_by_lane and dot.k * BITS[tile.type.lhs] == 64
            and _lane_bits(row, level) == 32):
        dot.rows = 2
    if dot.instructions > 1:
        dot.temporaries += 1
    bits = BITS[tile.type.rhs] * dot.k
    while bits < _lane_bits(row, level):
        dot.columns_instructions += 2 if tile.type.rhs == "f16" and not level.lhs_by_lane else 1
        bits *= 2
    if tile.k0 > dot.k:
        dot.columns_instructions += 0 if _is_bf16_pair(tile) else 2
    if decoded:
        dot.columns_instructions = 0
    return dot


def _is_bf16_pair(tile: Tile) -> bool:
    return tile.type.rhs == "bf16" and tile.k0 == 2


@cache
def is_wide(arch: str, cpu: str) -> bool:
    features = level_of_cpu(arch, cpu)
    return any(level.wide and level.features <= features for level in library.levels(arch).values())


@cache
def _least_of_levels(arch: str, cpu: str, column: str) -> int:
    """What the CPU's levels say there, where 0 says nothing; 1 if none says anything."""
    features = level_of_cpu(arch, cpu)
    found = [getattr(level, column) for level in library.levels(arch).values() if level.features <= features]
    return min(filter(None, found), default=1)


def l3_feeds_tiles(arch: str, cpu: str) -> bool:
    return _least_of_levels(arch, cpu, "l3_feeds") == 2


def _streams_abreast(arch: str, cpu: str) -> bool:
    return l3_feeds_tiles(arch, cpu) and _least_of_levels(arch, cpu, "panels_in_turns") == 1


@cache
def takes_decoded_rhs(row: Row) -> bool:
    """Whether the library has a function of the tile for that."""
    tile = row.tile
    assert isinstance(tile, Tile)
    multiplies_tiles = library.levels(tile.arch)[tile.isa].tile_steps > 0
    if row.numerics not in SPLITTABLE or multiplies_tiles:  # of others some, by hand, have no primitive here
        return False
    primitive = choose_primitive(tile)
    if row.origin == "hand":
        return can_decode_rhs_once(tile, primitive)
    return plan_on_decoded_rhs(make_plan(tile, primitive)) is not None


def _widens_by_loads(row: Row, level: Level) -> bool:
    kind = row.tile.type
    if level.vector_bytes != 32:
        return False
    if row.numerics != "exact":
        return kind.rhs == "f16" and row.tile.k0 == 1
    return BITS[kind.rhs] == 8 and level.byte_dot == 0 and row.tile.k0 == level.s16_k


def _decodes_rhs_once(row: Row, arch: str, cpu: str, m: int, n: int) -> bool:
    """Whether an op of so many LHS and RHS panels does."""
    level = library.levels(arch)[row.tile.isa]
    if m <= _FEW_LHS_PANELS or not takes_decoded_rhs(row):
        return False
    dots_bytes = _byte_dot(row, level) > 0
    flips = row.tile.type.name == "s8s8s32" and dots_bytes
    shifts = row.tile.type.name == "bf16bf16f32"
    if ((flips or shifts) and m <= _FEW_LHS_PANELS_TO_FLIP) or (flips and n == 1):
        return False
    reads_ahead = _READS_AHEAD in level_of_cpu(arch, cpu)
    if reads_ahead and _widens_by_loads(row, level):
        return False
    return (not l3_feeds_tiles(arch, cpu)
            or (row.tile.type.name == "s8s4s32" and dots_bytes
                and _FEW_LHS_PANELS_TO_FLIP < m <= _MOST_RESULTS_ON_DECODED_S4 // (row.tile.m0 * row.tile.n0) // n))


@cache
def takes_decoded_lhs(row: Row) -> bool:
    tile = row.tile
    assert isinstance(tile, Tile)
    if library.levels(tile.arch)[tile.isa].tile_steps:
        return True
    if row.numerics not in SPLITTABLE:
        return False
    primitive = choose_primitive(tile)
    if row.origin == "hand":
        return can_stage_lhs_once(tile, primitive) and not reads_abreast(row)
    return plan_on_decoded_lhs(make_plan(tile, primitive)) is not None


def _decodes_lhs_once(row: Row, arch: str, cpu: str, m: int, n: int, rhs_streams: bool) -> bool:
    tile = row.tile
    assert isinstance(tile, Tile)
    if not takes_decoded_lhs(row):
        return False
    if library.levels(tile.arch)[tile.isa].tile_steps:
        return n > _FEW_RHS_PANELS
    are_few = m <= _FEW_STAGED_ROWS // tile.m0
    gains = row.numerics == "exact" and not rhs_streams
    return n > _FEW_RHS_PANELS_OF_STAGED_ROWS and (are_few or gains) and not l3_feeds_tiles(arch, cpu)


def _cost_of_tiles(tile: Tile, level: Level, decoded_for: int) -> int:
    rows, columns = -(-tile.m0 // _TILE_ROWS), -(-tile.n0 // _TILE_ROWS)
    products = _PER_TILE_PRODUCT * rows * columns
    loads = _PER_TILE_OF_COLUMNS * columns + _PER_TILE_OF_ROWS * rows
    transposing = (_PER_TRANSPOSED_TILE * rows // decoded_for if decoded_for
                   else _PER_TRANSPOSED_TILE_OF_ONE * rows)
    return -(-4 * (max(products, loads) + transposing) // level.tile_steps)


@dataclass(frozen=True)
class TileInOp:
    """What a tile of an op does not do alone."""

    lhs_decoded_for: int = 0  # RHS panels that an LHS panel is decoded once for, and the other way round, where it is
    rhs_decoded_for: int = 0
    abreast: bool = False  # it takes several RHS panels
    is_far: bool = False  # each block reads the RHS panel from beyond L2


@cache
def step_cost(row: Row, wide: bool, in_op: TileInOp = TileInOp()) -> int:
    """On one RHS panel."""
    whole = _cost_in_parts(row, wide, in_op, 1)
    if row.origin == "hand" or not in_op.lhs_decoded_for:
        return whole
    return min(whole, min(_cost_in_parts(row, wide, in_op, parts) for parts in (2, 4)) * _IN_PARTS // _WHOLE)


def _cost_in_parts(row: Row, wide: bool, in_op: TileInOp, least_parts: int) -> int:
    """Of so many parts of the columns at least, each with blocks of its own."""
    tile = row.tile
    assert isinstance(tile, Tile)
    level = library.levels(tile.arch)[tile.isa]
    if level.tile_steps:
        return _cost_of_tiles(tile, level, in_op.lhs_decoded_for)
    lhs_bits, rhs_bits, lane_bits = BITS[tile.type.lhs], BITS[tile.type.rhs], _lane_bits(row, level)
    vector_bits = level.vector_bytes * 8
    per_columns_instruction = _PER_INSTRUCTION if level.lhs_by_lane else _PER_COLUMNS_INSTRUCTION
    decoded_for, abreast = in_op.rhs_decoded_for, in_op.abreast
    panels = PANELS_ABREAST if abreast else 1
    vectors = panels * -(-tile.n0 * lane_bits // vector_bits)
    dot = _dot(row, level, wide, decoded_for > 0)
    dots = tile.k0 // dot.k
    registers = level.vector_registers - dot.temporaries
    parts = max(-(-vectors // (registers - 2 if tile.m0 == 1 else (registers - 1) // 2)), min(least_parts, vectors))
    part = -(-vectors // parts)
    reloads = _is_bf16_pair(tile) and level.fma == 1 and level.vector_bytes == 32
    if dots > (2 if decoded_for or reloads else 1):
        registers -= part + 1
    # The blocks of ukernel/tile.h, whose accumulators fit the registers.
    most_rows = (registers - part - 1) // part
    blocks = tile.m0 if most_rows < 1 else -(-tile.m0 // most_rows)
    if abreast:  # only where all panels fit one block
        parts, part, blocks = 1, vectors, 1

    orders_nibbles = rhs_bits < 8 and decoded_for > 0 and level.vector_bytes > 16
    dots_nibbles_at_once = rhs_bits < 8 and dot.instructions == 1

    def bits_read(rows: int) -> int:
        row_bits = lhs_bits * tile.k0
        panel_bits = tile.m0 * row_bits
        line = min(panel_bits, _LINE_BITS)
        rows_bits = (0 if in_op.lhs_decoded_for else max(rows * row_bits, line) if rows_staging() else
                     (panel_bits + (blocks - 1) * line) // blocks)
        columns_bits = -(-panels * tile.n0 // parts) * rhs_bits * tile.k0
        return rows_bits + columns_bits * (blocks + 1) // (2 * blocks)

    chain = dot.chain * dots

    def block_cost(rows: int, columns_staged: bool) -> int:
        row_instructions = -(-rows // dot.rows) * dot.rows * dot.instructions
        columns_instructions = 0 if columns_staged else dot.columns_instructions
        ports = dots * part * (_PER_INSTRUCTION * row_instructions
                               + per_columns_instruction * columns_instructions)
        row_loads = -(-rows * dot.k * lhs_bits // vector_bits) if level.lhs_by_lane else rows
        column_loads = dots if columns_staged else -(-tile.k0 * rhs_bits // lane_bits)
        loads = _PER_LOAD * (row_loads * dots + column_loads * part)
        if part == 1:
            loads += loads // _LONE_VECTOR_LOADS
        if wide:
            return max(ports, loads, chain) + (_PER_LOOP if decoded_for and rows_staging() else 0)
        busy = max(ports, loads) + min(ports, loads) // _OVERLAP
        return (max(busy, chain) + -(-_PER_LINE * bits_read(rows) // _LINE_BITS)
                + _PER_LOOP)

    def rows_staging() -> int:
        in_order = rhs_bits >= 8 or orders_nibbles
        if level.lhs_by_lane or in_op.lhs_decoded_for or (lhs_bits * dot.k >= lane_bits and in_order):
            return 0
        beside_dots = _PER_PAIRS_BESIDE_DOTS if _is_bf16_pair(tile) else _PER_VECTOR_WIDENED_BESIDE_DOTS
        per_vector = beside_dots if stages_beside_dots() else _PER_STAGED_VECTOR
        return max(1, (per_vector * tile.m0 * dots * lane_bits + vector_bits // 2) // vector_bits)

    def stages_beside_dots() -> bool:
        is_pair, is_avx2 = _is_bf16_pair(tile), level.vector_bytes == 32
        if level.byte_dot != 0 if row.numerics == "exact" else dot.instructions != 1:
            return False
        if row.origin == "hand" or level.vector_bytes < 32 if is_pair else not is_avx2 or dots != 1:
            return False
        lanes = vector_bits // lane_bits
        per_vector = lanes // 2 if is_pair and is_avx2 else lanes
        return (parts * blocks == 1 and tile.m0 <= lanes
                and 4 * tile.m0 >= _STAGED_QUARTERS * -(-tile.m0 // per_vector) * per_vector)

    def rows_summing() -> int:
        if not dot.sums_rows_before or decoded_for:
            return 0
        lanes = math.lcm(tile.m0 * tile.k0 * lhs_bits, vector_bits) // lane_bits
        return -(-lanes // _STEPS_PER_SUMMED_LANE)

    def far_columns(times: int) -> int:
        if not in_op.is_far:
            return 0
        return -(-_PER_FAR_LINE * times * tile.n0 * tile.k0 * rhs_bits // _LINE_BITS)

    def cost_of_blocks(columns_staged: bool) -> int:
        rows, larger_blocks = divmod(tile.m0, blocks)
        all_blocks = parts * blocks
        is_dear = row.origin == "hand" and row.numerics != "exact"
        costs = dots_nibbles_at_once and (wide or lhs_bits > 8)
        times_staged = all_blocks if is_dear else 2 if costs and all_blocks > 1 else 1
        return (parts * (larger_blocks * block_cost(rows + 1, columns_staged)
                         + (blocks - larger_blocks) * block_cost(rows, columns_staged))
                + times_staged * rows_staging() + rows_summing() + far_columns(1 if columns_staged else blocks)
                + _PER_INSTRUCTION * dots * dot.row_sum_instructions)

    if abreast:
        return -(-cost_of_blocks(False) // panels)
    counts_order = orders_nibbles and dots_nibbles_at_once
    columns_staging = (_PER_ORDERED_VECTOR if counts_order else _PER_STAGED_VECTOR) * vectors * dots
    if decoded_for:
        return cost_of_blocks(True) + columns_staging // (2 * decoded_for)
    plain = cost_of_blocks(False)
    if row.origin == "hand" or level.lhs_by_lane or dot.columns_instructions == 0:
        return plain
    return min(plain, cost_of_blocks(True) + columns_staging)


@cache
def reads_abreast(row: Row) -> bool:
    """Whether the library's tile for x86-64 can take several RHS panels at once: by hand those of few sums, if
    registers are enough (reads_abreast in arch/x86_64/mmt4d_tile.h), and but for the levels whose instructions add
    up products of bytes, where sums are split, or rows summed."""
    tile = row.tile
    assert isinstance(tile, Tile)
    if row.origin != "hand":
        return plan_abreast(make_plan(tile, choose_primitive(tile))) is not None
    level = library.levels(tile.arch)[tile.isa]
    dot = _dot(row, level, False, False)
    temporaries = int(dot.instructions > 1)
    if row.numerics == "round_each_step":
        temporaries = _ROUNDING_TEMPORARIES[level.vector_registers, tile.type.name]
    vectors = tile.n0 * max(BITS[tile.type.out], 32) // (8 * level.vector_bytes)
    all_vectors = PANELS_ABREAST * vectors
    ahead = tile.m0 > 1 and dot.columns_instructions > 0
    operands = tile.m0 + 1 if 1 < tile.m0 < all_vectors else all_vectors + ahead + 1
    return (tile.m0 * vectors <= _FEW_SUMS and level.byte_dot == 0
            and tile.m0 * all_vectors + operands + temporaries <= level.vector_registers)


def _order(row: Row, arch: str, cpu: str, m: int, n: int, k: int) -> tuple:
    """The best row is the least: by cost, padding, the larger tile, the squarer, the wider one, K0."""
    tile = row.tile
    assert isinstance(tile, Tile)

    def tiles(size: int, of: int) -> float:
        return float(-(-size // of)) if size > 0 else _LARGE / of

    lhs_panels = -(-m // tile.m0) if m > 0 else _LARGE
    rhs_panels = -(-n // tile.n0) if n > 0 else _LARGE
    level = library.levels(arch)[tile.isa]
    rhs_bytes = float(tile.n0 * tile.k0 * BITS[tile.type.rhs] // 8)
    rhs_steps = tiles(n, tile.n0) * tiles(k, tile.k0)
    streams = rhs_steps * rhs_bytes >= _STREAM_BYTES
    decodes_rhs = _decodes_rhs_once(row, arch, cpu, lhs_panels, rhs_panels)
    half_pads = not level.tile_steps and 0 < m <= tile.m0 // 2
    decodes_lhs = (not decodes_rhs and not half_pads
                   and _decodes_lhs_once(row, arch, cpu, lhs_panels, rhs_panels, streams))
    are_several = rhs_panels >= PANELS_ABREAST
    gains = 0 < m <= _FEW_ROWS and are_several and _READS_AHEAD in level_of_cpu(arch, cpu)
    panel_bytes = tiles(k, tile.k0) * rhs_bytes
    streams_abreast = _streams_abreast(arch, cpu)
    from_several = streams and streams_abreast and panel_bytes >= _LEAST_BYTES_ABREAST
    rounds = row.numerics == "round_each_step"
    cached_abreast = streams_abreast and not streams
    waits = (are_several and level.vector_bytes == 64
             and (not streams or from_several if rounds else cached_abreast))
    gains_for_several = rounds or (tile.m0 >= _LEAST_ROWS_OF_SEVERAL and tile.type.name != "s8s4s32")
    gains_for_all = lhs_panels == 1 or (gains_for_several and cached_abreast)
    abreast = (gains or waits) and gains_for_all and reads_abreast(row)
    vectors = -(-tile.n0 * max(BITS[tile.type.out], 32) // (8 * level.vector_bytes))
    can_take_several = (lhs_panels == 1 and are_several and level.vector_bytes == 64
                        and tile.m0 * vectors <= MOST_SUMS_ABREAST)
    is_alone = ((gains and not abreast)
                or (from_several and not can_take_several and panel_bytes >= vectors * _LEAST_BYTES_ABREAST))
    by_lhs_panels = m <= 0 or m > _ROWS_TO_FETCH_BESIDE
    is_far = (streams and streams_abreast and by_lhs_panels and panel_bytes >= _FAR_PANEL_BYTES
              and not decodes_rhs)
    step: float = step_cost(row, is_wide(arch, cpu), TileInOp(rhs_panels if decodes_lhs else 0,
                                                              lhs_panels if decodes_rhs else 0, abreast, is_far))
    if abreast and cached_abreast:
        alone = step_cost(row, is_wide(arch, cpu), TileInOp())
        step += (alone - step) * float(rhs_panels % PANELS_ABREAST) / float(rhs_panels)
    if abreast and lhs_panels > 1:
        step *= _ROUNDED_OF_SEVERAL if rounds else _OF_SEVERAL
    mostly_pads = level.tile_steps > 1 and 0 < m <= _FEW_ROWS_OF_TILES
    step *= (_SLOW if _is_slow(row, level_of_cpu(arch, cpu)) else 1) * (_MOSTLY_PADDING if mostly_pads else 1)
    is_f64_of_avx2 = tile.type.out == "f64" and level.vector_bytes == 32
    is_tall = tile.m0 >= (_ROWS_OF_TALL_F64 if is_f64_of_avx2 else _ROWS_OF_TALL) and not level.tile_steps
    read = rhs_bytes / _MEMORY_BYTES * (_ALONE if is_alone else 1)
    reading = read if streams else 0.0
    first = step + reading * _LEFT_OVER if step > reading else reading + step * _LEFT_OVER
    cost = rhs_steps * (first + (tiles(m, tile.m0) - 1) * step) * (_TALL if is_tall else 1)
    padded = (tiles(m if m > 0 else _LARGE, tile.m0) * tile.m0
              * tiles(n if n > 0 else _LARGE, tile.n0) * tile.n0)
    return cost, padded, -tile.m0 * tile.n0, tile.m0 + tile.n0, -tile.n0, -tile.k0


# ---------------------------------------------------------------- the query

def query_row(arch: str, level: str, type_name: str, m: int, n: int, k: int, fixed_m0: int = 0,
              fixed_n0: int = 0, fixed_k0: int = 0, skip: bool = False,
              of_library: Library | None = None) -> Row:
    """The row whose shape is the answer, and which a call with that shape uses; by default of a library
    without extra tiles. Sizes <= 0 are unknown; fixed members other than 0 are already decided."""
    if type_name not in TYPES:
        raise RequestError(f"unknown type {library.quoted(type_name)}; there are {', '.join(TYPES)}")
    for name, fixed in (("M0", fixed_m0), ("N0", fixed_n0), ("K0", fixed_k0)):
        if fixed < 0:
            raise RequestError(f"{name} = {fixed} is negative")
    if BITS[TYPES[type_name].rhs] < 8 and fixed_k0 % 2:
        raise RequestError(f"K0 = {fixed_k0} splits a byte: {type_name} has four-bit elements")
    selected = (of_library or _library_of_grid(arch)).selected(level, skip)
    fitting = [row for row in selected[type_name]
               if fixed_m0 in (0, row.tile.m0) and fixed_n0 in (0, row.tile.n0)
               and fixed_k0 in (0, row.tile.k0)]
    if not fitting:
        fixed_text = "x".join(str(fixed or "*") for fixed in (fixed_m0, fixed_n0, fixed_k0))
        raise RequestError(f"no tile of {type_name} is {fixed_text} on {level}")
    return min(fitting, key=lambda row: _order(row, arch, level, m, n, k))


def query_tile_sizes(arch: str, level: str, type_name: str, m: int, n: int, k: int,
                     fixed_m0: int = 0, fixed_n0: int = 0, fixed_k0: int = 0, skip: bool = False
                     ) -> tuple[int, int, int]:
    """What uk_query_tile_sizes answers on a CPU of this level; without a tile, a RequestError."""
    tile = query_row(arch, level, type_name, m, n, k, fixed_m0, fixed_n0, fixed_k0, skip).tile
    assert isinstance(tile, Tile)
    return tile.m0, tile.n0, tile.k0


# ---------------------------------------------------------------- command line

def _size(text: str) -> int:
    """A uk_index_t."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -2**63 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{library.quoted(text)} is not a size")
    return int(text)


def add_query_parser(commands: argparse._SubParsersAction, arch: dict) -> None:
    parser = commands.add_parser(
        "query", help="say which tile suits a matmul, as uk_query_tile_sizes does on the CPU itself")
    parser.add_argument("--level", required=True, action="append", metavar="LEVEL",
                        help="of the CPU; one with several has them all: avx512_vnni+avx512_bf16, or once more for "
                             "each, and +slow_avx512bf16 or +reads_ahead where UK_CPU_FIELD7_... of ukernel.h is so")
    parser.add_argument("type", help="s8s8s32")
    for name in ("m", "n", "k"):
        parser.add_argument(name, type=_size, metavar=name.upper(),
                            help="size of the matmul in elements, 0 if it is not known")
    for name in ("m0", "n0", "k0"):
        parser.add_argument(f"--{name}", type=_size, default=0, metavar="SIZE",
                            help=f"{name.upper()}, where it is already decided")
    parser.add_argument("--skip", action="store_true",
                        help="a 16-bit output may be rounded once, at the end")
    parser.add_argument("--arch", **arch)
    parser.add_argument("--table", type=library.named_path, metavar="FILE",
                        help="tiles.json of a library that was built with tiles beside the grid")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    a = arguments
    of_library = Library(a.arch, read_rows(a.table, a.arch)) if a.table else None
    level = "+".join(library.level_names(a.level))
    row = query_row(a.arch, level, a.type, a.m, a.n, a.k, a.m0, a.n0, a.k0, a.skip, of_library)
    assert isinstance(row.tile, Tile)
    print(f"{row.tile.m0}x{row.tile.n0}x{row.tile.k0} {row.tile.symbol} {row.origin}")
