"""python3 -m generator link on LLVM bitcode."""

from __future__ import annotations

import shutil
import subprocess

from tests.generator.link_support import MMT4D, LinkCase, missing_llvm_nm
from tests.generator.support import main, other_arch

_TOOLS = ("clang-19", "llvm-ar-19")


class BitcodeTest(LinkCase):
    def test_bitcode(self) -> None:
        made = self.directory / "model.bc"
        text = self.directory / "model.c"
        text.write_text(f"void {MMT4D.format(4)}(); void f() {{ {MMT4D.format(4)}(); }}")
        subprocess.run(["clang-19", "-w", "-c", "-emit-llvm", text, "-o", made], check=True)
        whole = made.read_bytes()
        for size in (4, 10, len(whole) // 2, len(whole) - 4):
            made.write_bytes(whole[:size])
            with self.subTest(size=size):
                self.assert_refused(2, rf"generator: {made}: [^\n]+", made)
        made.write_bytes(whole)
        archive = self.directory / "a.a"
        subprocess.run(["llvm-ar-19", "rc", archive, made], check=True)
        for model in (made, archive):
            self.assertEqual([row["symbol"] for row in self.link(model)["calls"]], [MMT4D.format(4)])


if __name__ == "__main__":
    tools = ", ".join(tool for tool in _TOOLS if not shutil.which(tool))
    main(other_arch("x86_64"), missing_llvm_nm(), tools and f"no {tools} (Debian: clang-19 llvm-19)")
