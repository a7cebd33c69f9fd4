"""python3 -m generator link on what mlir-opt and its companions write."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

from generator import library
from generator.model import TYPES
from tests.generator import memrefs
from tests.generator.link_support import CIFACE, LEVEL, LinkCase, missing_level, missing_llvm_nm, symbols
from tests.generator.memrefs import Memref
from tests.generator.support import COMPILER, main, other_arch

_TOOLS = ("mlir-opt-19", "mlir-translate-19", "clang-19", "llc-19")


class MlirTest(LinkCase):
    def lower(self, ops: list[tuple[str, str, str]], *passes: str) -> Path:
        """An object file with a function around each linalg.mmt4d on memrefs of three types."""
        functions = "".join(
            f"func.func @f{n}(%a: {lhs}, %b: {rhs}, %c: {out}) {{\n"
            f"  linalg.mmt4d ins(%a, %b : {lhs}, {rhs}) outs(%c : {out})\n  return\n}}\n"
            for n, (lhs, rhs, out) in enumerate(ops))
        lowered = subprocess.run(
            ["mlir-opt-19", "--convert-linalg-to-std", *passes, "--expand-strided-metadata",
             "--finalize-memref-to-llvm", "--convert-arith-to-llvm", "--convert-func-to-llvm",
             "--reconcile-unrealized-casts"], input=functions, text=True, capture_output=True, check=True)
        translated = subprocess.run(["mlir-translate-19", "--mlir-to-llvmir"], input=lowered.stdout,
                                    text=True, capture_output=True, check=True)
        made = self.directory / "model.o"
        subprocess.run(["clang-19", "-w", "-O1", "-fPIC", "-c", "-x", "ir", "-", "-o", made],
                       input=translated.stdout, text=True, check=True)
        return made

    def test_names(self) -> None:
        ops = [(f"memref<4x?x8x2x{a}>", f"memref<?x?x8x2x{a}, strided<[?, ?, ?, ?], offset: ?>>",
                f"memref<4x?x8x8x{b}, {space}>")
               for a, b in (("f32", "f32"), ("f64", "f64"), ("f16", "f32"), ("f16", "f16"), ("bf16", "f32"),
                            ("bf16", "bf16"), ("i8", "i32"), ("i16", "i32")) for space in (0, 1)]
        index = self.link(self.lower(ops))
        expected = [f"{CIFACE}linalg_mmt4d_view4xsx8x2x{a}_viewsxsx8x2x{a}_view4xsx8x8x{b}{'as1' * space}"
                    for a, b in (("f32", "f32"), ("f64", "f64"), ("f16", "f32"), ("f16", "f16"),
                                 ("bf16", "f32"), ("bf16", "bf16"), ("i8", "i32"), ("i16", "i32"))
                    for space in (0, 1)]
        self.assertEqual([row["symbol"] for row in index["calls"]], sorted(expected))

    def test_batches(self) -> None:
        types = [f"memref<?x{sizes}xf32>" for sizes in ("4x?x8x2", "?x?x8x2", "4x?x8x8")]
        text = self.directory / "batch.mlir"
        text.write_text("func.func @f(%a: {0}, %b: {1}, %c: {2}) {{\n  linalg.batch_mmt4d "
                        "ins(%a, %b : {0}, {1}) outs(%c : {2})\n  return\n}}\n".format(*types))
        lowered = subprocess.run(["mlir-opt-19", "--convert-linalg-to-std", text], text=True,
                                 capture_output=True, check=True).stdout
        name = re.search(r"@(linalg_batch\w+)\(", lowered)[1]
        self.assertEqual([row["symbol"] for row in self.link(self.object([name]))["calls"]], [name])
        self.assertEqual([row["request"] for row in self.link(text)["requests"]],
                         [f"mmt4d f32f32f32 8x8x2 {LEVEL}"])

    def test_commands_of_the_readme(self) -> None:
        text = (library.ROOT / "README.md").read_text(encoding="utf-8")
        section = text[text.index("## From MLIR's calls"):]
        commands = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1]
        # Not in the tree, and with the Python that is known to have Jinja2.
        script = f'set -eu\npython3() {{ "{sys.executable}" "$@"; }}\n{commands}'
        subprocess.run(["sh", "-c", script], cwd=self.directory, check=True,
                       env={**os.environ, "XDG_CACHE_HOME": str(self.directory)})
        name = f"{CIFACE}linalg_mmt4d_viewsxsx16x1xf32_viewsxsx32x1xf32_viewsxsx16x32xf32"
        self.assertIn(name, symbols(self.directory / "mmt4d.so", "--defined-only"))

    def test_a_module_that_was_lowered_runs(self) -> None:
        """With a view of a part of a larger memref, as MLIR itself describes it."""
        types = ("memref<2x3x4x1xf32, strided<[40, 4, 1, 1], offset: 9>>", "memref<?x?x8x1xf32>",
                 "memref<?x?x4x8xf32, strided<[?, ?, ?, ?], offset: ?>>")
        model = self.lower([types], "--llvm-request-c-wrappers")
        self.link(model)
        made = self.directory / "model.so"
        subprocess.run([COMPILER, "-shared", "-Wl,-z,defs", model, self.out / "libuk_link.a", "-o", made],
                       check=True)
        numbers = random.Random(1)
        lhs = Memref("f32", [2, 3, 4, 1], [40, 4, 1, 1], 9).fill(numbers)
        rhs = Memref("f32", [5, 3, 8, 1]).fill(numbers)
        out = Memref("f32", [2, 5, 4, 8], [1000, 40, 9, 1], 7).fill(numbers)
        expected = out.copy()
        memrefs.mmt4d(TYPES["f32f32f32"], lhs, rhs, expected)
        getattr(ctypes.CDLL(str(made)), f"{CIFACE}f0")(
            *(ctypes.byref(o.descriptor()) for o in (lhs, rhs, out)))
        self.assertEqual(out.data[:], expected.data[:])


if __name__ == "__main__":
    tools = ", ".join(tool for tool in _TOOLS if not shutil.which(tool))
    main(other_arch("x86_64"), missing_llvm_nm(), missing_level(),
         tools and f"no {tools} (Debian: mlir-19-tools clang-19 llvm-19)")
