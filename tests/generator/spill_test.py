"""No K loop spills, moves its accumulators or loads columns twice: spill_test.py <libukernel.a> [arch], which
objdump disassembles.

A K loop is a loop with a dot in it, an FMA, a dot product, or a multiplication and an addition, and with no
smaller one that has a dot. In it,

- a whole vector register stored to a fixed slot of the stack is a spill: an accumulator that left its
  register, or a value of this iteration for which there was none. A fixed slot has the stack or frame
  pointer as its base, a constant offset and no index: the same memory in every iteration. Staged
  operands are on the stack as well, but what a tile writes there moves from step to step, so its
  address has an index or another base register.
- a call would save and restore every accumulator. (Not those of AMX, which no compiler saves: a tile that
  transposes its LHS calls a function for that.)
- a register copied to another one, in more than MOST_MOVES of the loop's instructions, is an accumulator
  that the compiler renames every step. (Not counted at SSE2, whose instructions overwrite an operand.)
- two dots with the same vector in memory as their operand load it twice: from L2 that took half as long
  again. (Not what is decoded ahead, which lies in L1, nor rows that an operand broadcasts.)
- a fixed slot that is only read holds an invariant, a constant mostly. That costs a load, which
  mostly folds into the instruction that uses it, and is noted only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Iterable, Iterator

_FUNCTION = re.compile(r"[0-9a-f]+ <(.*)>:$")
_INSTRUCTION = re.compile(r" *([0-9a-f]+):\t(\S+) *(.*)")
_TILE = re.compile(r"(uk_mmt4d_tile_\w+?)(?:_strided)?(?:_blocks.*)?$")


@dataclass(frozen=True)
class Assembly:
    """How objdump writes an architecture's instructions."""

    objdump: str
    dot: re.Pattern[str]
    product: re.Pattern[str]  # of a dot that is a product and a sum
    sum: re.Pattern[str]
    slot: re.Pattern[str]  # an operand in memory, and its base
    vector: re.Pattern[str]  # operands that are whole vectors
    not_vector: re.Pattern[str]  # or parts of them, all the same
    narrow: re.Pattern[str]  # instructions that move part of a vector
    store: re.Pattern[str] | None  # None: where the slot is the last operand
    stack_pointer: str
    frame_pointer: str
    makes_frame_pointer: tuple[str, str]
    jump: re.Pattern[str]
    ends_path: re.Pattern[str]
    call: str
    move: re.Pattern[str]  # of a whole register to another
    memory: re.Pattern[str]  # a dot's vector that is not in a register, but for invariants


ASSEMBLY = {
    "x86_64": Assembly(
        objdump="objdump", dot=re.compile(r"v?fn?m(add|sub)\d+p|vpdp|vdpbf16ps|tdp"),
        product=re.compile(r"v?pmadd|v?mulp[sd]$"), sum=re.compile(r"v?padd[dq]$|v?addp[sd]$"),
        slot=re.compile(r"(?<![\w%)])(-?(?:0x[0-9a-f]+)?)\(%(rsp|rbp)\)"),
        vector=re.compile(r"%[xyz]mm\d+"), not_vector=re.compile(r"\{(%k|1to)"),
        narrow=re.compile(r"v?mov([dq]|s[sd]|[lh]p[sd]|ddup)|v?p?broadcast.*|v?pmov[sz]x.*|"
                          r"v?cvt(ph2ps|ps2pd)|v?p?(insr|extr|insert|extract).*|"
                          r"v?(add|sub|mul|div)s[sd]"),
        store=None, stack_pointer="rsp", frame_pointer="rbp", makes_frame_pointer=("mov", "%rsp,%rbp"),
        jump=re.compile("j"), ends_path=re.compile("jmp|ret|ud2"), call="call",
        move=re.compile(r"vmov(dqa(32|64)?|dqu(8|16|32|64)?|[au]p[sd]) %\w+,%\w+"),
        memory=re.compile(r"-?(0x[0-9a-f]+)?\((?!%r[is]p)[^)]+\)(?!\{1to)")),
    "arm_64": Assembly(
        objdump="aarch64-linux-gnu-objdump",
        dot=re.compile(r"fmlal?2?$|bfmmla|bfdot|smlal2?$|[su]{1,2}dot|us?mmla|smmla"),
        product=re.compile("(?!)"), sum=re.compile("(?!)"),
        # A pre- or post-indexed address moves.
        slot=re.compile(r"\[(sp|x29)(?:, (#-?\d+))?\](?!,|!)"), vector=re.compile(r"\b[qv]\d+|\bd\d+"),
        not_vector=re.compile(r"\}\[\d+\]"), narrow=re.compile("ld1r|ld[234].*"),
        store=re.compile("st"), stack_pointer="sp", frame_pointer="x29",
        makes_frame_pointer=("mov", "x29, sp"),
        jump=re.compile(r"b$|b\.|cbn?z|tbn?z"), ends_path=re.compile("b$|ret|br$|udf"), call="bl",
        move=re.compile(r"mov v\d+\.16b, v\d+\.16b"), memory=re.compile("(?!)")),
}
MOST_MOVES = 0.28  # GCC 12 renames some of the accumulators of two FMAs a step


