"""What the generator reads of the library's files, against the preprocessor and CMake themselves."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from dataclasses import fields
from itertools import product
from pathlib import Path

from generator import library
from generator.build import Compiler
from generator.isas import primitives
from generator.model import ARCHS
from tests.generator.support import ARCH, COMPILER

_TABLE = """
#define UK_MMT4D_TILE(...) row UK_MMT4D_TILE __VA_ARGS__;
#define UK_PACK_TILE(...) row UK_PACK_TILE __VA_ARGS__;
#define UK_UNPACK_TILE(...) row UK_UNPACK_TILE __VA_ARGS__;
#include "arch/tiles.inc"
#define UK_ISA_LEVEL(arch, isa, ...) level isa __VA_ARGS__;
#include "ukernel/isa.inc"
"""

_FLAGS = """\
set(UK_ARCH {arch})
include("{root}/cmake/UkIsa.cmake")
message("${{UK_OBJECT_FLAGS}};${{UK_TILE_FLAGS}};${{UK_FLAGS_{arch}_{level}}}")
"""


class TableTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        target = Compiler.find(COMPILER).target_flags(ARCH)
        cls.table = subprocess.run([COMPILER, *target, "-E", "-P", "-x", "c++", f"-I{library.ROOT}", "-"],
                                   input=_TABLE, capture_output=True, text=True, check=True).stdout

    def test_hand_rows_are_those_of_the_preprocessor(self) -> None:
        expected = [tuple(re.findall(r"\w+", row)) for row in re.findall(r"row ([^;]*);", self.table)]
        self.assertTrue(expected)
        read = [(row.macro, *row.columns) for row in library.hand_rows(ARCH).values()]
        self.assertEqual(sorted(read), sorted(expected))

    def test_levels_are_those_of_the_preprocessor(self) -> None:
        expected = {}
        numbers_of_level = len(fields(library.Level)) - len(("name", "features", "slow"))
        row = rf"level (\w+) ((?:\d+, ){{{numbers_of_level}}})([^;]*), ([^;,]*);"
        for isa, numbers, *features in re.findall(row, self.table):
            names = (frozenset(re.findall(rf"UK_CPU_(?:FIELD7_)?{ARCH.upper()}_(\w+)", of)) for of in features)
            expected[isa] = library.Level(isa, *map(int, re.findall(r"\d+", numbers)), *names)
        self.assertTrue(expected)
        self.assertEqual(library.levels(ARCH), expected)


class LevelTest(unittest.TestCase):
    def test_a_level_is_served_by_itself_and_what_it_contains(self) -> None:
        def served_by(arch: str, level: str) -> list[str]:
            return [found.name for found in library.levels_served_by(arch, level)]

        self.assertEqual(served_by("x86_64", "avx512_bf16"),
                         ["avx512_bf16", "avx512_base", "avx2_fma", "sse2"])
        self.assertEqual(served_by("x86_64", "avx_vnni"), ["avx_vnni", "avx2_fma", "sse2"])
        self.assertEqual(served_by("x86_64", "sse2"), ["sse2"])
        self.assertEqual(served_by("arm_64", "fp16fml"), ["fp16fml", "fullfp16", "neon"])
        self.assertEqual(served_by("arm_64", "i8mm"), ["i8mm", "neon"])


class FlagsTest(unittest.TestCase):
    def test_flags_are_those_of_cmake(self) -> None:
        for compiler_id, arch in product(("GNU", "Clang"), ARCHS):
            for level in primitives(arch):
                with self.subTest(compiler=compiler_id, arch=arch, level=level):
                    self._check(compiler_id, arch, level)

    def _check(self, compiler_id: str, arch: str, level: str) -> None:
        script = _FLAGS.format(root=library.ROOT, arch=arch, level=level)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "flags.cmake"
            path.write_text(script)
            command = [os.environ.get("CMAKE", "cmake"), f"-DCMAKE_CXX_COMPILER_ID={compiler_id}",
                       "-P", str(path)]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
        expected = [flag for flag in ran.stderr.strip().split(";") if flag]
        flags = list(library.compiler_flags(arch, level, compiler_id))
        self.assertEqual(flags, expected)


if __name__ == "__main__":
    unittest.main()
