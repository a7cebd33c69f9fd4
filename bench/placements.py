"""Tiles compiled in several ways and timed by bench_<arch>_<level>, which place in memory decides less about.

Where the linker puts a loop decides about up to a seventh of its time. So each way's objects are linked several
times, beginning at each multiple of 16 bytes in a line of code, and the medians of these places count.
"""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.tile_runs import ARCH, run
from generator import library
from generator.build import Compiler
from generator.emit import emit
from generator.library_build import TILES_PER_FILE
from generator.model import Tile
from generator.plan import make_plan
from generator.select import choose_primitive

CODE_LINE, FUNCTION_ALIGNMENT = 64, 16
PLACEMENTS = range(0, CODE_LINE, FUNCTION_ALIGNMENT)


@dataclass(frozen=True)
class Sources:
    """Of tiles of one level: a file that is there, and tiles to be generated; either may be missing."""

    name: str  # for files
    file: Path | None
    generated: tuple[Tile, ...]


def shared_objects(sources: Sources, level: str, compiler: Compiler, directory: Path) -> list[Path]:
    """One for each placement."""
    flags = [*compiler.flags(ARCH, level, "obj"), f"-I{library.ROOT}"]

    def compiled(source: Path) -> str:
        made = f"{sources.name}_{source.stem}.o"
        compiler.run(source.name, directory, [*flags, "-c", str(source), "-o", made])
        return made

    def generated(first: int) -> str:
        source = directory / f"{sources.name}_{first}.cc"
        source.write_text(emit(make_plan(tile, choose_primitive(tile))
                               for tile in sources.generated[first:first + TILES_PER_FILE]))
        return compiled(source)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(generated, range(0, len(sources.generated), TILES_PER_FILE)))
    if sources.file:
        objects.insert(0, compiled(sources.file))
    shared = []
    for bytes_before in PLACEMENTS:
        before = directory / f"before_{bytes_before}.cc"
        before.write_text(f'asm(".text\\n.balign {CODE_LINE}\\n.skip {bytes_before}");\n')
        name = f"{sources.name}_{bytes_before}.so"
        compiler.run(name, directory, ["-shared", "-nostdlib", "-o", name, compiled(before), *objects])
        shared.append(directory / name)
    return shared


def medians(bench: Path, level: str, ways: dict[str, list[Path]],
            repeat: int) -> dict[str, dict[str, float]]:
    """Nanoseconds by symbol and way: the median of the placements' best of so many passes, which take turns
    over all, as what shares the core disturbs one for seconds. Nothing where the CPU lacks the level."""
    best: dict[str, dict[str, dict[int, float]]] = {}
    for _ in range(repeat):
        for placement in range(len(PLACEMENTS)):
            for way, objects in ways.items():
                found = run(bench, level, f"--against={objects[placement]}") or {}
                for symbol, figures in found.items():
                    places = best.setdefault(symbol, {}).setdefault(way, {})
                    places[placement] = min(places.get(placement, figures["ns"]), figures["ns"])
    return {symbol: {way: statistics.median(places.values()) for way, places in of_symbol.items()}
            for symbol, of_symbol in best.items()}