@dataclass
class Instruction:
    address: int
    mnemonic: str
    operands: str
    assembly: Assembly

    @property
    def text(self) -> str:
        return f"{self.mnemonic} {self.operands}".strip()

    @property
    def target(self) -> int | None:
        """Of a jump inside the function."""
        if not self.assembly.jump.match(self.mnemonic):
            return None
        found = re.search(r"\b([0-9a-f]+) <", self.operands)
        return int(found[1], 16) if found else None

    @property
    def is_call(self) -> bool:
        return self.mnemonic.startswith(self.assembly.call)

    @property
    def ends_path(self) -> bool:
        return self.assembly.ends_path.match(self.mnemonic) is not None


@dataclass
class Function:
    name: str
    assembly: Assembly
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def tile(self) -> str:
        found = _TILE.search(self.name)
        return found[1] if found else ""


def disassemble(library: str, arch: str) -> Iterator[Function]:
    """The functions of mmt4d tiles: the tile's own, and the blocks of rows that it calls."""
    assembly = ASSEMBLY[arch]
    command = [assembly.objdump, "-d", "--no-show-raw-insn", "-w", library]
    function = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if header := _FUNCTION.match(line):
                if function and function.tile:
                    yield function
                function = Function(header[1], assembly)
            elif function and (found := _INSTRUCTION.match(line)):
                mnemonic, operands = found[2], found[3].partition("//")[0].strip()
                while mnemonic in ("{vex}", "{evex}", "notrack", "bnd"):
                    mnemonic, _, operands = operands.partition(" ")
                function.instructions.append(
                    Instruction(int(found[1], 16), mnemonic, operands.strip(), assembly))
        if function and function.tile:
            yield function
    if process.returncode:
        raise SystemExit(f"objdump {library} failed")


# ---------------------------------------------------------------- loops

_Graph = dict[int, list[int]]


def _has_dot(instructions: list[Instruction]) -> bool:
    a, mnemonics = instructions[0].assembly, [i.mnemonic for i in instructions]
    return (any(map(a.dot.match, mnemonics))
            or any(map(a.product.match, mnemonics)) and any(map(a.sum.match, mnemonics)))


