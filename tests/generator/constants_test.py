"""Numbers that the generator and the C++ code both have are the same in both."""

from __future__ import annotations

import re
import unittest

from generator import plan
from generator.library import ROOT
from generator.model import CHAINS, MAX_K0, MAX_TILE

_X86_TILE = "arch/x86_64/mmt4d_tile.h"

_CONSTANTS = (
    (MAX_TILE, "generator/memref/mmt4d.cc", "kMaxTile"),
    (MAX_K0, "generator/memref/mmt4d.cc", "kMaxK0"),
    (MAX_TILE * MAX_TILE * 8, "ukernel/internal.h", "kMostTileBytes"),  # of f64
    (plan.SHARED_ROW_SUMS, "ukernel/tile.h", "kSharedRowSums"),
    (plan.LEAST_SUMMED_ROWS, "ukernel/tile.h", "kLeastSummedRows"),
    (plan.PANELS_ABREAST, "ukernel/tile.h", "kPanelsAbreast"),
    (plan.MOST_SUMS_ABREAST, "ukernel/tile.h", "kMostSumsAbreast"),
    (plan.LEAST_ROWS_TO_DECODE_AHEAD, _X86_TILE, "kLeastRowsToDecodeAhead"),
    (plan.REGISTERS_TO_UNROLL, _X86_TILE, "kRegistersToUnroll"),
    (plan.STAGE_BYTES, _X86_TILE, "kStagedBytes"))


def _value(path: str, name: str) -> int:
    """Of what is defined once, as a product or a shift of numbers."""
    found = re.findall(rf"^constexpr [^;]*\b{name} = ([0-9 *<]+)[,;]", (ROOT / path).read_text(), re.MULTILINE)
    if len(found) != 1:
        raise AssertionError(f"{path} defines {name} {len(found)} times")
    return int(eval(found[0]))  # of digits and operators alone


class ConstantsTest(unittest.TestCase):
    def test_are_those_of_the_library(self) -> None:
        for expected, path, name in _CONSTANTS:
            with self.subTest(name):
                self.assertEqual(_value(path, name), expected)

    def test_chains_are_those_that_are_measured(self) -> None:
        text = (ROOT / "bench" / "rounding_loops.h").read_text()
        found, = re.findall(r"^constexpr int kChains\[\] = \{([0-9, ]+)\};", text, re.MULTILINE)
        self.assertEqual(tuple(map(int, found.split(","))), CHAINS)


if __name__ == "__main__":
    unittest.main()
