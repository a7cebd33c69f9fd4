"""predicted_speed.py, on loops that are made up and cores on which all takes as long as it has instructions."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "generator")]

from bench import predicted_speed  # noqa: E402
from spill_test import ASSEMBLY, Function, Instruction  # noqa: E402

TILE = "uk_mmt4d_tile_f32f32f32_2x8x1_arm_64_neon"
BESIDE = ["ldr q20, [x1]", "subs x3, x3, #0x1"]


def function(name: str, loops: list[list[str]]) -> Function:
    """Each loop ends with a jump to its first instruction."""
    made = Function(name, ASSEMBLY["arm_64"])
    for loop in loops:
        start = 4 * len(made.instructions)
        for text in [*loop, f"b.ne {start:x} <{name}+0x{start:x}>"]:
            mnemonic, _, operands = text.partition(" ")
            made.instructions.append(Instruction(4 * len(made.instructions), mnemonic, operands, made.assembly))
    return made


def dots(count: int) -> list[str]:
    return [f"fmla v{i}.4s, v20.4s, v21.s[{i % 4}]" for i in range(count)]


class PredictedSpeedTest(unittest.TestCase):
    def read(self, *functions: Function) -> predicted_speed.TileLoops:
        with (mock.patch.object(predicted_speed, "disassemble", return_value=functions),
              mock.patch.object(predicted_speed, "hand_written", return_value=[])):
            tile, = predicted_speed.read_tiles("libukernel.a", "", generated=True)
        return tile

    def test_loops_that_do_the_work(self) -> None:
        main, rest = dots(4) + BESIDE, dots(1) + BESIDE
        prefetching = [*main, "prfm pldl2keep, [x5]"]
        tile = self.read(function(f"{TILE}_strided", [main, rest, prefetching]),
                         function(f"{TILE}_blocks_abreast", [dots(12) + BESIDE]))
        self.assertEqual(tile.tile.symbol, TILE)
        loop, = tile.loops
        self.assertEqual((len(loop.dots), len(loop.instructions)), (4, 7))
        self.assertEqual(loop.multiply_add, "fmla v{}.4s, v{}.4s, v{}.s[0]")

    def test_share_of_the_peak(self) -> None:
        tile = self.read(function(TILE, [dots(4) + BESIDE]))
        with mock.patch.object(predicted_speed, "cycles", lambda core, texts: [len(t.splitlines()) for t in texts]):
            self.assertAlmostEqual(predicted_speed.percentages("neoverse-n1", [tile])[tile.tile], 100 * 4 / 7)
            self.assertIn("| f32f32f32 2x8x1 | neon | 7 / 4 | 57 | 57 | 57 | 57 |", predicted_speed.table([tile]))


if __name__ == "__main__":
    unittest.main()