def _cycles(after: _Graph, nodes: set[int]) -> Iterator[set[int]]:
    """The strongly connected components of a part of the graph that hold a cycle (Kosaraju)."""
    before: _Graph = {node: [] for node in nodes}
    for node in nodes:
        for target in after[node]:
            if target in nodes:
                before[target].append(node)
    finished: list[int] = []
    seen: set[int] = set()
    for root in nodes:
        stack = [(root, iter(after[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            node, targets = stack[-1]
            target = next((t for t in targets if t in nodes and t not in seen), None)
            if target is None:
                finished.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(after[target])))
    placed: set[int] = set()
    for root in reversed(finished):
        component, waiting = set(), [root]
        while waiting:
            node = waiting.pop()
            if node not in placed:
                placed.add(node)
                component.add(node)
                waiting += before[node]
        if len(component) > 1 or root in after[root]:
            yield component


def k_loops(function: Function) -> list[list[Instruction]]:
    """The innermost loops with a dot. A loop is a cycle of the control flow, and the loops in it are
    the cycles that stay when the instructions at which it is entered are taken out. (A jump back need
    not lead to these: compilers enter loops in the middle.)"""
    instructions = function.instructions
    at = {instruction.address: i for i, instruction in enumerate(instructions)}
    after: _Graph = {}
    for i, instruction in enumerate(instructions):
        after[i] = [] if instruction.ends_path or i + 1 == len(instructions) else [i + 1]
        # A jump to the next instruction is a tail call that the linker has yet to resolve.
        if (target := instruction.target) in at and at[target] != i + 1:
            after[i].append(at[target])

    def cycles_with_a_dot(nodes: set[int]) -> list[set[int]]:
        return [cycle for cycle in _cycles(after, nodes) if _has_dot([instructions[i] for i in cycle])]

    loops = []
    waiting = cycles_with_a_dot(set(after))
    while waiting:
        loop = waiting.pop()
        entries = {target for node, targets in after.items() if node not in loop
                   for target in targets} & loop
        inner = cycles_with_a_dot(loop - (entries or {min(loop)}))
        waiting += inner
        if not inner:
            loops.append([instructions[i] for i in sorted(loop)])
    return loops


# ---------------------------------------------------------------- spills

def _frame_pointer(function: Function) -> bool:
    return any((i.mnemonic, i.operands) == function.assembly.makes_frame_pointer
               for i in function.instructions)


def vector_slots(function: Function, loop: Iterable[Instruction]) -> tuple[dict, dict]:
    """The instructions that store a vector to a fixed slot, and those that read one, by slot."""
    a = function.assembly
    bases = {a.stack_pointer, a.frame_pointer} if _frame_pointer(function) else {a.stack_pointer}
    stores: dict[str, list[Instruction]] = {}
    loads: dict[str, list[Instruction]] = {}
    for instruction in loop:
        operands = instruction.operands
        slot = a.slot.search(operands)
        if (slot and bases & set(slot.groups()) and a.vector.search(operands)
                and not a.not_vector.search(operands)
                and not a.narrow.fullmatch(instruction.mnemonic)):
            stored = (a.store.match(instruction.mnemonic) is not None if a.store else
                      operands.endswith(slot[0]))
            by_slot = stores if stored else loads
            by_slot.setdefault(slot[0], []).append(instruction)
    return stores, loads


def what_spills(function: Function, loop: list[Instruction]) -> tuple[list[Instruction], int]:
    """Calls, and what touches the slots that the loop writes; and how many slots it only reads."""
    stores, loads = vector_slots(function, loop)
    touching = [i for slot in stores for i in stores[slot] + loads.get(slot, [])]
    multiplies_tiles = any(i.mnemonic.startswith("tdp") for i in loop)
    calls = [i for i in loop if i.is_call and not multiplies_tiles]
    return calls + touching, len(loads.keys() - stores.keys())


def loaded_twice(loop: list[Instruction]) -> list[Instruction]:
    """Dots that are one instruction, with an operand in memory that is another one's too."""
    seen: set[str] = set()
    repeated = []
    for instruction in loop:
        a, operands = instruction.assembly, instruction.operands
        memory = a.memory.search(operands) if a.dot.match(instruction.mnemonic) else None
        if memory and memory[0] in seen:
            repeated.append(instruction)
        if memory:
            seen.add(memory[0])
        written = operands.rpartition(",")[2]  # of x86, where a pointer moves on
        if written.startswith("%r"):
            seen = {address for address in seen if written not in address}
    return repeated


def check(library: str, arch: str, of_library: bool = True) -> int:
    """Of tiles of odd shapes, which a library without extra tiles does not have, one without a loop is right, too:
    what is staged may be a step at a time. So is one that loads twice for want of registers."""
    loops: dict[str, int] = {}
    wrong: dict[str, list[str]] = {}
    rereads: dict[str, int] = {}
    for function in disassemble(library, arch):
        tile = function.tile
        loops.setdefault(tile, 0)
        for loop in k_loops(function):
            loops[tile] += 1
            spilled, reread = what_spills(function, loop)
            if spilled:
                wrong.setdefault(tile, []).append(f"{spilled[0].text} at {spilled[0].address:#x} in "
                                                  f"{function.name}, and {len(spilled) - 1} more")
            if of_library and "on_decoded_rhs" not in function.name and (repeated := loaded_twice(loop)):
                wrong.setdefault(tile, []).append(f"{repeated[0].text} at {repeated[0].address:#x} in "
                                                  f"{function.name} and {len(repeated) - 1} more load a vector again")
            moves = sum(1 for i in loop if ASSEMBLY[arch].move.fullmatch(i.text))
            if moves > MOST_MOVES * len(loop):
                wrong.setdefault(tile, []).append(f"{moves} of {len(loop)} instructions in "
                                                  f"{function.name} copy a register")
            if reread:
                rereads[tile] = max(reread, rereads.get(tile, 0))
    for tile, texts in sorted(wrong.items()):
        print(f"FAIL {tile}: {len(texts)} of {loops[tile]} K loops spill, copy or load twice: {texts[0]}")
    without = sorted(tile for tile, count in loops.items() if not count and of_library)
    for tile in without:
        print(f"FAIL {tile}: no K loop found")
    for tile, count in sorted(rereads.items()):
        print(f"note {tile}: {count} invariant vectors are kept on the stack")
    print(f"{len(loops)} tiles, {sum(loops.values())} K loops, {len(wrong)} tiles spill, copy or load twice")
    return 1 if wrong or without or not loops else 0


if __name__ == "__main__":
    arch = sys.argv[2] if len(sys.argv) > 2 else "x86_64"
    if not shutil.which(ASSEMBLY[arch].objdump):
        print(f"skipped: no {ASSEMBLY[arch].objdump} (Debian: binutils, binutils-aarch64-linux-gnu)")
        sys.exit()
    sys.exit(check(sys.argv[1], arch))
