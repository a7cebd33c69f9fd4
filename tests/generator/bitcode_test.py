"""The two flavours of bitcode, through LLVM's own tools: what a compiler makes of them, and that it
computes the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from generator import library
from generator.build import Compiler
from tests.generator.support import ARCH, COMPILER, EMULATOR, run_generator

_CLANG = "clang++"
_LLVM = "19"
_TOOLS = [_CLANG, *(f"{tool}-{_LLVM}" for tool in ("llvm-link", "opt", "llc", "llvm-dis",
                                                   "llvm-nm", "llvm-objcopy", "llvm-objdump"))]

_CALL = r"\t(callq?|bl)\t"

_CALLER = """\
#include "ukernel/ukernel.h"
extern "C" {{
uk_{op}_tile_fn {symbol};
#if {is_mmt4d}
void caller(void* out, const void* lhs, const void* rhs, uk_index_t k1, uint32_t flags) {{
  {symbol}(out, lhs, rhs, k1, flags);
}}
#else
void caller(void* out, const void* in, uk_index_t count, uk_index_t stride, uk_index_t stride2) {{
  {symbol}(out, in, count, stride, stride2);
}}
#endif
}}
"""


@dataclass(frozen=True)
class Case:
    """A request, what the code must have, and which CPU the caller is for, if not the level alone."""

    request: str
    instruction: str
    caller_flags: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        return self.request.split()[0]

    @property
    def level(self) -> str:
        return next(word for word in self.request.split() if word in library.levels(ARCH))


# Four of a level share a precompiled header.
_CASES = {
    "x86_64": [
        Case("mmt4d s8s8s32 16x16x4 avx512_vnni", "vpdpbusd.*%zmm"),
        Case("mmt4d u8s8s32 3x64x4 avx512_vnni", "vpdpbusd.*%zmm"),
        # A CPU for which LLVM prefers half vectors.
        Case("mmt4d s8s8s32 12x32x4 avx512_vnni", "vpdpbusd.*%zmm", ("-march=cascadelake",)),
        Case("mmt4d s8s4s32 11x32x8 avx512_vnni", "vpdpbusd.*%zmm", ("-march=cascadelake",)),
        Case("mmt4d f32f32f32 14x64x1 avx512_base", "vfmadd231ps.*%zmm"),
        Case("mmt4d bf16bf16f32 16x16x2 avx512_bf16", "vdpbf16ps.*%zmm"),
        # Blocks of several sizes, each a function of its own before it is inlined.
        Case("mmt4d f16f16f16 13x16x1 avx2_fma", "vcvtps2ph.*%ymm"),
        Case("pack x32 8x1 avx2_fma", "vmovups.*%ymm"),
        Case("unpack x32 16x16 avx512_base", "vmov[a-z0-9]+.*%zmm"),
    ],
    "arm_64": [
        Case("mmt4d s8s8s32 8x8x8 i8mm", "smmla"),
        Case("mmt4d f32f32f32 7x13x3 neon", r"fmla\tv"),
        Case("mmt4d f32f32f32 8x8x1 neon", r"fmla\tv"),
        Case("mmt4d s16s16s32 8x8x1 neon", r"smlal2?\tv"),
        Case("pack x32 8x1 neon", r"\tst[rp1]\t"),
    ],
}
_REQUESTS = [case.request for case in _CASES[ARCH]]


def _run(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def _llvm(tool: str, *arguments: str | Path) -> str:
    return _run(f"{tool}-{_LLVM}", *arguments)


class BitcodeTest(unittest.TestCase):
    conformance: str
    tiles: dict[str, dict[str, Path]]  # by flavour and request

    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        manifest = cls.directory / "manifest.txt"
        manifest.write_text("".join(f"{request}\n" for request in _REQUESTS))
        cls.tiles = {}
        for kind in ("bitcode", "inline-bitcode"):
            out = cls.directory / kind
            ran = run_generator("build", "--manifest", manifest, "--arch", ARCH, "--out", out, "--cache",
                                cls.directory / "cache", "--cc", _CLANG, "--emit", kind, "--self-contained")
            if ran.returncode:
                raise AssertionError(ran.stderr)
            index = json.loads((out / "index.json").read_text())
            cls.tiles[kind] = {row["request"]: out / row["file"] for row in index["requests"]}

    def compile_caller(self, case: Case, tile: Path, flags: Sequence[str]) -> Path:
        source, made = self.directory / "caller.cc", self.directory / "caller.bc"
        source.write_text(_CALLER.format(op=case.op, symbol=tile.stem, is_mmt4d=int(case.op == "mmt4d")))
        _run(_CLANG, *Compiler.find(_CLANG).target_flags(ARCH), "-std=c++17", "-O1", "-fPIC", *flags,
             "-fno-asynchronous-unwind-tables", f"-I{library.ROOT}", "-emit-llvm", "-c", source, "-o", made)
        return made

    def link(self, *modules: Path) -> Path:
        """As a compiler does that embeds the tile: link, optimise, generate code."""
        linked, optimised, made = (self.directory / name for name in ("all.bc", "optimised.bc", "all.o"))
        _llvm("llvm-link", *modules, "-o", linked)
        _llvm("opt", "-O3", linked, "-o", optimised)
        _llvm("llc", "-O3", "-relocation-model=pic", "-filetype=obj", optimised, "-o", made)
        return made

    def has(self, instruction: str, made: Path, *functions: str) -> bool:
        """Whether the code, of these functions or of all, has such an instruction or relocation."""
        code = _llvm("llvm-objdump", "-d", "-r", "--no-show-raw-insn", made,
                     *(f"--disassemble-symbols={function}" for function in functions))
        return re.search(instruction, code) is not None

    def assert_right(self, made: Path, name: str, symbol: str) -> None:
        """Its function `name` passes the conformance tool as this tile, or the CPU lacks the level."""
        shared = self.directory / "tile.so"
        _llvm("llvm-objcopy", f"--redefine-sym={name}={symbol}", made)
        target = Compiler.find(COMPILER).target_flags(ARCH)
        _run(COMPILER, *target, "-shared", "-nostdlib", made, "-o", shared)
        print(_run(*EMULATOR, self.conformance, "--so", shared, "--symbol", symbol), end="")

    def test_inlined(self) -> None:
        for case in _CASES[ARCH]:
            with self.subTest(case.request):
                tile = self.tiles["inline-bitcode"][case.request]
                flags = case.caller_flags or library.compiler_flags(ARCH, case.level, "Clang")
                made = self.link(self.compile_caller(case, tile, flags), tile)
                # Nothing is left of the tile, and nothing is called.
                self.assertEqual(_llvm("llvm-nm", "-g", "-j", made).split(), ["caller"])
                self.assertFalse(self.has(_CALL, made))
                self.assertTrue(self.has(case.instruction, made))
                self.assert_right(made, "caller", tile.stem)

    def test_called(self) -> None:
        for case in _CASES[ARCH]:
            with self.subTest(case.request):
                tile = self.tiles["bitcode"][case.request]
                baseline = self.compile_caller(case, tile, [])
                made = self.link(baseline, tile)
                self.assertEqual(_llvm("llvm-nm", "-g", "-j", made).split(), ["caller", tile.stem])
                self.assertTrue(self.has(case.instruction, made))
                if case.level not in ("sse2", "neon"):
                    self.assertTrue(self.has(f"R_.*{tile.stem}", made, "caller"))  # a call
                    self.assertFalse(self.has(case.instruction, made, "caller"))
                self.assert_right(made, tile.stem, tile.stem)

    def test_attributes(self) -> None:
        for kind, kept in (("bitcode", True), ("inline-bitcode", False)):
            for tile in self.tiles[kind].values():
                text = _llvm("llvm-dis", tile, "-o", "-")
                self.assertEqual(re.search('"target-(cpu|features)"', text) is not None, kept)
                self.assertEqual("alwaysinline" in text, not kept)


if __name__ == "__main__":
    missing = [tool for tool in _TOOLS if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {', '.join(missing)} (Debian: clang, llvm-{_LLVM})")
        sys.exit()
    BitcodeTest.conformance = sys.argv.pop(1)
    unittest.main()
