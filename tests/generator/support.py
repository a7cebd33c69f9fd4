"""What the generator's tests share."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import unittest
from dataclasses import dataclass, replace
from pathlib import Path

from generator import library
from generator.build import Compiler
from generator.isas import primitives
from generator.model import BITS, MAX_K0, MAX_TILE, TYPES, RequestError, Tile
from generator.select import choose_primitive

# Of the build that runs the tests, with its compiler and what runs its programs.
ARCH = os.environ.get("UK_ARCH", "x86_64")
COMPILER = os.environ.get("CXX", "c++")
EMULATOR = os.environ.get("UK_EMULATOR", "").split()

_SIZES = list(range(1, MAX_TILE + 1))

# M0 and N0 by what can go wrong with them.
SIZE_CLASSES = ([1], [MAX_TILE - 1], [MAX_TILE],
                [n for n in _SIZES if n > 1 and all(n % d for d in range(2, n))], _SIZES)
K0_CLASSES = ([1], [2], [4], [8, MAX_K0], [3, 5, 7, 9, 11, 13, 15], [6, 10, 12, 14])


@dataclass(frozen=True)
class Stratum:
    """A type at a level that has an own way to compute it with these K0."""

    tile: Tile  # 1x1
    k0s: list[int]

    def draw(self, numbers: random.Random, m0s: list[int], n0s: list[int]) -> Tile:
        return replace(self.tile, m0=numbers.choice(m0s), n0=numbers.choice(n0s),
                       k0=numbers.choice(self.k0s))


def strata(arch: str = ARCH) -> list[Stratum]:
    found = []
    for kind in TYPES.values():
        for f32acc in (False, True)[:1 + (BITS[kind.out] == 16)]:
            for level in primitives(arch):
                for k0s in K0_CLASSES:
                    tiles = [tile for tile in (Tile(kind, 1, 1, k0, arch, level, f32acc) for k0 in k0s
                                               if k0 % 2 == 0 or 4 not in (BITS[kind.lhs], BITS[kind.rhs]))
                             if _is_computed(tile)]
                    if tiles:
                        found.append(Stratum(tiles[0], [tile.k0 for tile in tiles]))
    return found


def _is_computed(tile: Tile) -> bool:
    """By the level itself."""
    try:
        choose_primitive(tile)
    except RequestError:
        return False
    return True


def draw_tiles(seed: int, count: int, arch: str = ARCH, most: int = MAX_TILE**2 * MAX_K0,
               level: str = "") -> list[Tile]:
    """Distinct tiles of at most so many products a k step: the strata, or those of one level, in turn,
    and in turn all pairs of classes of M0 and N0."""
    numbers = random.Random(seed)
    rooms = [room for room in strata(arch) if level in ("", room.tile.isa)]
    sizes = [(m0s, n0s) for m0s in SIZE_CLASSES for n0s in SIZE_CLASSES]
    numbers.shuffle(rooms)
    numbers.shuffle(sizes)
    tiles: dict[Tile, None] = {}
    for i in range(count):
        tile = rooms[i % len(rooms)].draw(numbers, *sizes[i % len(sizes)])
        while tile.m0 * tile.n0 * tile.k0 > most:
            tile = rooms[i % len(rooms)].draw(numbers, *numbers.choice(sizes))
        tiles[tile] = None
    return list(tiles)


def request_text(tile: Tile) -> str:
    return (f"mmt4d {tile.type.name} {tile.m0}x{tile.n0}x{tile.k0} {tile.isa}"
            + (" f32acc" if tile.f32acc else ""))


def generator_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "generator", *map(str, arguments)]


def run_generator(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(generator_command(*arguments), cwd=library.ROOT, text=True,
                          capture_output=True)


def check_conformance(tool: str, shared: Path, symbol: str) -> tuple[str, str]:
    """passed, failed or skipped, and what the conformance tool says of a tile in a shared object."""
    ran = subprocess.run([*EMULATOR, tool, "--so", shared, "--symbol", symbol],
                         capture_output=True, text=True)
    verdict = {"pass": "passed", "skip": "skipped"}.get(ran.stdout[:4], "failed")
    return "failed" if ran.returncode else verdict, ran.stdout + ran.stderr


def link_shared(shared: Path, objects: list[Path]) -> None:
    target = Compiler.find(COMPILER).target_flags(ARCH)
    subprocess.run([COMPILER, *target, "-shared", "-nostdlib", "-o", shared, *objects], check=True)


def other_arch(arch: str) -> str:
    """Empty if the build is for this architecture."""
    return "" if ARCH == arch else f"it is written for {arch}"


def main(*missing: str) -> None:
    """unittest.main, where nothing is missing."""
    for what in filter(None, missing):
        print(f"skipped: {what}")
        sys.exit()
    unittest.main()


def seeds_and_main(seeds: list[int]) -> None:
    """unittest.main with an option --seed that replaces the seeds, in place."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    if options.seed is not None:
        seeds[:] = [options.seed]
    print(f"seeds {seeds}", file=sys.stderr)
    unittest.main(argv=[sys.argv[0], *rest])
