"""How a tile is computed: which primitive, which register blocks, what is staged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

from generator.model import Core, Cost, Primitive, Tile

LOOP_INSTRUCTIONS = 3  # of a turn: two pointers, and the count with its branch
# A chain that its bound just hides was measured to keep the multipliers busy for 84 % of the time.
CHAIN_MARGIN = 1.19
LOAD_MARGIN = 1.25  # likewise of blocks of one vector, with a load for each dot
# Loops that take two steps a turn leave as many registers at least, and decode a vector of columns by as
# many instructions at most.
REGISTERS_TO_UNROLL = 4
REGISTERS_TO_TAKE_TURNS = 2  # likewise, where the steps of a turn have sums of their own
DECODE_TO_UNROLL = 4
REGISTERS_TO_DECODE_AHEAD = 2  # the vector that is ahead, and one with which GCC takes its turns without the stack
LEAST_ROWS_TO_DECODE_AHEAD = 8  # with four to six, whose dots also wait for each other, as many tiles were slower
# Of the vectors of a step that is staged beside dots: such steps were slower where half of them was.
STAGED_VECTORS_FILLED = 0.75
STAGE_BYTES = 8 << 10  # of each staged operand: both stay in L1 beside the panels

# Of a K loop beside which rows are staged, to sum them there: the sums, and the factor.
SUM_REGISTERS = 2
MORE_SUMS = (2, 4)  # than one, of a result
SHARED_ROW_SUMS = 16  # kSharedRowSums of ukernel/tile.h
LEAST_SUMMED_ROWS = 4  # kLeastSummedRows, there
PANELS_ABREAST, MOST_SUMS_ABREAST = 3, 8  # kPanelsAbreast and kMostSumsAbreast, there
MANY_ROWS = 16  # more than compilers load a part of before they multiply


def steps_in_block(m0: int) -> int:
    """Where a block stages for itself: few enough that the next steps are staged while the last dots of
    those before are still under way, and enough to be worth a loop."""
    return 8 if m0 >= 8 else 16 if m0 > 1 else 32


def one_by_one(p: Primitive, rows: int, vectors: int) -> bool:
    """Whether a step multiplies one vector of columns after the other by all rows: with one row each is
    used once, and where dots overwrite an operand there are fewer copies if it is the column. Rounding in
    software, or several parts, are long enough to overlap with the next one. What must be decoded is so
    ahead of the dots, if there are registers for all of it."""
    if vectors == 1 or p.vectors_of_rows or p.rounds_in_software:
        return False
    if rows > 1:
        return p.isa.copies_operands and p.parts == 1
    decodes_first = (p.parts == 1 and p.decode != ((),)
                     and _registers(p, rows, vectors, False, False) <= p.isa.registers)
    return p.parts <= 2 and not decodes_first


def embeds_rows(p: Primitive, vectors: int, spread: int) -> bool:
    """Whether the dots of a block broadcast their rows themselves. Of several vectors each would load them anew."""
    return vectors == 1 and (p.embeds_broadcast or (p.row_dot is not None and spread == 1))


def registers_needed(p: Primitive, rows: int, vectors: int, decoded: bool) -> int:
    """The register model: accumulators, a step's columns, one broadcast row, and what the primitive
    adds for the dots or for decoding columns that are not staged decoded. Part by part, columns are
    there as the part in turn and, unless they are loaded anew, as loaded; where rows are loaded as they
    lie, all parts are there."""
    reloads = reloads_columns(p, rows, vectors, decoded)  # which GCC does a vector ahead
    return _registers(p, rows, vectors, decoded, one_by_one(p, rows, vectors), reloads) + reloads


def reloads_columns(p: Primitive, rows: int, vectors: int, decoded: bool) -> bool:
    """Whether a block loads its columns anew for each part, where there are no registers for them as loaded."""
    return (p.decode_for_rows != () and not decoded and not one_by_one(p, rows, vectors)
            and _registers(p, rows, vectors, False, False) > p.isa.registers)


def _registers(p: Primitive, rows: int, vectors: int, decoded: bool, by_columns: bool, reloads: bool = False) -> int:
    temporaries = p.registers if decoded else max(p.registers, p.decode_registers)
    if p.decodes_side_by_side and not decoded and not by_columns:
        temporaries += vectors - 1
    if p.product and vectors != 2:
        temporaries += 1  # of dots in pairs, a product that waits, unless they are all of a row's
    if p.vectors_of_rows:
        in_flight = 4 if decoded or vectors <= 2 else 2  # vectors of rows: compilers load ahead
        return (-(-rows // p.acc_rows) * vectors + p.parts * _operand_vectors(p, vectors)
                + in_flight * max(p.parts, p.row_loads) + 1 + temporaries)
    columns, row = (1 if decoded or reloads else min(p.parts, 2), 1) if p.part_by_part else (p.parts, p.parts)
    if by_columns:
        operands = columns + rows * p.parts  # the rows' parts for all of the step
    else:
        operands = columns * vectors + row
    if p.parts > 2 and p.dot_cost.total > 1:
        # A sum lands in the register of its product, not of its accumulator. After several parts GCC
        # finds its way back by the stack, unless as many registers are free.
        operands = max(operands, rows * vectors - temporaries)
    elif p.parts > 2:
        operands += 1  # Clang decodes a part of the columns ahead
    elif p.parts == 2 and rows > MANY_ROWS:
        operands += rows  # Clang loads the second part of all of them ahead
    return rows * vectors + operands + temporaries


def spare_registers(tile: Tile, p: Primitive, spread: int) -> int:
    """That blocks leave: of several dots a step, compilers load some operands of the next one ahead; and of a
    vector that is not whole, the mask may take a register."""
    several_dots, is_partial = tile.k0 // p.k > spread, tile.n0 * spread % p.operand_lanes != 0
    return int((several_dots or is_partial) and not p.vectors_of_rows)


def unrolls_steps(p: Primitive, rows: int, vectors: int, decoded: bool, spare: int) -> bool:
    """Whether the K loop takes two steps a turn. Rounding or decoding in software is long enough by itself.
    Compilers want registers to spare: they begin the second step before the first one ends."""
    decodes_long = not decoded and p.decode_cost.total > DECODE_TO_UNROLL
    if not p.isa.unrolls_steps or p.rounds_in_software or decodes_long:
        return False
    return registers_needed(p, rows, vectors, decoded) + spare + REGISTERS_TO_UNROLL <= p.isa.registers


def sums_of_result(tile: Tile, p: Primitive, spread: int, decoded: bool, rows: int, vectors: int) -> int:
    """How many sums each of a block's results is made of, which take turns in the dots and are added up in the
    end: where dots would wait for each other and the order of a sum is free, as few as suffice, or as there are
    registers for."""
    if p.numerics != "exact" or p.vectors_of_rows or p.dot_cost.total > 1 or tile.k0 > p.k:
        return 1
    bounds = [_block_bound(p, core, 1, spread, decoded, rows, vectors) for core in p.isa.choosing_cores]
    registers = registers_needed(p, rows, vectors, decoded) + spare_registers(tile, p, spread)
    found = 1
    for sums in MORE_SUMS:
        to_unroll = REGISTERS_TO_TAKE_TURNS if steps_of_turn(p, sums) > 1 else 0
        waits = any(bound.chain > found * bound.dots for bound in bounds)
        if not waits or registers + registers_of_further_sums(p, sums, rows, vectors) + to_unroll > p.isa.registers:
            break
        found = sums
    return found


def registers_of_further_sums(p: Primitive, sums: int, rows: int, vectors: int) -> int:
    """Registers of a block for all sums but the first of each result, and of the rows' sums if it takes them."""
    return (sums - 1) * (rows * vectors + p.sums_rows_in_block)


