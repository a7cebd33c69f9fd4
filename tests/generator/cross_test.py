"""Tiles for the other architecture than this machine's, by each of its compilers that is there."""

from __future__ import annotations

import json
import shutil
import struct
import sys
import tempfile
import unittest
from pathlib import Path

from tests.generator.support import run_generator

COMPILERS = [name for name in ("aarch64-linux-gnu-g++", "clang++") if shutil.which(name)]
_AARCH64 = 183  # in the header of an ELF file
_REQUESTS = """\
mmt4d f32f32f32 3x5x2 neon
mmt4d f16f16f16 3x9x1 fullfp16
mmt4d f16f16f32 9x7x1 fp16fml
mmt4d bf16bf16f32 5x3x4 bf16
mmt4d s8s8s32 9x7x4 dotprod
mmt4d u8s8s32 9x7x4 dotprod
mmt4d s8s4s32 5x7x16 i8mm
mmt4d s16u4s32 3x5x6 i8mm
"""


class BuildTest(unittest.TestCase):
    def test_builds_objects(self) -> None:
        for compiler in COMPILERS:
            with self.subTest(compiler), tempfile.TemporaryDirectory() as directory:
                out, manifest = Path(directory) / "out", Path(directory) / "manifest"
                manifest.write_text(_REQUESTS)
                ran = run_generator("build", "--arch", "arm_64", "--manifest", manifest, "--out", out,
                                    "--cache", Path(directory) / "cache", "--cc", compiler,
                                    "--emit", "obj")
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                rows = json.loads((out / "index.json").read_text())["requests"]
                self.assertEqual([row["request"] for row in rows], _REQUESTS.splitlines())
                self.assertEqual(rows[-1]["symbol"], "uk_mmt4d_tile_s16u4s32_3x5x6_arm_64_neon")
                for row in rows:
                    machine, = struct.unpack_from("<H", (out / row["file"]).read_bytes(), 0x12)
                    self.assertEqual(machine, _AARCH64, row["symbol"])

    def test_explains(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            manifest = Path(directory) / "manifest"
            manifest.write_text("mmt4d s8s8s32 9x7x8 i8mm\nmmt4d s8s8s32 9x7x8 avx2_fma\n")
            lines = run_generator("explain", "--arch", "arm_64", "--manifest", manifest).stdout.splitlines()
        self.assertRegex(lines[0], r"^generated +mmt4d s8s8s32 9x7x8 i8mm: uk_\w+; .* 2 x 2 lanes")
        self.assertRegex(lines[1], r"^refused .*: unknown level 'avx2_fma'")


if __name__ == "__main__":
    if not COMPILERS:
        print("skipped: no compiler for arm_64 (Debian: g++-aarch64-linux-gnu, clang)")
        sys.exit()
    unittest.main()
