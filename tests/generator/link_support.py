"""What the tests of python3 -m generator link share."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

from generator.link_inputs import find_llvm_nm
from generator.model import RequestError
from tests.generator.support import ARCH, COMPILER, run_generator

LEVEL = "avx2_fma"
CIFACE = "_mlir_ciface_"

# Of M0 x 8 x 1, without M0.
MMT4D = "linalg_mmt4d_viewsxsx{0}x1xf32_viewsxsx8x1xf32_viewsxsx{0}x8xf32"

_CPU = Path("/proc/cpuinfo")


def missing_level() -> str:
    """Empty if this CPU has LEVEL."""
    has_it = _CPU.exists() and {"avx2", "fma", "f16c"} <= set(_CPU.read_text().split())
    return "" if has_it else f"this CPU lacks {LEVEL}"


def missing_llvm_nm() -> str:
    try:
        find_llvm_nm()
    except RequestError as error:
        return str(error)
    return ""


def symbols(path: Path, *options: str) -> set[str]:
    ran = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in ran.stdout.splitlines() if len(line.split()) > 1}


class LinkCase(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.out = self.directory / "out"
        self.cc = self.directory / "cc"
        self.cc.write_text(f'#!/bin/sh\nexec {shlex.quote(COMPILER)} -Wall -Wextra -Werror "$@"\n')
        self.cc.chmod(0o755)

    def object(self, calls: list[str], name: str = "model", defines: tuple[str, ...] = ()) -> Path:
        """An object file with these undefined symbols."""
        text = self.directory / f"{name}.cc"
        text.write_text('extern "C" {\n' + "".join(f"void {call}();\n" for call in calls)
                        + f"void {name}() {{\n" + "".join(f"  {call}();\n" for call in calls) + "}\n"
                        + "".join(f"void {symbol}() {{}}\n" for symbol in defines) + "}\n")
        made = self.directory / f"{name}.o"
        subprocess.run([COMPILER, "-c", text, "-o", made], check=True)
        return made

    def arguments(self, *inputs: object) -> list[str]:
        return ["link", *map(str, inputs), "--level", LEVEL, "--arch", ARCH, "--out", str(self.out),
                "--cache", str(self.directory / "cache"), "--cc", str(self.cc)]

    def link(self, *inputs: object) -> dict:
        """The index."""
        ran = run_generator(*self.arguments(*inputs))
        self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (0, "", ""))
        return json.loads((self.out / "index.json").read_text())

    def assert_refused(self, code: int, pattern: str, *inputs: object, command: list[str] | None = None
                       ) -> None:
        ran = run_generator(*(command or self.arguments(*inputs)))
        self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
        self.assertRegex(ran.stderr, f"^{pattern}\n$")
        self.assertFalse(self.out.exists())
        self.assertEqual(list(self.directory.rglob(".*")), [])