def decodes_scaled(p: Primitive, sums: int, decoded: bool) -> bool:
    """Whether the parts of a block's columns are decoded at scales of their own, for sums of their own."""
    return p.scaled_decode != () and not decoded and sums >= p.dots_of_unit == p.parts


def steps_of_turn(p: Primitive, sums: int) -> int:
    """After which each sum of a result had its turn."""
    return -(-sums // p.dots_of_unit)


def _operand_vectors(p: Primitive, vectors: int) -> int:
    """Vectors of columns that so many vectors of accumulators take."""
    return -(-vectors * p.acc_columns // p.operand_lanes)


def _padded(units: int) -> int:
    """Units rounded up to a power of two, for the deinterleaving network."""
    return 1 << (units - 1).bit_length()


def _decoded(primitive: Primitive, stages_rhs: bool) -> bool:
    """Columns are staged as the dots take them; those of several parts as they are loaded, where the
    dots find them in broadcast rows."""
    return stages_rhs and (primitive.parts == 1 or primitive.vectors_of_rows)


@dataclass(frozen=True)
class Block:
    """Rows row .. row + rows - 1 and columns column .. column + columns - 1 of the tile. Its
    accumulators stay in registers for the whole K loop."""

    row: int
    rows: int
    column: int
    columns: int
    sums: int  # of each of its results


@dataclass(frozen=True)
class Bound:
    """The least cycles of one k step, by what they are spent on. What a block spends on dots and
    decode, loads, chain and issue overlaps, but for its contention; staging does not."""

    dots: float = 0  # vector instructions of the dots
    decode: float = 0  # vector instructions that bring columns and rows into the dots' form
    loads: float = 0
    chain: float = 0  # accumulations into the same register
    issue: float = 0  # all instructions
    staging: float = 0
    contention: float = 0  # for its own time, of what is needed for nearly as long as the most
    cycles: float = 0  # without

    def __add__(self, other: Bound) -> Bound:
        return Bound(*(a + b for a, b in zip(self.parts, other.parts)))

    def __mul__(self, times: int) -> Bound:
        return Bound(*(a * times for a in self.parts))

    @property
    def parts(self) -> tuple[float, ...]:
        return (self.dots, self.decode, self.loads, self.chain, self.issue, self.staging,
                self.contention, self.cycles)

    @property
    def contended_cycles(self) -> float:
        return self.cycles + self.contention

    @property
    def cause(self) -> str:
        """What takes most of the time."""
        causes = {"dots": self.dots + self.decode, "loads": self.loads, "chain": self.chain,
                  "issue": self.issue}
        return max(causes, key=lambda name: causes[name])


@dataclass(frozen=True)
class Plan:
    # Templates ask for the same again and again: what does not depend on the bounds, which are filled in later, is
    # worked out once.
    tile: Tile
    primitive: Primitive
    spread: int  # units of a column that lie in adjacent lanes, as partial sums
    stages_rhs: bool
    blocks: tuple[Block, ...]
    bounds: dict[str, Bound]  # by core
    on_decoded_rhs: bool = False  # which is there, decoded once for several tiles
    on_decoded_lhs: bool = False  # likewise
    panels: int = 1  # of the RHS, each with the tile's columns

    @property
    def cycles(self) -> float:
        """Of one k step, at least: the mean of the cores that choose."""
        cores = self.primitive.isa.choosing_cores
        return sum(self.bounds[core.name].cycles for core in cores) / len(cores)

    @property
    def decodes_while_waiting(self) -> bool:
        """Whether columns are decoded once, by one block, and while its sums wait for each other."""
        bounds = [self.bounds[core.name] for core in self.primitive.isa.choosing_cores]
        return len(self.blocks) == 1 and sum(b.chain for b in bounds) > sum(b.dots for b in bounds)

    @cached_property
    def units(self) -> int:
        """Units along K0."""
        return self.tile.k0 // self.primitive.k

    @cached_property
    def dots(self) -> int:
        """Dots along K0 in one k step."""
        return self.units // self.spread

    @cached_property
    def padded_units(self) -> int:
        return _padded(self.units)

    @cached_property
    def stages_lhs(self) -> bool:
        return self.primitive.stage_lhs is not None

    @cached_property
    def stages(self) -> bool:
        """Whether it does so itself, a part of the steps at a time."""
        return (self.stages_lhs and not self.on_decoded_lhs) or self.stages_rhs

    @cached_property
    def stages_in_block(self) -> bool:
        """A tile of one block keeps its accumulators in registers while it stages more steps."""
        return self.stages and not self.stages_rhs and len(self.blocks) == 1

    @cached_property
    def stages_beside_dots(self) -> bool:
        """Whether, where a tile stages in its block, each step also stages one of the next part: in vectors of its
        own, which it should fill. Rounding is long enough to be overlapped by itself."""
        tile, p = self.tile, self.primitive
        return (self.stages_in_block and self.units == 1 and 0 < p.least_rows_beside_dots <= tile.m0
                and not self.sums_while_staging and not p.rounds_in_software
                and self.registers + self._registers_to_stage_beside_dots <= p.isa.registers
                and tile.m0 >= STAGED_VECTORS_FILLED * self.staged_vectors * self.rows_of_vector)

    @cached_property
    def _registers_to_stage_beside_dots(self) -> int:
        """For a vector of rows, which may be that of columns loaded anew, or of the dots' row, if that has one part;
        and where GCC has constants of decoding, it takes as many more."""
        reloads = any(reloads_columns(self.primitive, rows, vectors, self.reads_decoded)
                      for rows, vectors in self._shapes)
        own = int(self.primitive.parts > 1 and not reloads)
        return own + self.primitive.decode_constants

    @cached_property
    def parts_lie_apart(self) -> bool:
        """Of a staged step: all rows' first part, then all rows' second one."""
        return self.stages_beside_dots and bool(self.primitive.store_parts)

    @cached_property
    def rows_of_vector(self) -> int:
        """Whose units are loaded at a time to be staged beside dots."""
        p = self.primitive
        return p.lanes if p.store_parts else p.lanes // p.parts

    @cached_property
    def staged_vectors(self) -> int:
        """Of these, in a step."""
        return -(-self.tile.m0 // self.rows_of_vector)

    @cached_property
    def stages_for_blocks(self) -> bool:
        """What all of them read, a part at a time."""
        return self.stages and not self.stages_in_block

    @cached_property
    def reads_vectors(self) -> bool:
        """Whether columns are read as vectors that were put together before, not as they lie in the panel."""
        return self.stages_rhs or self.on_decoded_rhs

    @cached_property
    def reads_decoded(self) -> bool:
        return self.on_decoded_rhs or _decoded(self.primitive, self.stages_rhs)

    @cached_property
    def staged_parts(self) -> int:
        """Vectors that a vector of columns is staged as."""
        return self.primitive.parts if self.reads_decoded else 1

    @cached_property
    def sums_panel(self) -> bool:
        """Whether there is a way to sum rows ahead of the dots, of any number, and they are: for an op, or as a
        vector of the LHS holds those of several steps."""
        p = self.primitive
        holds_steps = self.tile.m0 < p.lanes and p.lanes % self.tile.m0 == 0
        return p.panel_row_sums is not None and self.units == 1 and (self.shares_row_sums or holds_steps)

    @cached_property
    def shares_row_sums(self) -> bool:
        """Whether what it sums of its rows' panel is kept beside the decoded operand, by an op. Not sums of parts."""
        on_decoded = self.on_decoded_rhs or self.on_decoded_lhs
        return (on_decoded and self.primitive.sums_rows_before and not self.stages_for_blocks
                and self.tile.m0 <= SHARED_ROW_SUMS)

    @cached_property
    def takes_known_sums(self) -> bool:
        """Whether an op may have kept the sums of its rows from a tile before. Those that are taken while rows are
        staged cost nothing."""
        on_decoded = self.on_decoded_rhs or self.on_decoded_lhs
        return (not on_decoded and self.primitive.sums_rows and not self.sums_while_staging
                and LEAST_SUMMED_ROWS <= self.tile.m0 <= SHARED_ROW_SUMS)

    @cached_property
    def sums_while_staging(self) -> bool:
        """Whether rows are summed as they are staged: where a lane of what is loaded always belongs to the same
        row. In a pass of its own over the rows, memory would wait at the start of each panel."""
        p = self.primitive
        fills_vectors = p.lanes * p.lhs_unit_bytes == p.parts * p.isa.vector_bytes
        if not (p.sums_rows_before and self.stages_lhs and fills_vectors) or self.shares_row_sums:
            return False
        if p.lanes // p.parts % (self.tile.m0 * self.units) != 0:
            return False
        return not self.stages_in_block or self.registers + SUM_REGISTERS <= p.isa.registers

    @cached_property
    def f32_scratch(self) -> bool:
        """The accumulators of a staged tile pass through memory: not through a 16-bit OUT, unless
        they are rounded to it at every step."""
        return self.stages_for_blocks and self.primitive.numerics.endswith("f32acc")

    @cached_property
    def results_lie_apart(self) -> bool:
        """Whether a row's results of a panel are not followed by those of the next one."""
        return self.panels > 1 and self.tile.m0 > 1

    @cached_property
    def vector_columns(self) -> int:
        """Of a vector of operands."""
        return self.primitive.operand_lanes // self.spread

    def operand_vectors(self, columns: int) -> int:
        return -(-columns // self.vector_columns)

    def vectors(self, columns: int) -> int:
        """Of accumulators, for acc_rows rows."""
        return -(-columns * self.spread // self.primitive.acc_columns)

    @cached_property
    def lane_bytes(self) -> int:
        return self.primitive.lane_bits // 8

    def row_at(self, row: int, part: int) -> int:
        """Where a k step has that of a row's first unit, as the dots read it in place or staged."""
        if self.parts_lie_apart:
            return (part * self.staged_vectors * self.rows_of_vector + row) * self.lane_bytes
        return (row * self.units * self.primitive.parts + part) * self.lane_bytes

    @cached_property
    def row_step(self) -> int:
        """Bytes of a k step of the LHS as the dots read it in place or staged."""
        if self.stages_beside_dots:
            return self.staged_vectors * self.rows_of_vector * self.primitive.parts * self.lane_bytes
        unit_bytes = (self.primitive.parts * self.lane_bytes if self.stages_lhs else
                      self.primitive.lhs_unit_bytes)
        return self.tile.m0 * self.units * unit_bytes

    @cached_property
    def column_step(self) -> int:
        """Bytes of a k step of the RHS as the dots read it."""
        if self.reads_vectors:
            return (self.units * self.staged_parts * self.operand_vectors(self.tile.n0)
                    * self.primitive.isa.vector_bytes)
        return self.tile.n0 * self.units * self.primitive.rhs_unit_bytes

    @cached_property
    def stage_steps(self) -> int:
        """K steps staged at a time."""
        step = max(self.row_step if self.stages_lhs else 1,
                   self.column_step if self.stages_rhs else 1)
        most = STAGE_BYTES // step
        return max(1, min(most, steps_in_block(self.tile.m0)) if self.stages_in_block else most)

    @cached_property
    def _shapes(self) -> list[tuple[int, int]]:
        """Rows and vectors of the blocks."""
        return sorted({(b.rows, self.vectors(b.columns)) for b in self.blocks}, reverse=True)

    def _registers_with_sums(self, rows: int, vectors: int, sums: int) -> int:
        return (registers_needed(self.primitive, rows, vectors, self.reads_decoded)
                + registers_of_further_sums(self.primitive, sums, rows, vectors))

    def decodes_ahead(self, rows: int, vectors: int, sums: int) -> bool:
        """Whether each step of a block decodes the first vector of the next one ahead of its dots. A core begins with
        the oldest instructions: behind all dots of a step it would decode when these are done, and the next ones would
        wait. Results of several sums have dots enough under way, and so have those that each dot rounds."""
        p = self.primitive
        decodes_step = (p.parts == 1 and p.decode != ((),) and not p.vectors_of_rows
                        and not self.reads_vectors and not self.reads_decoded and self.dots == 1)
        rounds_behind_dots = p.round_dot is not None
        waits = rounds_behind_dots or (rows >= LEAST_ROWS_TO_DECODE_AHEAD and not p.rounds_in_software and sums == 1)
        registers = (self._registers_with_sums(rows, vectors, sums) + REGISTERS_TO_DECODE_AHEAD
                     + spare_registers(self.tile, p, self.spread))
        return p.isa.decodes_ahead and decodes_step and waits and registers <= p.isa.registers

    def registers_of(self, block: Block) -> int:
        vectors = self.vectors(block.columns)
        ahead = REGISTERS_TO_DECODE_AHEAD if self.decodes_ahead(block.rows, vectors, block.sums) else 0
        return self._registers_with_sums(block.rows, vectors, block.sums) + ahead

    @cached_property
    def registers(self) -> int:
        return max(map(self.registers_of, self.blocks))

    def describe(self) -> str:
        p, shapes = self.primitive, self._shapes
        most_sums = max(block.sums for block in self.blocks)
        blocks = " and ".join(f"{rows} rows x {v} vectors" for rows, v in shapes)
        staged = [name for name, on in (("LHS", self.stages_lhs), ("RHS", self.stages_rhs)) if on]
        return (f"{len(self.blocks)} block{'s' if len(self.blocks) > 1 else ''} of {blocks} of "
                f"{f'{p.acc_rows} x ' if p.acc_rows > 1 else ''}{p.acc_columns} lanes, "
                f"{self.dots} dot{'s' if self.dots > 1 else ''} of {p.k * self.spread} a k step, "
                f"{self.registers} of {p.isa.registers} registers"
                + (f", {self.spread} partial sums" if self.spread > 1 else "")
                + (f", up to {most_sums} sums a result" if most_sums > 1 else "")
                + (f", {self.panels} panels" if self.panels > 1 else "")
                + (f", {' and '.join(staged)} staged" if staged else "")
                + (" beside the dots" if self.stages_beside_dots else ""))


# ---------------------------------------------------------------- cost

@cache
def _block_bound(p: Primitive, core: Core, units: int, spread: int, decoded: bool, rows: int,
                 vectors: int, sums_rows: bool = False, sums: int = 1, scaled: bool = False) -> Bound:
    """One dot of each result of a block, which may sum the rows of the tile, and decode its columns scaled."""
    isa = p.isa
    if p.vectors_of_rows:
        return _block_bound_of_vectors(p, core, units, spread, decoded, rows, vectors)
    broadcasts = rows * p.parts
    dots = p.dot_cost * (p.dots_of_unit * rows * vectors)
    if sums_rows:
        dots += p.row_sums_cost
    decode = Cost() if decoded else (p.scaled_decode_cost if scaled else p.decode_cost) * vectors
    least_decode = 0 if decoded else p.decode_cycles.get(core.name, 0) * vectors
    embedded = embeds_rows(p, vectors, spread)
    if spread * p.lane_bits < isa.vector_bytes * 8 and not embedded:
        decode += Cost(shuffle=isa.broadcast_shuffles) * broadcasts
    # Loads that are no operands: those of SSE2 must be aligned, and panels need not be.
    alone = sums_rows + (0 if embedded else broadcasts)
    begins_with_shuffle = p.decode_cost.shuffle > 0 and not core.issues_shuffles_as_one
    if decoded or isa.copies_operands or p.decode == ((),) or begins_with_shuffle:
        alone += vectors
    # A dot spares its copy where it is the last one of an operand.
    copies = p.dots_of_unit * (rows - 1) * (vectors - 1) if isa.copies_operands else 0
    chain = p.chain_cycles(core, rows * vectors) * p.dots_of_unit / sums
    many = p.dot_cycles.get(core.name)
    measured = many[-1] * p.dots_of_unit * rows * vectors if many else None
    again = vectors * (p.parts - 1) if reloads_columns(p, rows, vectors, decoded) else 0
    loads = (broadcasts + core.passes * (vectors + again + sums_rows)) / core.loads
    return _bound(core, dots, decode, loads, chain, (dots + decode).total + alone + copies,
                  _loop_instructions(p, rows, vectors, decoded), measured, least_decode)


def _loop_instructions(p: Primitive, rows: int, vectors: int, decoded: bool) -> float:
    """Of a k step."""
    return LOOP_INSTRUCTIONS / (2 if unrolls_steps(p, rows, vectors, decoded, spare=0) else 1)


def _bound(core: Core, dots: Cost, decode: Cost, loads: float, chain: float, vectors: int,
           others: float, measured_dots: float | None = None, least_decode: float = 0) -> Bound:
    """With so many cycles of loads, and instructions that have vector registers and that have none. Where cycles
    were measured for the dots, so was how their chain overlaps with them."""
    issue = max((vectors + others) / core.issued, vectors / core.vectors_issued)
    needs = {"chain": chain, "loads": loads, "issue": issue}
    if measured_dots is None:
        dot_cycles = core.cycles(dots)
        needs["ports"] = max(core.cycles(dots + decode), dot_cycles + least_decode)
        decode_cycles = needs["ports"] - dot_cycles
    else:
        dot_cycles = measured_dots
        decode_cycles = max(core.cycles(decode), least_decode)
        needs["ports"] = max(dot_cycles + decode_cycles, needs.pop("chain"))
    second, first = sorted(needs, key=lambda need: needs[need])[-2:]
    return Bound(dot_cycles, decode_cycles, loads, chain, issue,
                 contention=core.contention(first, second) * needs[second], cycles=needs[first])


def _block_bound_of_vectors(p: Primitive, core: Core, units: int, spread: int, decoded: bool, rows: int,
                            vectors: int) -> Bound:
    """The same where rows are loaded as they lie: a vector of them is loaded, and decoded, for each
    dot that takes a lane of it."""
    dots = p.dot_cost * (p.parts * -(-rows // p.acc_rows) * vectors)
    columns = _operand_vectors(p, vectors)
    if p.acc_rows > 1:
        vectors_of_rows = -(-rows // p.acc_rows)
        decode = Cost(any=vectors_of_rows if units > 1 else 0)  # the rows' units are joined
    elif spread > 1:
        vectors_of_rows = rows
        decode = Cost(any=rows if spread < p.operand_lanes else 0)
    else:
        vectors_of_rows = min(rows, -(-rows * units // p.operand_lanes))
        decode = Cost()
    decode += p.decode_rows_cost * vectors_of_rows
    if not decoded:
        decode += p.decode_cost * columns
    loads = vectors_of_rows * p.row_loads + columns * (p.parts if decoded else 1)
    return _bound(core, dots, decode, core.passes * loads / core.loads, p.chain_cycles(core, 1) * p.parts,
                  (dots + decode).total + loads,
                  _loop_instructions(p, rows, vectors, decoded))


def _staging_bound(plan: Plan, core: Core) -> Bound:
    """Of a k step: one store a cycle, or what comes before it; and sums of rows, unless an op keeps those."""
    tile, p, units = plan.tile, plan.primitive, plan.units
    cycles = contention = 0.0
    if p.sums_rows_before and not plan.shares_row_sums:
        vectors = tile.m0 * units * p.lhs_unit_bytes / p.isa.vector_bytes
        cycles += vectors * max(core.passes / core.loads, core.cycles(p.row_sums_cost))
    if p.stage_lhs is not None:
        vectors = tile.m0 * units * p.parts / p.lanes
        ports = max(core.cycles(p.stage_lhs_cost), p.decode_cycles.get(core.name, 0))
        cycles += vectors * max(1.0, ports)
        contention += vectors * _staging_contention(core, ports, p.stage_lhs_cost, stores=1)
    if plan.stages_rhs:
        padded = _padded(units)
        network = p.isa.deinterleave_shuffles * (padded.bit_length() - 1)
        decoded = _decoded(p, True)
        decode, parts = (p.decode_cost, p.parts) if decoded else (Cost(), 1)
        least = p.decode_cycles.get(core.name, 0) if decoded else 0
        vectors = -(-tile.n0 // p.operand_lanes) * padded
        cost = decode + Cost(shuffle=network * parts)
        ports = max(core.cycles(cost), least)
        cycles += vectors * max(parts, ports)
        contention += vectors * _staging_contention(core, ports, cost, stores=parts)
    return Bound(staging=cycles, contention=contention, cycles=cycles)


def _staging_contention(core: Core, ports: float, cost: Cost, stores: int) -> float:
    """Of a vector that is loaded, takes the ports so long, and is stored: as in a block, but that stores, one a cycle,
    have a port of their own."""
    issue = (1 + cost.total + stores) / core.vectors_issued
    return core.contention("issue", "ports") * min(issue, ports)


# ---------------------------------------------------------------- blocks

_Score = tuple[float, float, int, int]  # cycles, then loads, blocks, and how unequal they are


def _least(total: int, most: int, score_of: dict[int, _Score]) -> tuple[_Score, list[int]]:
    """total as a sum of sizes up to `most` with the least sum of scores, larger sizes first."""
    best: list[tuple[_Score, list[int]]] = [((0, 0, 0, 0), [])]
    for n in range(1, total + 1):
        candidates = []
        for size in range(1, min(n, most) + 1):
            score, sizes = best[n - size]
            added = score_of[size]
            candidates.append(((round(score[0] + added[0], 6), score[1] + added[1],
                                score[2] + added[2], score[3] + size * size), sizes + [size]))
        best.append(min(candidates))
    score, sizes = best[total]
    return score, sorted(sizes, reverse=True)


def _vectors_of_width(columns: int, p: Primitive, spread: int, width: int) -> int:
    """Of accumulators, for so many vectors of operands."""
    return min(width * p.operand_lanes // p.acc_columns, -(-columns * spread // p.acc_columns))


def _partition(tile: Tile, columns: int, p: Primitive, spread: int, decoded: bool) -> list[tuple[int, list[int]]]:
    """Widths in vectors of operands, and for each its numbers of rows."""
    spare = spare_registers(tile, p, spread)
    total = -(-columns // (p.operand_lanes // spread))
    of_width: dict[int, tuple[_Score, list[int]]] = {}
    for width in range(1, total + 1):
        vectors = _vectors_of_width(columns, p, spread, width)
        scores: dict[int, _Score] = {}
        for rows in range(1, tile.m0 + 1):
            if registers_needed(p, rows, vectors, decoded) + spare * (rows * vectors > 1) > p.isa.registers:
                break
            # One row reads its columns from memory, which for more blocks of them takes longer. As if no block decoded
            # scaled: unequal blocks, of which one does, were 1 to 3 % faster on Zen 4, and nobody measured others.
            sums = sums_of_result(tile, p, spread, decoded, rows, vectors) if tile.m0 > 1 else 1
            bounds = [_block_bound(p, core, tile.k0 // p.k, spread, decoded, rows, vectors, sums=sums)
                      for core in p.isa.choosing_cores]
            cycles = sum(max(bound.cycles, bound.chain * CHAIN_MARGIN, bound.loads * LOAD_MARGIN)
                         for bound in bounds) / len(bounds)
            scores[rows] = (cycles, bounds[0].loads, 1, 0)
        if not scores:
            break
        of_width[width] = _least(tile.m0, len(scores), scores)
    assert of_width, "one row of one vector always fits"
    _, widths = _least(total, len(of_width), {w: score for w, (score, _) in of_width.items()})
    return [(width, of_width[width][1]) for width in widths]


def _plan(tile: Tile, p: Primitive, spread: int, stages_rhs: bool, on_decoded_rhs: bool = False,
          panels: int = 1) -> Plan:
    blocks = []
    all_columns = panels * tile.n0
    bounds = {core.name: Bound() for core in p.isa.cores}
    decoded = on_decoded_rhs or _decoded(p, stages_rhs)
    column = 0
    for width, rows_of_blocks in _partition(tile, all_columns, p, spread, decoded):
        columns = min(width * p.operand_lanes // spread, all_columns - column)
        vectors = _vectors_of_width(all_columns, p, spread, width)
        row = 0
        for rows in rows_of_blocks:
            sums = sums_of_result(tile, p, spread, decoded, rows, vectors)
            for core in p.isa.cores:
                bounds[core.name] += _block_bound(
                    p, core, tile.k0 // p.k, spread, decoded, rows, vectors,
                    sums_rows=p.sums_rows_in_block and not blocks, sums=sums,
                    scaled=decodes_scaled(p, sums, decoded))
            blocks.append(Block(row, rows, column, columns, sums))
            row += rows
        column += columns
    plan = Plan(tile, p, spread, stages_rhs, tuple(blocks), bounds, on_decoded_rhs, panels=panels)
    for core in p.isa.cores:
        bounds[core.name] = bounds[core.name] * (tile.k0 // p.k // spread) + _staging_bound(plan, core)
    return plan


_LEAST_ROWS_ON_DECODED_RHS = 4  # fewer reuse it too little
_WORTH_DECODING_ONCE = 0.98  # what that leaves of the cycles: it also takes code, and a pass over the RHS
# OUT holds the sums so far: the parts of an RHS that are decoded at a time are of few steps.
SPLITTABLE = ("exact", "fma_chain", "mul_add_chain")


def can_decode_rhs_once(tile: Tile, p: Primitive) -> bool:
    """Whether a tile that an op calls could take an RHS which is decoded once for several."""
    return (tile.m0 >= _LEAST_ROWS_ON_DECODED_RHS and tile.k0 == p.k and not p.vectors_of_rows
            and p.decode_cost.total > 0 and p.numerics in SPLITTABLE)


def plan_on_decoded_rhs(plan: Plan) -> Plan | None:
    """How the same tile is computed where it does; None if that would not be worth it."""
    tile, p = plan.tile, plan.primitive
    if not can_decode_rhs_once(tile, p):
        return None
    found = _plan(tile, p.on_decoded_columns, 1, stages_rhs=False, on_decoded_rhs=True)
    return found if found.cycles < _WORTH_DECODING_ONCE * plan.cycles else None


def can_stage_lhs_once(tile: Tile, p: Primitive) -> bool:
    """Whether an op of few rows could stage them once for all tiles."""
    can_share_sums = not p.sums_rows or (p.sums_rows_before and tile.m0 <= SHARED_ROW_SUMS)
    return (0 < p.least_rows_staged_once <= tile.m0 and p.stage_lhs is not None and p.numerics in SPLITTABLE
            and can_share_sums)


def plan_on_decoded_lhs(plan: Plan) -> Plan | None:
    """How the same tile is computed where an op has its rows staged once for several; None if it cannot, or stages its
    columns anyway, or takes panels abreast."""
    if not can_stage_lhs_once(plan.tile, plan.primitive) or plan.stages_rhs or plan_abreast(plan):
        return None
    return replace(plan, on_decoded_lhs=True)


_WORTH_READING_ABREAST = 0.95  # likewise, of the cycles on one panel after the other; from memory it gains more


def gains_in_caches(plan: Plan, abreast: Plan) -> bool:
    return abreast.cycles < _WORTH_READING_ABREAST * PANELS_ABREAST * plan.cycles


def plan_abreast(plan: Plan) -> Plan | None:
    """How a tile of few sums, whose dots would wait for each other, is computed on several RHS panels at once; None if
    that would not be worth it, or they cannot be."""
    found = _plan_abreast(plan)
    return found if found and gains_in_caches(plan, found) else None


def plan_abreast_from_memory(plan: Plan) -> Plan | None:
    """Likewise of an RHS that comes from memory, on cores with vectors as wide as those that were measured to gain."""
    found = _plan_abreast(plan)
    sums = plan.tile.m0 * plan.operand_vectors(plan.tile.n0)
    gains = plan.primitive.isa.vector_bytes == 64 and sums <= MOST_SUMS_ABREAST
    return found if found and (gains or gains_in_caches(plan, found)) else None


def _plan_abreast(plan: Plan) -> Plan | None:
    """In one block, or None. Not where columns are staged or rows are summed beside the dots, nor where dots take
    vectors of rows, as Arm's do: its tiles of few sums are written by hand."""
    tile, p = plan.tile, plan.primitive
    if plan.stages_rhs or p.sums_rows_in_block or p.vectors_of_rows or tile.n0 % plan.vector_columns != 0:
        return None
    found = _plan(tile, p, plan.spread, stages_rhs=False, panels=PANELS_ABREAST)
    if found.results_lie_apart and tile.n0 % p.acc_columns != 0:
        return None
    # Of so many vectors that are decoded in turns, GCC begins with one ahead; with two of many parts for several rows.
    ahead = 0 if p.decode_cost.total == 0 else 2 if p.parts > 2 and tile.m0 > 1 else 1
    return found if len(found.blocks) == 1 and found.registers + ahead <= p.isa.registers else None


def make_plan(tile: Tile, primitive: Primitive) -> Plan:
    if not primitive.sums_rows_in_block:
        return _best_plan(tile, primitive)
    before = _best_plan(tile, primitive.with_sums_before)
    if tile.k0 > primitive.k or tile.m0 > primitive.lanes:
        return before
    # A pass over the LHS reads it from L2 once more: worth it only where a vector holds the rows of
    # several steps, or the register of the sums would cost a block.
    if before.sums_panel:
        return before
    in_block = _best_plan(tile, primitive)
    return min(in_block, before, key=lambda plan: len(plan.blocks))


def _best_plan(tile: Tile, primitive: Primitive) -> Plan:
    p, units = primitive, tile.k0 // primitive.k
    if units == 1:
        plain = _plan(tile, p, 1, False)
        # Decoding once for all blocks of rows may be worth the detour.
        if p.decode_cost.total and _decoded(p, True):
            staged = _plan(tile, p, 1, True)
            return (staged if staged.cycles < plain.cycles * p.staging_worth and not plain.decodes_while_waiting
                    else plain)
        return plain
    # Where the order of the sum is free, adjacent lanes may hold partial sums of a column.
    may_spread = p.add is not None and units & (units - 1) == 0 and units <= p.operand_lanes
    if p.vectors_of_rows:
        found = [_plan(tile, p, 1, True)]
        if may_spread and p.acc_rows == 1:
            found.append(_plan(tile, p, units, False))
        return min(found, key=lambda plan: plan.cycles)
    return _plan(tile, p, units, False) if may_spread and p.parts == 1 else _plan(tile, p, 1, True)
