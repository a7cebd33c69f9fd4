"""bench/peers.py on results that are made up: what it computes, what it marks and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = {"cpu": "a CPU", "peers": "one 1, two 2", "date": "2026-01-02T03:04:05+00:00"}


def cell(name: str, milliseconds: float = 1, **figures: float) -> dict[str, object]:
    return {"name": f"{name}/iterations:1/manual_time", "real_time": milliseconds, "threads": 1,
            "GFLOP/s": 50, "peak%": 95, **figures}


def against(one: float, two: float) -> dict[str, float]:
    return {"one": one, "one_GFLOP/s": 50 / one, "two": two, "two_GFLOP/s": 50 / two,
            "naive": 0.5, "naive_GFLOP/s": 100}


class TablesTest(unittest.TestCase):
    def run_on(self, *cells: dict[str, object]) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "result.json"
            path.write_text(json.dumps({"context": CONTEXT, "benchmarks": cells}))
            return subprocess.run([sys.executable, ROOT / "bench/peers.py", path],
                                  capture_output=True, text=True)

    def test_mean_and_worst_are_against_the_best_peer_of_each_cell(self) -> None:
        ran = self.run_on(cell("f32/1x2x3/packed/threads:1", **against(4, 8)),
                          cell("f32/4x5x6/packed/threads:1", **against(2, 0.25)))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| f32 | operands packed | 1 | 2 | 1.00 | 0.25 at 4x5x6 (two) | 4x5x6 0.25 |",
                      ran.stdout)

    def test_what_misses_its_bar_is_bold(self) -> None:
        ran = self.run_on(cell("f32/128x5x6/packed/threads:1", **against(0.95, 1), **{"peak%": 90}),
                          cell("f32/16x5x6/packed/threads:1", **against(1, 1), **{"peak%": 90}))
        self.assertIn("| 128x5x6 | 50.0 | **90.0** | 0.50 | **0.95** |", ran.stdout)
        self.assertIn("| 16x5x6 | 50.0 | 90.0 | 0.50 | 1.00 |", ran.stdout)

    def test_packing_pays_when_what_calls_save_exceeds_it(self) -> None:
        # 10 ms to pack, then 2 ms a call where the peer needs 6.
        ran = self.run_on(cell("f32/4x5x6/rows/threads:1", 2, **against(1, 1)),
                          cell("f32/4x5x6/nk/threads:1", 12, **against(0.5, 0.6)))
        self.assertIn("| weights N x K | 10.00 | 2.00 | 6.00 (one) | 3 |", ran.stdout)

    def test_packing_never_pays_against_a_peer_that_is_faster_without(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/rows/threads:1", 2, **against(1, 1)),
                          cell("f32/4x5x6/nk/threads:1", 12, **against(0.1, 0.6)))
        self.assertIn("| 1.20 (one) | never |", ran.stdout)

    def test_a_figure_above_what_the_machine_can_do_fails(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **against(1, 1), **{"peak%": 101.5}))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("f32 4x5x6 packed, 1 threads: peak% 101.5", ran.stderr)

    def test_a_failed_cell_is_refused(self) -> None:
        ran = self.run_on({"name": "f32/4x5x6/packed/threads:1", "error_occurred": True,
                           "error_message": "one is wrong"})
        self.assertEqual(ran.returncode, 2)
        self.assertIn("one is wrong", ran.stderr)

    def test_what_is_no_result_is_refused_in_one_line(self) -> None:
        ran = self.run_on()
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)


if __name__ == "__main__":
    unittest.main()
