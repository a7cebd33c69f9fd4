"""How fast the generator's own versions of the hand-written mmt4d tiles are.

python3 bench/generated_against_hand.py BENCH_DIR [--level LEVEL]... [--cc CC] [--repeat N]

BENCH_DIR is the `bench` folder of a build: its bench_<arch>_<level> time both in turns, in L1. Prints
the speed of each generated tile in percent of the hand-written one, slowest first. Each time is the
best of N passes, which take turns over all tiles: what shares the core disturbs one for seconds.
"""

from __future__ import annotations

import argparse
import os
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


def build(level: str, cc: str, directory: Path) -> Path:
    """A shared object with the generated versions of the level's hand-written tiles."""
    tiles = [tile for tile in library.hand_rows(ARCH)
             if isinstance(tile, Tile) and tile.isa == level]
    compiler = Compiler.find(cc)
    flags = [*compiler.flags(ARCH, level, "obj"), f"-I{ROOT}"]

    def make(first: int) -> str:
        name = f"{level}_{first}"
        (directory / f"{name}.cc").write_text(emit(
            make_plan(tile, choose_primitive(tile))
            for tile in tiles[first:first + TILES_PER_FILE]))
        compiler.run(name, directory, [*flags, "-c", f"{name}.cc", "-o", f"{name}.o"])
        return f"{name}.o"

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(make, range(0, len(tiles), TILES_PER_FILE)))
    compiler.run(level, directory, ["-shared", "-nostdlib", "-o", f"{level}.so", *objects])
    return directory / f"{level}.so"


def measure(directory: Path, level: str, shared: Path, repeat: int) -> dict[str, float]:
    """Percent of the hand-written tile's speed by symbol; nothing where the CPU lacks the level."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(repeat):
        for symbol, figures in (run(directory, level, f"--against={shared}") or {}).items():
            now = figures["ns"], figures["library_ns"]
            generated, hand = best.get(symbol, now)
            best[symbol] = min(generated, now[0]), min(hand, now[1])
    return {symbol: 100 * hand / generated for symbol, (generated, hand) in best.items()}


def main() -> int:
    levels = sorted({tile.isa for tile in library.hand_rows(ARCH) if isinstance(tile, Tile)})
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, metavar="BENCH_DIR")
    parser.add_argument("--level", action="append", choices=levels,
                        help="only this one; may be given more than once")
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--repeat", type=int, default=8, metavar="N", help="passes, 8 by default")
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
