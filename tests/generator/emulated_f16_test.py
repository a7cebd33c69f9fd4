"""Runs the tiles of avx512_fp16 on CPUs that have avx512_base alone: the grid's, and some of random shapes.

Their sources are compiled with a header that emulates the level's instructions, and are tiles of
avx512_base to the conformance tool.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from generator import library
from generator.build import Compiler
from generator.emit import emit
from generator.model import Tile
from generator.plan import Plan, make_plan
from generator.select import choose_primitive
from generator.tiles import table
from tests.generator.support import (COMPILER, check_conformance, draw_tiles, link_shared,
                                     request_text)

_ARCH, _LEVEL, _LEVEL_BELOW = "x86_64", "avx512_fp16", "avx512_base"
_DRAWN_TILES = 30
_MOST_LANES = 4000  # multiplied in a k step, those beyond N0 too: each takes its time
_TILES_PER_FILE = 10


def _tiles(seed: int) -> list[Tile]:
    grid = [row.tile for row in table(_ARCH) if isinstance(row.tile, Tile) and row.tile.isa == _LEVEL]
    drawn = draw_tiles(seed, _DRAWN_TILES, _ARCH, level=_LEVEL)
    return list(dict.fromkeys([*grid, *(tile for tile in drawn if _lanes(tile) <= _MOST_LANES)]))


def _lanes(tile: Tile) -> int:
    p = choose_primitive(tile)
    return tile.m0 * -(-tile.n0 // p.lanes) * p.lanes * tile.k0


def _plan(tile: Tile) -> Plan:
    return replace(make_plan(tile, choose_primitive(tile)), tile=replace(tile, isa=_LEVEL_BELOW))


def _build(plans: list[Plan], directory: Path, jobs: int) -> Path:
    compiler = Compiler.find(COMPILER)
    header = Path(__file__).with_name("emulated_f16.h")

    def compile_file(first: int) -> Path:
        source, made = directory / f"tiles_{first}.cc", directory / f"tiles_{first}.o"
        source.write_text(emit(plans[first:first + _TILES_PER_FILE]))
        compiler.run(source.name, directory, [
            *compiler.flags(_ARCH, _LEVEL_BELOW, "obj"), f"-I{library.ROOT}", "-include", str(header),
            "-c", source.name, "-o", made.name])
        return made

    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compile_file, range(0, len(plans), _TILES_PER_FILE)))
    shared = directory / "tiles.so"
    link_shared(shared, objects)
    return shared


def _run() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("conformance", help="the tool ukernel_conformance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    tiles = _tiles(options.seed)
    plans = [_plan(tile) for tile in tiles]
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(options.jobs) as pool:
        shared = _build(plans, Path(directory), options.jobs)
        results = list(pool.map(
            lambda plan: check_conformance(options.conformance, shared, plan.tile.symbol), plans))
    for tile, (verdict, output) in zip(tiles, results):
        if verdict == "failed":
            print(f"{request_text(tile)}\n  {output.strip()}")
    counts = Counter(verdict for verdict, _ in results)
    if counts["skipped"]:
        print(f"skipped: {_LEVEL} is emulated with {_LEVEL_BELOW}, which this CPU lacks")
    print(f"{counts['passed']} of {len(tiles)} passed, with those of seed {options.seed}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(_run())
