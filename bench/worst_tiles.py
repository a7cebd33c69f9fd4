"""Which generated tiles are farthest from what the CPU could do, panels in L1.

python3 bench/worst_tiles.py BENCH_DIR [--level LEVEL]... [--repeat N] [--update FILE [--block NAME]]

BENCH_DIR is the `bench` folder of a build: its bench_<arch>_<level> measure each tile against the peak
of the type's instruction. Of the tiles with at least 64 results, those are listed that stay under
60 % of it, beside the bound that the planner computes for them (generator/plan.py) and what it is
made of: the farthest from it. Speeds and peaks are the best of N passes, which take turns over all
tiles: what shares the core disturbs one for seconds. A second table has how fast s8s4s32 is by s8s8s32.
--update writes the tables between the lines <!-- worst --> and <!-- /worst --> of a Markdown file, or those that
--block names. The exit code is 77 if the CPU has none of the levels.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.tile_runs import ABSENT_LEVEL, ARCH, core_name, cpu_name, passes, run  # noqa: E402
from generator import library  # noqa: E402
from generator.document import replace_block  # noqa: E402
from generator.isa_x86 import PRIMITIVES  # noqa: E402
from generator.model import Core, Primitive, Tile  # noqa: E402
from generator.plan import Bound, Plan, make_plan  # noqa: E402
from generator.select import choose_primitive  # noqa: E402
from generator.tiles import generated_rows  # noqa: E402

MOST_REPORTED = 60  # percent of the peak above which a tile needs no explanation
LISTED = 24


@dataclass(frozen=True)
class Measured:
    plan: Plan
    percent: float  # of the instruction's peak
    products_per_cycle: float
    core: str

    @property
    def bound(self) -> Bound:
        return self.plan.bounds[self.core]

    @property
    def of_bound(self) -> float:
        tile = self.plan.tile
        products = tile.m0 * tile.n0 * tile.k0
        return 100 * self.products_per_cycle * self.bound.contended_cycles / products

    @property
    def bound_percent(self) -> float:
        """What the planner's bound is of that peak."""
        return 100 * self.percent / self.of_bound


def _dot_cycles(p: Primitive, core: Core) -> float:
    measured = p.dot_cycles.get(core.name)
    return measured[-1] * p.dots_of_unit if measured else core.cycles(p.dot_cost * p.dots_of_unit)


def _peak_products_per_cycle(tile: Tile, name: str) -> float:
    """With the dots of the level's best primitive for the type alone."""
    return max(p.lanes * p.k / _dot_cycles(p, core)
               for level in library.levels_served_by(ARCH, tile.isa)
               for p in PRIMITIVES.get(level.name, ()) if p.type == tile.type
               for core in p.isa.cores if core.name == name)


def measure(directory: Path, level: str, repeat: int) -> dict[str, tuple[float, float]] | None:
    """GOP/s of each tile, and of its instruction's peak, by symbol; None if this CPU lacks the level."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(repeat):
        tiles = run(directory, level, "--benchmark_filter=mmt4d.*/L1")
        if tiles is None:
            return None
        for symbol, figures in tiles.items():
            speed = figures["GOP/s"]
            peak = 100 * speed / figures["peak%"]
            best_speed, best_peak = best.get(symbol, (speed, peak))
            best[symbol] = max(speed, best_speed), max(peak, best_peak)
    return best


def measured_speeds(directory: Path, levels: list[str], repeat: int) -> dict[Tile, tuple[float, float]]:
    of_levels = [measure(directory, level, repeat) for level in levels]
    if all(of_level is None for of_level in of_levels):
        sys.exit(ABSENT_LEVEL)  # which has been said
    speeds = {Tile.from_symbol(symbol): of_tile
              for of_level in of_levels for symbol, of_tile in (of_level or {}).items()}
    if not speeds:
        sys.exit("no tile was measured")
    return speeds


def measured_tiles(speeds: dict[Tile, tuple[float, float]]) -> list[Measured]:
    core = core_name()
    # No peak exceeds what the ports give, but those of several instructions may miss it: the best tell the clock.
    clocks = {tile: peak / 2 / _peak_products_per_cycle(tile, core) for tile, (_, peak) in speeds.items()}
    found = []
    for row in generated_rows(ARCH):
        tile = row.tile
        if isinstance(tile, Tile) and tile in speeds and tile.m0 * tile.n0 >= 64:
            speed, peak = speeds[tile]
            p = choose_primitive(tile)
            steady = next(c.steady_clock for c in p.isa.cores if c.name == core)
            gigahertz = max(clocks.values()) if steady else clocks[tile]
            found.append(Measured(make_plan(tile, p), 100 * speed / peak, speed / 2 / gigahertz, core))
    return found


def report(measured: list[Measured]) -> str:
    low = sorted((m for m in measured if m.percent < MOST_REPORTED), key=lambda m: m.of_bound)
    lines = [f"{len(measured)} generated tiles with M0·N0 ≥ 64 measured, {len(low)} of them under "
             f"{MOST_REPORTED} % of the peak, {sum(m.of_bound < 90 for m in low)} of these under 90 % of "
             f"their bound; the farthest from it ({cpu_name()}, {core_name()}, {date.today()}):", "",
             "| tile | level | % of peak | bound | % of the bound | mostly |",
             "|---|---|---|---|---|---|"]
    for m in low[:LISTED]:
        tile = m.plan.tile
        name = f"{tile.type.name} {tile.m0}x{tile.n0}x{tile.k0}" + (" f32acc" if tile.f32acc else "")
        lines.append(f"| {name} | {tile.isa} | {m.percent:.0f} | {m.bound_percent:.0f} "
                     f"| {m.of_bound:.0f} | {m.bound.cause} |")
    return "\n".join(lines) + "\n"


def nibble_ratios(speeds: dict[Tile, tuple[float, float]]) -> str:
    """How fast s8s4s32 is by s8s8s32, of equal levels, M0 and N0, each with its fastest K0."""
    fastest: dict[tuple[str, str, int, int], float] = {}
    for tile, (speed, _) in speeds.items():
        key = tile.type.name, tile.isa, tile.m0, tile.n0
        fastest[key] = max(speed, fastest.get(key, 0))
    ratios: dict[str, dict[str, float]] = {}
    for (name, level, m0, n0), speed in fastest.items():
        wide = fastest.get(("s8s8s32", level, m0, n0))
        if name == "s8s4s32" and wide:
            ratios.setdefault(level, {})[f"{m0}x{n0}"] = speed / wide
    if not ratios:
        return ""
    lines = ["s8s4s32 by s8s8s32 with the same M0xN0, panels in L1:", "",
             "| level | shapes | geometric mean | least |", "|---|---|---|---|"]
    for level, of_level in ratios.items():
        least = min(of_level, key=of_level.__getitem__)
        lines.append(f"| {level} | {len(of_level)} | {geometric_mean(of_level.values()):.2f} "
                     f"| {of_level[least]:.2f} at {least} |")
    return "\n" + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, metavar="BENCH_DIR")
    parser.add_argument("--level", action="append", choices=list(PRIMITIVES),
                        help="only this one; may be given more than once")
    parser.add_argument("--repeat", type=passes, default=8, metavar="N", help="passes, 8 by default")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the table there")
    parser.add_argument("--block", default="worst", metavar="NAME", help="between these lines, 'worst' by default")
    options = parser.parse_args()
    speeds = measured_speeds(options.bench, options.level or list(PRIMITIVES), options.repeat)
    table = report(measured_tiles(speeds)) + nibble_ratios(speeds)
    print(table)
    if options.update:
        replace_block(options.update, options.block, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
