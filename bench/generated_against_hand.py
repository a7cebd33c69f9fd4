"""How fast the generator's own versions of the hand-written mmt4d tiles are.

python3 bench/generated_against_hand.py BENCH_DIR [--level LEVEL]... [--cc CC] [--repeat N]

BENCH_DIR is the `bench` folder of a build: its bench_<arch>_<level> time tiles of shared objects, in L1.
Prints the speed of each generated tile in percent of the hand-written one, slowest first. Both come
compiled alike, in several places (bench/placements.py).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.placements import Sources, medians, shared_objects  # noqa: E402
from bench.tile_runs import ARCH, passes  # noqa: E402
from generator import library  # noqa: E402
from generator.build import Compiler  # noqa: E402
from generator.isas import primitives  # noqa: E402
from generator.model import Tile  # noqa: E402


def measure(bench: Path, level: str, cc: str, repeat: int) -> dict[str, float]:
    """Percent of the hand-written tile's speed by symbol."""
    tiles = tuple(tile for tile in library.hand_rows(ARCH)
                  if isinstance(tile, Tile) and tile.isa == level)
    compiler = Compiler.find(cc)
    sources = (Sources("hand", library.ROOT / "arch" / ARCH / level / "mmt4d.cc", ()),
               Sources("generated", None, tiles))
    with tempfile.TemporaryDirectory() as directory:
        ways = {s.name: shared_objects(s, level, compiler, Path(directory)) for s in sources}
        found = medians(bench, level, ways, repeat)
    return {symbol: 100 * ns["hand"] / ns["generated"] for symbol, ns in found.items()}


def main() -> int:
    # The generator has no version of AMX's.
    levels = sorted({tile.isa for tile in library.hand_rows(ARCH)
                     if isinstance(tile, Tile) and primitives(ARCH)[tile.isa]})
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, metavar="BENCH_DIR")
    parser.add_argument("--level", action="append", choices=levels,
                        help="only this one; may be given more than once")
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--repeat", type=passes, default=3, metavar="N", help="passes, 3 by default")
    options = parser.parse_args()
    for level in options.level or levels:
        percents = measure(options.bench, level, options.cc, options.repeat)
        for symbol, percent in sorted(percents.items(), key=lambda item: item[1]):
            print(f"{percent:6.1f} % {symbol}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
