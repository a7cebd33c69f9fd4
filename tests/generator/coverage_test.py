"""The coverage table: complete, right for rows that are known, and the same in the documentation."""

from __future__ import annotations

import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from generator import cli, coverage, library
from generator.coverage import unserved
from generator.model import ARCHS, Tile
from generator.tiles import Row, table
from tests.generator.support import run_generator

ARCH = "x86_64"  # where no other one is named


def cells(rows: tuple[Row, ...]) -> dict[tuple[str, str, str], str]:
    """By type, class and level."""
    header, _, *lines = [re.split(r" ?\| ?", line)[1:-1]
                         for line in coverage.coverage(ARCH, rows).splitlines()]
    return {(line[0], line[1], level): cell
            for line in lines for level, cell in list(zip(header, line, strict=True))[3:]}


class GridTest(unittest.TestCase):
    def test_every_level_serves_the_grid(self) -> None:
        for arch in ARCHS:
            self.assertEqual(unserved(arch, table(arch)), [], arch)

    def test_a_shape_that_nothing_serves_is_named(self) -> None:
        # Levels above have a tile of their own, and the other one rounds otherwise.
        for symbol, expected in (
                ("bf16bf16bf16_4x16x2_x86_64_sse2_f32acc", "bf16bf16bf16 4x16x2 on sse2, rounded once"),
                ("f16f16f16_8x8x1_x86_64_sse2", "f16f16f16 8x8x1 on sse2"),
                ("s16u4s32_8x8x2_arm_64_neon", "s16u4s32 8x8x2 on neon")):
            gone = Tile.from_symbol(f"uk_mmt4d_tile_{symbol}")
            rows = tuple(row for row in table(gone.arch) if row.tile != gone)
            self.assertEqual(len(rows) + 1, len(table(gone.arch)))
            self.assertEqual(unserved(gone.arch, rows)[0], expected)

    def test_hand_written_tiles_alone_are_not_enough(self) -> None:
        rows = tuple(row for row in table(ARCH) if row.origin == "hand")
        self.assertIn("s8s8s32 8x8x2 on sse2", unserved(ARCH, rows))
        self.assertNotIn("s8s8s32 8x8x2 on avx2_fma", unserved(ARCH, rows))


class CellTest(unittest.TestCase):
    def test_cells_say_who_serves(self) -> None:
        def row(symbol: str, numerics: str, origin: str) -> Row:
            return Row(Tile.from_symbol(f"uk_mmt4d_tile_{symbol}"), numerics, origin)

        found = cells((row("s8s8s32_1x8x2_x86_64_sse2", "exact", "generated"),
                       row("s8s8s32_1x8x2_x86_64_avx2_fma", "exact", "hand"),
                       row("s8s8s32_1x16x2_x86_64_avx2_fma", "exact", "generated"),
                       row("s8s8s32_1x8x4_x86_64_avx512_vnni", "exact", "hand"),
                       row("f16f16f16_8x8x1_x86_64_avx2_fma_f32acc", "f32acc", "generated")))
        self.assertEqual(found["s8s8s32", "M0 = 1", "sse2"], "2: generated, 4: none")
        self.assertEqual(found["s8s8s32", "M0 = 1", "avx2_fma"], "2: hand and generated, 4: none")
        self.assertEqual(found["s8s8s32", "M0 = 1", "avx512_vnni"], "2: avx2_fma, 4: hand")
        self.assertEqual(found["s8s8s32", "M0 = 1", "avx512_bf16"], "2: avx2_fma, 4: none")
        self.assertEqual(found["f16f16f16, rounded once", "M0 from 8", "avx_vnni"], "avx2_fma")

    def test_the_library(self) -> None:
        found = cells(table(ARCH))
        self.assertEqual(found["f32f32f32", "M0 = 1", "avx512_vnni"], "avx512_base")
        self.assertEqual(found["s16s8s32", "M0 2 to 7", "avx2_fma"], "generated")
        self.assertEqual(found["f16f16f16", "M0 = 1", "avx512_fp16"], "generated")
        self.assertEqual(found["f16f16f16, rounded once", "M0 = 1", "avx512_fp16"], "avx512_base")
        self.assertEqual(found["bf16bf16bf16", "M0 from 8", "avx512_fp16"], "avx512_base")
        for arch in ARCHS:
            self.assertNotIn("none", coverage.coverage(arch, table(arch)))


class CommandTest(unittest.TestCase):
    def test_the_documentation_has_this_table(self) -> None:
        for arch in ARCHS:
            ran = run_generator("coverage", "--arch", arch, "--check",
                                library.ROOT / "generator" / "README.md")
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_check_and_update(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "page.md"
            path.write_text("before\n<!-- coverage x86_64 -->\nold\n<!-- /coverage x86_64 -->\nafter\n")
            failed = run_generator("coverage", "--check", path)
            self.assertEqual((failed.returncode, failed.stderr.count("\n")), (1, 1), failed.stderr)
            self.assertEqual(run_generator("coverage", "--update", path).returncode, 0)
            self.assertEqual(run_generator("coverage", "--check", path).returncode, 0)
            block = run_generator("coverage").stdout
            self.assertEqual(path.read_text(),
                             f"before\n<!-- coverage x86_64 -->\n{block}<!-- /coverage x86_64 -->\nafter\n")
            path.write_bytes(b"\xff")
            failed = run_generator("coverage", "--check", path)
            self.assertEqual((failed.returncode, failed.stderr),
                             (2, f"generator: {path}: not a text file\n"))

    def test_a_missing_tile_fails(self) -> None:
        rows = tuple(row for row in table(ARCH) if row.tile.isa != "sse2")
        with mock.patch.object(coverage, "table", return_value=rows), self.assertRaises(SystemExit) as e:
            cli.main(["coverage"])
        self.assertEqual(e.exception.code, 1)


if __name__ == "__main__":
    unittest.main()
