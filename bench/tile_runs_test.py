"""The scripts that run bench_<arch>_<level>, on programs that are made up."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import tile_runs, worst_tiles  # noqa: E402
from bench.tile_runs import ABOVE_PEAK, ABSENT_LEVEL, ARCH  # noqa: E402
from generator.isa_x86 import SSE2  # noqa: E402

TILE = f"uk_mmt4d_tile_f32f32f32_14x32x1_{ARCH}_avx2_fma"


class CoreNameTest(unittest.TestCase):
    def test_cores_of_which_the_planner_has_bounds(self) -> None:
        planned = {of_planner.name for of_planner in SSE2.cores}
        for maker, family, model, core in (("AuthenticAMD", 25, 1, "Zen 3"), ("AuthenticAMD", 25, 33, "Zen 3"),
                                           ("AuthenticAMD", 25, 17, "Zen 4"), ("AuthenticAMD", 25, 97, "Zen 4"),
                                           ("AuthenticAMD", 25, 160, "Zen 4"), ("AuthenticAMD", 26, 2, "Zen 5"),
                                           ("GenuineIntel", 6, 207, "Golden Cove"),
                                           ("GenuineIntel", 6, 85, "Cascade Lake"), ("GenuineIntel", 6, 106, "Intel")):
            cpu = {"vendor_id": maker, "cpu family": str(family), "model": str(model)}
            with self.subTest(cpu), mock.patch.object(tile_runs, "_cpu", return_value=cpu):
                self.assertEqual(tile_runs.core_name(), core)
                self.assertIn(core, planned)

    def test_other_cores(self) -> None:
        with mock.patch.object(tile_runs, "_cpu", return_value={"vendor_id": "AuthenticAMD", "cpu family": "23"}):
            self.assertRaisesRegex(SystemExit, "knows no bounds of this CPU's cores: AuthenticAMD family 23",
                                   tile_runs.core_name)


class WorstTilesTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def program(self, level: str, exit_code: int, *benchmarks: dict[str, object]) -> None:
        """It writes these."""
        written = self.directory / f"{level}.json"
        written.write_text(json.dumps({"benchmarks": benchmarks}))
        path = self.directory / f"bench_{ARCH}_{level}"
        path.write_text('#!/bin/sh\nfor word; do case $word in --benchmark_out=*) '
                        f'cp {written} "${{word#*=}}" ;; esac; done\nexit {exit_code}\n')
        path.chmod(0o755)

    def run_on(self, *levels: str) -> tuple[object, str, str]:
        """Exit code or its text, stdout, stderr."""
        words = ["worst_tiles.py", str(self.directory), "--repeat", "1",
                 *(word for level in levels for word in ("--level", level))]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(sys, "argv", words), \
                mock.patch.object(worst_tiles, "core_name", return_value="Zen 4"):
            try:
                code: object = worst_tiles.main()
            except SystemExit as stopped:
                code = stopped.code
        return code, out.getvalue(), said.getvalue()

    def test_levels_that_the_cpu_lacks(self) -> None:
        for level in ("avx512_fp16", "avx512_vnni"):
            self.program(level, ABSENT_LEVEL)
        self.assertEqual(self.run_on("avx512_fp16"),
                         (ABSENT_LEVEL, "", "skipped avx512_fp16: this CPU lacks it\n"))
        self.assertEqual(self.run_on("avx512_fp16", "avx512_vnni")[0], ABSENT_LEVEL)

    def test_nibbles_by_bytes_of_the_same_shape(self) -> None:
        def tile(name: str, speed: float) -> dict[str, object]:
            return {"name": f"uk_mmt4d_tile_{name}_{ARCH}_avx2_fma/L1", "GOP/s": speed, "peak%": 50}

        self.program("avx2_fma", 0, tile("s8s4s32_4x16x8", 90), tile("s8s8s32_4x16x2", 80), tile("s8s8s32_4x16x4", 100),
                     tile("s8s4s32_8x16x8", 160), tile("s8s8s32_8x16x2", 100), tile("s8s4s32_2x16x8", 1))
        self.assertIn("| avx2_fma | 2 | 1.20 | 0.90 at 4x16 |", self.run_on("avx2_fma")[1])

    def test_no_tile_below_its_peak(self) -> None:
        self.program("avx2_fma", ABOVE_PEAK, {"name": f"{TILE}/L1", "error_occurred": True})
        self.assertEqual(self.run_on("avx2_fma"), ("no tile was measured", "", ""))

    def test_a_tile(self) -> None:
        self.program("avx512_fp16", ABSENT_LEVEL)
        self.program("avx2_fma", 0, {"name": f"{TILE}/L1", "GOP/s": 40.0, "peak%": 50.0})
        code, table, _ = self.run_on("avx512_fp16", "avx2_fma")
        self.assertEqual(code, 0)
        self.assertIn("| f32f32f32 14x32x1 | avx2_fma | 50 |", table)


class RepeatTest(unittest.TestCase):
    def test_less_than_one_pass_is_refused(self) -> None:
        for script, more in (("worst_tiles", ()), ("compilers", ("--cc", "c++")), ("generated_against_hand", ())):
            for number in ("0", "-1", "1.5", ""):
                ran = subprocess.run([sys.executable, ROOT / f"bench/{script}.py", "absent", *more,
                                      f"--repeat={number}"], capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
                self.assertIn(f"argument --repeat: '{number}' is no number of passes", ran.stderr)


class LevelTest(unittest.TestCase):
    def test_hand_written_tiles_alone_are_compared_with_none(self) -> None:
        ran = subprocess.run([sys.executable, ROOT / "bench/generated_against_hand.py", "absent", "--level=amx_int8"],
                             capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
        self.assertIn("argument --level: invalid choice: 'amx_int8'", ran.stderr)


if __name__ == "__main__":
    unittest.main()
