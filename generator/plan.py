"""How a tile is computed: which primitive, which register blocks, what is staged."""

from __future__ import annotations

from dataclasses import dataclass

from generator.model import Primitive, Tile

# Cycles from one accumulation into a register to the next on the same one; eight accumulators were
# measured to keep two multipliers busy for 84 % of the time.
CHAIN_CYCLES = 4.75
STAGE_BYTES = 8 << 10  # of each staged operand: both stay in L1 beside the panels


def registers_needed(primitive: Primitive, rows: int, vectors: int) -> int:
    """The register model: accumulators, a step's columns, one broadcast row, temporaries, and where
    columns are summed their sums."""
    sums = vectors if primitive.column_sums else 0
    return rows * vectors + vectors + 1 + primitive.temporaries + sums


@dataclass(frozen=True)
class Block:
    """Rows row .. row + rows - 1 and columns column .. column + columns - 1 of the tile. Its
    accumulators stay in registers for the whole K loop."""

    row: int
    rows: int
    column: int
    columns: int


@dataclass(frozen=True)
class Plan:
    tile: Tile
    primitive: Primitive
    blocks: tuple[Block, ...]
    cycles: float  # of one k step of the tile, estimated

    @property
    def units(self) -> int:
        """Dots along K0 in one k step."""
        return self.tile.k0 // self.primitive.k

    @property
    def padded_units(self) -> int:
        """Units rounded up to a power of two, for the deinterleaving network."""
        return 1 << (self.units - 1).bit_length()

    @property
    def stages_lhs(self) -> bool:
        return self.primitive.widen_lhs is not None

    @property
    def stages_rhs(self) -> bool:
        """With several units a column, a vector of columns is not contiguous in the panel."""
        return self.units > 1

    def vectors(self, columns: int) -> int:
        return -(-columns // self.primitive.lanes)

    @property
    def stage_steps(self) -> int:
        """K steps staged at a time."""
        lane_bytes = self.primitive.lane_bits // 8
        widest = max(self.vectors(b.columns) for b in self.blocks) * self.primitive.lanes
        step = self.units * lane_bytes * max(self.tile.m0 if self.stages_lhs else 1,
                                             widest if self.stages_rhs else 1)
        return max(1, STAGE_BYTES // step)

    def describe(self) -> str:
        p = self.primitive
        shapes = sorted({(b.rows, self.vectors(b.columns)) for b in self.blocks}, reverse=True)
        blocks = " and ".join(f"{rows} rows x {v} vectors" for rows, v in shapes)
        staged = [name for name, on in (("LHS", self.stages_lhs), ("RHS", self.stages_rhs)) if on]
        return (f"{len(self.blocks)} block{'s' if len(self.blocks) > 1 else ''} of {blocks} of "
                f"{p.lanes} lanes, {self.units} dot{'s' if self.units > 1 else ''} of {p.k} a k step, "
                f"{max(registers_needed(p, r, v) for r, v in shapes)} of {p.isa.registers} registers"
                + (f", {' and '.join(staged)} staged" if staged else ""))


def _equal_parts(total: int, parts: int) -> list[int]:
    """total as `parts` integers that differ by at most one, larger ones first."""
    return [total // parts + (i < total % parts) for i in range(parts)]


def _cycles(primitive: Primitive, rows: int, vectors: int) -> float:
    """One unit of a block on two multipliers and two load ports."""
    slots = rows * vectors * primitive.multiplies + (vectors if primitive.column_sums else 0)
    return max(slots / 2, (rows + vectors) / 2, CHAIN_CYCLES * primitive.multiplies)


def make_plan(tile: Tile, primitive: Primitive) -> Plan:
    """The blocks with the fewest cycles, then the fewest loads, then the fewest blocks."""
    lanes = primitive.lanes
    total_vectors = -(-tile.n0 // lanes)
    best: tuple[tuple[float, int, int], list[int], list[int]] | None = None
    for row_parts in range(1, tile.m0 + 1):
        for vector_parts in range(1, total_vectors + 1):
            row_sizes = _equal_parts(tile.m0, row_parts)
            vector_sizes = _equal_parts(total_vectors, vector_parts)
            if registers_needed(primitive, row_sizes[0], vector_sizes[0]) > primitive.isa.registers:
                continue
            cost = sum(_cycles(primitive, r, v) for r in row_sizes for v in vector_sizes)
            loads = sum(r + v for r in row_sizes for v in vector_sizes)
            score = (cost, loads, row_parts * vector_parts)
            if best is None or score < best[0]:
                best = (score, row_sizes, vector_sizes)
    assert best is not None, "one row of one vector always fits"
    score, row_sizes, vector_sizes = best
    blocks = []
    row = 0
    for rows in row_sizes:
        column = 0
        for vectors in vector_sizes:
            columns = min(vectors * lanes, tile.n0 - column)
            blocks.append(Block(row, rows, column, columns))
            column += columns
        row += rows
    return Plan(tile, primitive, tuple(blocks), score[0] * (tile.k0 // primitive.k))
