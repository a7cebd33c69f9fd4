"""Builds tiles of random shapes with the generator's tool and runs the conformance tool on each.

Every type, level and class of K0 gets its turn, with M0 and N0 that include 1, 63, 64 and primes. Any
seed must pass. With --spills none of the K loops may spill, either: of a few thousand tiles one may, by one
compiler or another.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Sequence

from generator.library import AnyTile
from generator.model import MAX_K0, MAX_TILE, Tile
from tests.generator import spill_test
from tests.generator.support import (ARCH, COMPILER, check_conformance, draw_tiles, link_shared,
                                     request_text, run_generator, strata)


def _build(requests: list[str], directory: Path, jobs: int) -> Path:
    manifest = directory / "manifest.txt"
    manifest.write_text("".join(f"{request}\n" for request in requests))
    objects = directory / "objects"
    ran = run_generator("build", "--manifest", manifest, "--arch", ARCH, "--out", objects, "--cache",
                        directory / "cache", "--jobs", str(jobs), "--cc", COMPILER, "--emit", "obj",
                        "--self-contained")
    if ran.returncode:
        sys.exit(ran.stderr.strip())
    shared = directory / "tiles.so"
    link_shared(shared, sorted(objects.glob("*.o")))
    return shared


def random_test(description: str | None, count: int,
                draw: Callable[[int, int, int], Sequence[AnyTile]],
                text: Callable[[AnyTile], str]) -> int:
    """A program that checks what draw(seed, count, most) returns; text() makes requests of it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("conformance", help="the tool ukernel_conformance")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="random by default, and printed")
    parser.add_argument("--count", type=int, default=count,
                        help="of requests; by default %(default)s, which gives each kind its turn")
    parser.add_argument("--most", type=int, default=MAX_TILE**2 * MAX_K0,
                        help="elements or products of a tile: an emulator takes its time for each")
    parser.add_argument("--spills", action="store_true", help="look for those, too")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    tiles = draw(options.seed, options.count, options.most)
    with tempfile.TemporaryDirectory() as directory:
        shared = _build([text(tile) for tile in tiles], Path(directory), options.jobs)

        def check(tile: AnyTile) -> tuple[str, str]:
            return check_conformance(options.conformance, shared, tile.symbol)

        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(check, tiles))
        spills = spill_test.check(str(shared), ARCH, of_library=False) if options.spills else 0
    skipped = Counter()
    for tile, (verdict, output) in zip(tiles, results):
        if verdict == "failed":
            print(f"{text(tile)}\n  {output.strip()}")
        elif verdict == "skipped":
            skipped[tile.isa] += 1
    for level, number in skipped.items():
        print(f"skipped {level}: {number} tiles; this CPU lacks it")
    counts = Counter(verdict for verdict, _ in results)
    print(", ".join(f"{counts[v]} {v}" for v in ("passed", "failed", "skipped"))
          + f" of seed {options.seed}")
    return 1 if counts["failed"] or spills or not counts["passed"] else 0


def _draw(seed: int, count: int, most: int) -> list[Tile]:
    return draw_tiles(seed, count, most=most)


if __name__ == "__main__":
    sys.exit(random_test(__doc__, len(strata()), _draw, request_text))
