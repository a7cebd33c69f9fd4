"""Compiles the perceptron of perceptron.mlir.j2 to calls of the library, and by MLIR alone, runs both
and compares what they compute with each other and with a reference.

python3 -m tests.mlir.perceptron f32 avx2_fma [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import jinja2

from generator.model import RequestError
from generator.query import query_tile_sizes
from tests.mlir.pipelines import (HERE, LIBRARY_CALLS, MLIR_ALONE, LoweringError, Target, compile_mlir,
                                  missing_tools, run_tool)

TEMPLATES = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), undefined=jinja2.StrictUndefined,
                               trim_blocks=True, lstrip_blocks=True)

EXIT_SKIPPED = 77


@dataclass(frozen=True)
class Types:
    """As MLIR, the library and perceptron_main.cc name them."""

    element: str
    sum: str
    mmt4d: str
    driver: str


TYPES = {types.element: types for types in (Types("f32", "f32", "f32f32f32", "F32"),
                                            Types("bf16", "f32", "bf16bf16f32", "Bf16"),
                                            Types("i8", "i32", "s8s8s32", "I8"))}


@dataclass(frozen=True)
class Perceptron:
    types: Types
    m: int
    k: int
    h: int
    n: int
    tile: tuple[int, int, int]

    @staticmethod
    def for_level(types: Types, level: str, m: int, k: int, h: int, n: int) -> Perceptron:
        """With the tile that the library answers for the first layer. Weights could have another in
        the second."""
        return Perceptron(types, m, k, h, n, query_tile_sizes("x86_64", level, types.mmt4d, m, h, k))

    @property
    def shift(self) -> int:
        """Of i8: most hidden elements are then within their range, and some are not."""
        return 6 + self.k.bit_length() // 2

    def mlir(self) -> str:
        m0, n0, k0 = self.tile
        return TEMPLATES.get_template("perceptron.mlir.j2").render(
            m=self.m, k=self.k, h=self.h, n=self.n, m0=m0, n0=n0, k0=k0, shift=self.shift,
            element=self.types.element, sum=self.types.sum)

    def compile_driver(self, made: Path) -> None:
        """Of perceptron_main.cc, an object file."""
        macros = {"TYPES": self.types.driver, "SHIFT": self.shift, "M": self.m, "K": self.k, "H": self.h,
                  "N": self.n}
        run_tool(compiler(), "-std=c++17", "-O2", "-ffp-contract=off",
                 *(f"-DUK_{name}={value}" for name, value in macros.items()),
                 "-c", HERE / "perceptron_main.cc", "-o", made)


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def link_command(objects: list[Path], level: str, out: Path, cache: Path) -> list[str | Path]:
    """Makes out/libuk_link.a, of what the objects call."""
    return [sys.executable, "-m", "generator", "link", *objects, "--level", level, "--out", out,
            "--cache", cache, "--cc", compiler()]


def link_program(made: Path, *inputs: Path) -> None:
    run_tool(compiler(), *inputs, "-o", made, "-lm")


# ---------------------------------------------------------------- the test

# With tiles of any shape something is left over at the edges of all matrices.
SIZES = {"m": 37, "k": 50, "h": 71, "n": 33}


def _numerics(types: Types, level: str, by_library: bool) -> str:
    """For perceptron_main.cc."""
    if types.element == "f32" and level == "sse2":
        return "separate"  # it has no fused multiply-add; products of bf16 are exact
    return "dot" if types.element == "bf16" and level == "avx512_bf16" and by_library else "fused"


def _run(program: Path, numerics: str) -> bytes:
    output = program.with_suffix(".y")
    ran = subprocess.run([program, numerics, output], capture_output=True, text=True)
    if ran.returncode:
        raise LoweringError(f"{program.name}: {(ran.stdout or ran.stderr).strip() or ran.returncode}")
    return output.read_bytes()


def check(types: Types, level: str, scratch: Path) -> None:
    perceptron = Perceptron.for_level(types, level, **SIZES)
    source, driver = scratch / "perceptron.mlir", scratch / "driver.o"
    source.write_text(perceptron.mlir())
    perceptron.compile_driver(driver)
    target = Target(level)

    calls = scratch / "calls.o"
    compile_mlir(source, LIBRARY_CALLS, target, calls)
    library = scratch / "library"
    run_tool(*link_command([calls], level, library, scratch / "cache"))
    called = [row["symbol"] for row in json.loads((library / "index.json").read_text())["calls"]]
    for function, count in (("linalg_mmt4d", 2), ("uk_memref_pack", 2), ("uk_memref_unpack", 1)):
        if sum(function in symbol for symbol in called) != count:
            raise LoweringError(f"not {count} calls of {function}, but {called}")
    link_program(scratch / "with_library", driver, calls, library / "libuk_link.a")

    alone = scratch / "alone.o"
    compile_mlir(source, MLIR_ALONE, target, alone)
    link_program(scratch / "mlir_alone", driver, alone)

    with_library = _run(scratch / "with_library", _numerics(types, level, by_library=True))
    mlir_alone = _run(scratch / "mlir_alone", _numerics(types, level, by_library=False))
    same = with_library == mlir_alone
    if not same and _numerics(types, level, by_library=True) != "dot":
        raise LoweringError("the library and MLIR alone differ in bits that both should have")
    tile = "x".join(map(str, perceptron.tile))
    print(f"{types.mmt4d} on {level}, tiles of {tile}: {'same bits' if same else 'within the bound'}")


def _why_not(level: str, host_levels: str | None) -> str | None:
    """What this machine lacks."""
    if missing := missing_tools():
        return f"no {', '.join(missing)} (Debian: mlir-19-tools, llvm-19)"
    if host_levels and level not in run_tool(host_levels).split():
        return f"this CPU has no {level}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("element", choices=TYPES)
    parser.add_argument("level", help="of the CPU: sse2, avx2_fma, ...")
    parser.add_argument("--host-levels", metavar="PROGRAM",
                        help="prints the levels of this CPU; without it the level is assumed to be there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave all files there")
    options = parser.parse_args()
    if reason := _why_not(options.level, options.host_levels):
        print(f"skipped: {reason}")
        return EXIT_SKIPPED
    try:
        with tempfile.TemporaryDirectory() as directory:
            scratch = (options.keep or Path(directory)).absolute()
            scratch.mkdir(parents=True, exist_ok=True)
            check(TYPES[options.element], options.level, scratch)
    except (LoweringError, RequestError) as error:
        print(f"perceptron: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
