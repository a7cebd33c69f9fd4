"""How fast the generator's own versions of the hand-written mmt4d tiles are.

python3 bench/generated_against_hand.py BENCH_DIR [--level LEVEL]... [--cc CC] [--repeat N]

BENCH_DIR is the `bench` folder of a build: its bench_<arch>_<level> time tiles of shared objects, in L1.
Prints the speed of each generated tile in percent of the hand-written one, slowest first. Where the
linker puts a loop decides about up to a seventh of its time, so both come compiled alike, in objects
that begin at each multiple of 16 bytes in a line of code: compared are the medians of these, of which
each is the best of N passes, which take turns over all: what shares the core disturbs one for seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.tile_runs import ARCH, run  # noqa: E402
from generator import library  # noqa: E402
from generator.build import Compiler  # noqa: E402
from generator.emit import emit  # noqa: E402
from generator.library_build import TILES_PER_FILE  # noqa: E402
from generator.model import Tile  # noqa: E402
from generator.plan import make_plan  # noqa: E402
from generator.select import choose_primitive  # noqa: E402

CODE_LINE, FUNCTION_ALIGNMENT = 64, 16
PLACEMENTS = range(0, CODE_LINE, FUNCTION_ALIGNMENT)


def build(level: str, cc: str, directory: Path) -> dict[str, list[Path]]:
    """Shared objects with the level's hand-written tiles, "hand", and with their generated versions,
    "generated": one for each placement."""
    tiles = [tile for tile in library.hand_rows(ARCH)
             if isinstance(tile, Tile) and tile.isa == level]
    compiler = Compiler.find(cc)
    flags = [*compiler.flags(ARCH, level, "obj"), f"-I{ROOT}"]

    def compile_source(source: Path) -> str:
        compiler.run(source.name, directory, [*flags, "-c", str(source), "-o", f"{source.stem}.o"])
        return f"{source.stem}.o"

    def generate(first: int) -> str:
        source = directory / f"generated_{first}.cc"
        source.write_text(emit(make_plan(tile, choose_primitive(tile))
                               for tile in tiles[first:first + TILES_PER_FILE]))
        return compile_source(source)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        hand = pool.submit(compile_source, ROOT / "arch" / ARCH / level / "mmt4d.cc")
        generated = list(pool.map(generate, range(0, len(tiles), TILES_PER_FILE)))
    shared: dict[str, list[Path]] = {}
    for bytes_before in PLACEMENTS:
        before = directory / f"before_{bytes_before}.cc"
        before.write_text(f'asm(".text\\n.balign {CODE_LINE}\\n.skip {bytes_before}");\n')
        first = compile_source(before)
        for kind, objects in (("hand", [hand.result()]), ("generated", generated)):
            name = f"{kind}_{bytes_before}.so"
            compiler.run(name, directory, ["-shared", "-nostdlib", "-o", name, first, *objects])
            shared.setdefault(kind, []).append(directory / name)
    return shared


def measure(directory: Path, level: str, shared: dict[str, list[Path]], repeat: int) -> dict[str, float]:
    """Percent of the hand-written tile's speed by symbol; nothing where the CPU lacks the level."""
    best: dict[str, dict[tuple[str, int], float]] = {}  # nanoseconds by symbol
    for _ in range(repeat):
        for placement in range(len(PLACEMENTS)):
            for kind, objects in shared.items():
                found = run(directory, level, f"--against={objects[placement]}") or {}
                for symbol, figures in found.items():
                    of_symbol = best.setdefault(symbol, {})
                    at = kind, placement
                    of_symbol[at] = min(of_symbol.get(at, figures["ns"]), figures["ns"])

    def median(of_symbol: dict[tuple[str, int], float], kind: str) -> float:
        return statistics.median(ns for (k, _), ns in of_symbol.items() if k == kind)

    return {symbol: 100 * median(found, "hand") / median(found, "generated")
            for symbol, found in best.items()}


def main() -> int:
    levels = sorted({tile.isa for tile in library.hand_rows(ARCH) if isinstance(tile, Tile)})
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, metavar="BENCH_DIR")
    parser.add_argument("--level", action="append", choices=levels,
                        help="only this one; may be given more than once")
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="passes, 3 by default")
    options = parser.parse_args()
    for level in options.level or levels:
        with tempfile.TemporaryDirectory() as directory:
            shared = build(level, options.cc, Path(directory))
            percents = measure(options.bench, level, shared, options.repeat)
        for symbol, percent in sorted(percents.items(), key=lambda item: item[1]):
            print(f"{percent:6.1f} % {symbol}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
