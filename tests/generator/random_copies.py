"""Builds random pack and unpack tiles with the generator's tool and runs the conformance tool on each.

Every op, width, order, level and class of tile1 gets its turn, with sizes that include 1, 63, 64 and
primes. Any seed must pass.
"""

from __future__ import annotations

import random
import sys
from itertools import product

from generator.copy_tile import LEVELS, WIDTHS, CopyTile
from generator.model import MAX_K0, MAX_TILE
from generator.requests import Request
from tests.generator.random_shapes import random_test
from tests.generator.support import ARCH, SIZE_CLASSES

# Like K0, those that fill a unit of 2, 4, 8 or 16 bytes and those that do not; and like N0.
_TILE1_CLASSES = ([1, 2, 4, 8, MAX_K0], [3], [5, 6, 7, *range(9, MAX_K0)],
                  [1, MAX_TILE - 1, MAX_TILE, 2, 13, 31, 37], list(range(1, MAX_TILE + 1)))

# Four-bit elements have an even tile1.
_KINDS = [(op, width, transposed, level, allowed)
          for op, width, transposed, level, tile1s in product(
              ("pack", "unpack"), WIDTHS, (False, True), LEVELS[ARCH], _TILE1_CLASSES)
          if (allowed := [n for n in tile1s if width != "x4" or n % 2 == 0])]


def draw_copies(seed: int, count: int, most: int) -> list[CopyTile]:
    """Distinct tiles of at most so many elements: the kinds in turn, and in turn the classes of
    tile0."""
    numbers = random.Random(seed)
    kinds = numbers.sample(_KINDS, len(_KINDS))
    tiles: dict[CopyTile, None] = {}
    for i in range(count):
        op, width, transposed, level, tile1s = kinds[i % len(kinds)]
        tile0, tile1 = numbers.choice(SIZE_CLASSES[i % len(SIZE_CLASSES)]), numbers.choice(tile1s)
        while tile0 * tile1 > most:
            tile0, tile1 = numbers.choice(numbers.choice(SIZE_CLASSES)), numbers.choice(tile1s)
        tiles[CopyTile(op, width, tile0, tile1, transposed, ARCH, level)] = None
    return list(tiles)


def _text(tile: CopyTile) -> str:
    shape = (tile.tile0, tile.tile1)
    return Request(tile.op, tile.width, shape, tile.isa, "t" * tile.transposed).text


if __name__ == "__main__":
    sys.exit(random_test(__doc__, len(_KINDS), draw_copies, _text))
