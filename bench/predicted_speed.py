"""How fast Arm's cores should run the K loops of arm_64's mmt4d tiles: a static prediction.

python3 bench/predicted_speed.py LIBUKERNEL_A [--filter REGEX] [--generated] [--update FILE]

The loops are taken from a library that was built for Arm, and llvm-mca schedules them, operands in
L1, on its models of the cores. A core's peak is that of the loop's multiply-add alone, its model's
again, each on a register of its own. So the table tells what the other instructions of a loop cost,
and no more: caches, memory and what a model does not know are not in it. A tile that works in several
blocks of rows is the mean of their loops. --update writes the table between the lines
<!-- predicted --> and <!-- /predicted --> of a Markdown file.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "generator")]

from generator import library  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.model import Tile  # noqa: E402
from spill_test import Instruction, disassemble, k_loops  # noqa: E402

MCA = "llvm-mca-19"
ITERATIONS = 200
FEATURES = "+dotprod,+fullfp16,+fp16fml,+bf16,+i8mm"

# The cores, and the levels that they have: a model knows no others' speed.
_ARMV8_2 = ("neon", "fullfp16", "dotprod")
_ALL = (*_ARMV8_2, "fp16fml", "bf16", "i8mm")
CORES = {"cortex-a55": _ARMV8_2, "neoverse-n1": _ARMV8_2, "neoverse-v1": _ALL, "neoverse-v2": _ALL}

_REGISTER = re.compile(r"v\d+")


@dataclass(frozen=True)
class Loop:
    instructions: tuple[Instruction, ...]

    @property
    def dots(self) -> list[Instruction]:
        return [i for i in self.instructions if i.assembly.dot.match(i.mnemonic)]

    @property
    def prefetches(self) -> bool:
        return any(i.mnemonic == "prfm" for i in self.instructions)

    @property
    def text(self) -> str:
        """For llvm-mca, which has no use for where a jump leads."""
        return "\n".join("b.ne ." if i.assembly.jump.match(i.mnemonic) else i.text for i in self.instructions)

    @property
    def multiply_add(self) -> str:
        """Its dots' instruction, of either half of its operand, on registers for a format string."""
        written = Counter(_REGISTER.sub("v{}", f"{i.mnemonic} {i.operands}") for i in self.dots)
        return re.sub(r"\[\d+\]", "[0]", written.most_common(1)[0][0])


def main_loops(loops: list[Loop]) -> list[Loop]:
    """Those that do the work: steps that are left over and sums of rows have fewer dots."""
    loops = [loop for loop in loops if not loop.prefetches]
    most = max(len(loop.dots) for loop in loops)
    return [loop for loop in loops if 2 * len(loop.dots) > most]


def cycles(core: str, texts: list[str]) -> list[float]:
    """An iteration of each."""
    regions = "".join(f"# LLVM-MCA-BEGIN {i}\n{text}\n# LLVM-MCA-END\n" for i, text in enumerate(texts))
    command = [MCA, "-march=aarch64", f"-mcpu={core}", f"-mattr={FEATURES}",
               f"-iterations={ITERATIONS}", "-resource-pressure=false", "-instruction-info=false"]
    run = subprocess.run(command, input=regions, text=True, capture_output=True)
    found = re.findall(r"^Total Cycles: +(\d+)$", run.stdout, re.MULTILINE)
    if run.returncode or len(found) != len(texts):
        raise SystemExit(f"{MCA} for {core} failed: {run.stderr[:1000]}")
    return [int(total) / ITERATIONS for total in found]


def peak_text(multiply_add: str) -> str:
    """As many as cover any latency, each with an accumulator; v15 may be an operand by the lane."""
    accumulators = [register for register in range(30) if register != 15][:24]
    return "\n".join(multiply_add.format(register, 30, 15) for register in accumulators)


@dataclass(frozen=True)
class TileLoops:
    tile: Tile
    loops: list[Loop]


def hand_written() -> list[Tile]:
    """In the order of their rows."""
    tiles = [tile for tile in library.hand_rows("arm_64") if isinstance(tile, Tile)]
    return sorted(tiles, key=lambda tile: _ALL.index(tile.isa))


def read_tiles(path: str, pattern: str, generated: bool) -> list[TileLoops]:
    loops: dict[Tile, list[Loop]] = {}
    for function in disassemble(path, "arm_64"):
        if "abreast" in function.name:  # a form for ops, on several RHS panels
            continue
        found = [Loop(tuple(instructions)) for instructions in k_loops(function)]
        loops.setdefault(Tile.from_symbol(function.tile), []).extend(found)
    by_hand = hand_written()
    others = sorted(loops.keys() - set(by_hand), key=lambda tile: tile.symbol)
    if missing := [tile for tile in by_hand if tile not in loops]:
        raise SystemExit(f"{path} has no {missing[0].symbol}")
    return [TileLoops(tile, main_loops(loops[tile])) for tile in by_hand + others * generated
            if re.search(pattern, tile.symbol)]


def percentages(core: str, tiles: list[TileLoops]) -> dict[Tile, float]:
    """Of the peak, for the tiles whose level the core has."""
    tiles = [t for t in tiles if t.tile.isa in CORES[core]]
    kinds = list({loop.multiply_add: None for t in tiles for loop in t.loops})
    texts = [peak_text(kind) for kind in kinds] + [loop.text for t in tiles for loop in t.loops]
    if not tiles:
        return {}
    measured = cycles(core, texts)
    peak = {kind: 24 / total for kind, total in zip(kinds, measured)}
    totals = iter(measured[len(kinds):])
    found = {}
    for t in tiles:
        ideal = sum(len(loop.dots) / peak[loop.multiply_add] for loop in t.loops)
        found[t.tile] = 100 * ideal / sum(next(totals) for _ in t.loops)
    return found


def table(tiles: list[TileLoops]) -> str:
    by_core = {core: percentages(core, tiles) for core in CORES}
    lines = ["Static predictions by llvm-mca of the K loops, operands in L1, in % of what the core does of",
             "the loop's multiply-add alone; nothing here was measured. *Loop* is its instructions, and how",
             "many of them are multiply-adds.", "",
             f"| tile | level | loop | {' | '.join(CORES)} |",
             f"|---|---|--:|{'--:|' * len(CORES)}"]
    for t in tiles:
        tile, loop = t.tile, t.loops[0]
        cells = [f"{by_core[core][tile]:.0f}" if tile in by_core[core] else "–" for core in CORES]
        name = f"{tile.type.name} {tile.m0}x{tile.n0}x{tile.k0}{' f32acc' * tile.f32acc}"
        lines.append(f"| {name} | {tile.isa} | {len(loop.instructions)} / {len(loop.dots)} | "
                     f"{' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBUKERNEL_A")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only tiles whose symbol matches")
    parser.add_argument("--generated", action="store_true", help="the generated tiles as well")
    parser.add_argument("--update", metavar="FILE", type=Path)
    options = parser.parse_args()
    if not shutil.which(MCA):
        raise SystemExit(f"no {MCA} (Debian: llvm-19)")
    text = table(read_tiles(options.library, options.filter, options.generated))
    if options.update:
        replace_block(options.update, "predicted", text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
