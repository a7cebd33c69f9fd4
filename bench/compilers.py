"""How fast the library's mmt4d tiles are when another compiler makes them.

python3 bench/compilers.py BENCH_DIR --cc CC... [--against CC] [--level LEVEL]... [--repeat N] [--update FILE]

BENCH_DIR is the `bench` folder of a build: its bench_<arch>_<level> time tiles of shared objects, in L1.
All tiles of a level, hand-written and generated, are compiled by each compiler, with the flags that it gets
in a build, and timed in turns, in several places (bench/placements.py). Prints for each level how fast they are
in percent of those by the compiler of --against (c++). --update writes the table between the lines
<!-- compilers --> and <!-- /compilers --> of a Markdown file.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.placements import Sources, medians, shared_objects  # noqa: E402
from bench.tile_runs import ARCH, core_name, cpu_name, passes  # noqa: E402
from generator import library  # noqa: E402
from generator.build import Compiler  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.model import RequestError, Tile  # noqa: E402
from generator.tiles import generated_rows  # noqa: E402

NEARLY = 95  # percent
LISTED = 3


def measure(bench: Path, level: str, compilers: list[Compiler],
            repeat: int) -> dict[str, dict[str, float]]:
    """Nanoseconds by symbol and compiler."""
    file = library.ROOT / "arch" / ARCH / level / "mmt4d.cc"
    generated = tuple(row.tile for row in generated_rows(ARCH)
                      if isinstance(row.tile, Tile) and row.tile.isa == level)
    with tempfile.TemporaryDirectory() as directory:
        ways = {compiler.name: shared_objects(
            Sources(f"by{number}", file if file.exists() else None, generated), level, compiler,
            Path(directory)) for number, compiler in enumerate(compilers)}
        return medians(bench, level, ways, repeat)


def row(level: str, name: str, percents: dict[str, float]) -> str:
    slowest = sorted(percents, key=lambda symbol: percents[symbol])[:LISTED]
    listed = ", ".join(
        f"{Tile.from_symbol(symbol).type.name} {shape(symbol)} {percents[symbol]:.0f}" for symbol in slowest)
    under = sum(percent < NEARLY for percent in percents.values())
    return (f"| {level} | {name} | {len(percents)} | {statistics.geometric_mean(percents.values()):.1f} "
            f"| {under} | {listed} |")


def shape(symbol: str) -> str:
    tile = Tile.from_symbol(symbol)
    return f"{tile.m0}x{tile.n0}x{tile.k0}" + (" f32acc" if tile.f32acc else "")


def short_name(compiler: Compiler) -> str:
    """Without the distribution's own."""
    version = re.search(r"\d+\.\d+\.\d+", compiler.version.splitlines()[0])
    return f"{'GCC' if compiler.id == 'GNU' else compiler.id} {version[0] if version else '?'}"


def main() -> int:
    levels = list(library.levels(ARCH))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, metavar="BENCH_DIR")
    parser.add_argument("--cc", nargs="+", required=True, help="the compilers")
    parser.add_argument("--against", default="c++", metavar="CC")
    parser.add_argument("--level", action="append", choices=levels,
                        help="only this one; may be given more than once")
    parser.add_argument("--repeat", type=passes, default=3, metavar="N", help="passes, 3 by default")
    parser.add_argument("--update", type=Path, metavar="FILE")
    options = parser.parse_args()
    reference, *others = compilers = [Compiler.find(name) for name in (options.against, *options.cc)]
    lines = [f"Percent of the speed by {short_name(reference)} ({cpu_name()}, {core_name()}, {date.today()}):", "",
             f"| level | compiler | tiles | geometric mean | under {NEARLY} % | slowest |",
             "|---|---|---|---|---|---|"]
    for level in options.level or levels:
        found = measure(options.bench, level, compilers, options.repeat)
        for compiler in others if found else ():
            lines.append(row(level, short_name(compiler), {
                symbol: 100 * ns[reference.name] / ns[compiler.name] for symbol, ns in found.items()}))
    block = "\n".join(lines) + "\n"
    if options.update:
        replace_block(options.update, "compilers", block)
    else:
        print(block, end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RequestError as error:
        sys.exit(str(error))
