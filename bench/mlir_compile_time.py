"""Times what it costs to compile with MLIR 19 and this library, against MLIR alone unrolling the same
tiles: the perceptron of tests/mlir with narrow and with wide layers, and 1,000 matmuls over 50 tiles.

python3 bench/mlir_compile_time.py LEVEL [--update FILE]

LEVEL is the best of this CPU, avx512_vnni for instance. Times are CPU seconds of all tools together, and
memory is that of the largest. --update writes the tables into the blocks <!-- perceptron --> and
<!-- dispatches --> of a Markdown file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import jinja2

from generator.document import replace_block
from tests.mlir.perceptron import TYPES, Perceptron, Types, compiler, link_command, link_program
from tests.mlir.pipelines import (LIBRARY_CALLS, MLIR_ALONE, LoweringError, Target, compile_commands,
                                  run_tool)

# k, h and n of the perceptron; m is always the same.
ROWS = 128
WIDTHS = {"64 wide": (64, 64, 64), "11008 wide": (512, 11008, 512)}

SHAPES = ((14, 32), (12, 32), (8, 32), (4, 32), (1, 64), (16, 16), (9, 48), (5, 16), (7, 31), (3, 33))
ELEMENTS = (("f32", "f32", 1), ("f64", "f64", 1), ("bf16", "f32", 2), ("i16", "i32", 2), ("i8", "i32", 4))
MODULES = 20  # each of them has every tile once
MODULES_ALONE = 2  # of them are lowered by MLIR alone too

RUN_SECONDS = 1


# ---------------------------------------------------------------- measuring

@dataclass(frozen=True)
class Cost:
    seconds: float = 0
    mebibytes: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, max(self.mebibytes, other.mebibytes))


def cost_of(commands: list[list[str | Path]]) -> Cost:
    """Of commands one after the other, with all that they start."""
    total = Cost()
    for command in commands:
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen([str(word) for word in command], cwd=ROOT,
                                       stdout=subprocess.DEVNULL, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                errors.seek(0)
                sys.exit(f"{command[0]}: {errors.read().strip()}")
        total += Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
    return total


def code_bytes(*objects: Path) -> int:
    """As `size` counts them: code and constants."""
    lines = run_tool("size", *objects).splitlines()[1:]
    return sum(int(line.split()[0]) for line in lines)


@dataclass(frozen=True)
class Way:
    """A program compiled in one way."""

    compile: Cost
    link: Cost | None  # of the library's part, from nothing
    cached: Cost | None
    bytes: int

    def columns(self) -> str:
        total = self.compile + (self.link or Cost())
        again = self.compile + (self.cached or Cost())
        return (f"{total.seconds:.2f} | {again.seconds:.2f} | {total.mebibytes:.0f} | "
                f"{self.bytes / 1024:.1f}")


def with_library(sources: list[Path], level: str, scratch: Path) -> tuple[Way, list[Path]]:
    """And what to link."""
    objects = [source.with_suffix(".calls.o") for source in sources]
    compiled = cost_of([command for source, made in zip(sources, objects)
                        for command in compile_commands(source, LIBRARY_CALLS, Target(level), made)])
    out = scratch / f"{sources[0].stem}.library"
    link = link_command(objects, level, out, scratch / f"{sources[0].stem}.cache")
    from_nothing, cached = cost_of([link]), cost_of([link])
    archive = out / "libuk_link.a"
    return Way(compiled, from_nothing, cached, code_bytes(*objects, archive)), [*objects, archive]


def mlir_alone(sources: list[Path], level: str) -> tuple[Way, list[Path]]:
    objects = [source.with_suffix(".alone.o") for source in sources]
    compiled = cost_of([command for source, made in zip(sources, objects)
                        for command in compile_commands(source, MLIR_ALONE, Target(level), made)])
    return Way(compiled, None, None, code_bytes(*objects)), objects


HEAD = ["| | compile, s | again, s | memory, MiB | code, KiB | run, ms |", "|---|---|---|---|---|---|"]


# ---------------------------------------------------------------- the perceptron

def _milliseconds(programs: list[Path]) -> list[float]:
    """Of the fastest run of each, in turns."""
    best = [float("inf")] * len(programs)
    for _ in range(2):
        for i, program in enumerate(programs):
            best[i] = min(best[i], float(run_tool(program, "time", RUN_SECONDS / 2)) / 1000)
    return best


def perceptron_rows(types: Types, width: str, level: str, scratch: Path) -> list[str]:
    perceptron = Perceptron.for_level(types, level, ROWS, *WIDTHS[width])
    name = f"{types.element}-{width.replace(' ', '-')}"
    source, driver = scratch / f"{name}.mlir", scratch / f"{name}.driver.o"
    source.write_text(perceptron.mlir())
    perceptron.compile_driver(driver)
    programs = []
    ways = {}
    for way, (cost, objects) in (("library", with_library([source], level, scratch)),
                                 ("MLIR alone", mlir_alone([source], level))):
        ways[way] = cost
        programs.append(scratch / f"{name}.{len(programs)}")
        link_program(programs[-1], driver, *objects)
    times = _milliseconds(programs)
    return [f"| {types.element}, {width}, {way} | {cost.columns()} | {ms:.3g} |"
            for (way, cost), ms in zip(ways.items(), times)]


# ---------------------------------------------------------------- the dispatches

@dataclass(frozen=True)
class Dispatch:
    """A function of mlir_dispatches.mlir.j2, in tiles."""

    number: int
    element: str
    sum: str
    m0: int
    n0: int
    k0: int
    m1: int
    n1: int
    k1: int

    def row(self) -> str:
        """For mlir_dispatches.cc."""
        element, total = (int(re.sub(r"\D*", "", x)) // 8 for x in (self.element, self.sum))
        return (f"DISPATCH({self.number}, {self.m1}, {self.n1}, {self.k1}, {self.m0}, {self.n0}, "
                f"{self.k0}, {element}, {total})\n")


def dispatches_of(module: int) -> list[Dispatch]:
    """Every tile, each with sizes that no other module has."""
    kinds = list(product(ELEMENTS, SHAPES))
    return [Dispatch(module * len(kinds) + i, element, total, m0, n0, k0, 2 + i % 3, 2 + i % 5, 32 + module)
            for i, ((element, total, k0), (m0, n0)) in enumerate(kinds)]


def dispatch_program(name: str, modules: int, objects: list[Path], scratch: Path) -> Path:
    rows = "".join(dispatch.row() for m in range(modules) for dispatch in dispatches_of(m))
    (scratch / "mlir_dispatches.inc").write_text(rows)
    made = scratch / name
    run_tool(compiler(), "-std=c++17", "-O2", f"-I{scratch}", ROOT / "bench/mlir_dispatches.cc", *objects,
             "-lm", "-o", made)
    return made


def dispatch_rows(level: str, scratch: Path) -> list[str]:
    template = jinja2.Environment(loader=jinja2.FileSystemLoader(ROOT / "bench"), trim_blocks=True,
                                  lstrip_blocks=True).get_template("mlir_dispatches.mlir.j2")
    sources = [scratch / f"module{m}.mlir" for m in range(MODULES)]
    for module, source in enumerate(sources):
        source.write_text(template.render(dispatches=dispatches_of(module)))
    library, calls = with_library(sources, level, scratch)
    some = sources[:MODULES_ALONE]
    alone, unrolled = mlir_alone(some, level)
    # The archive has the functions of all modules: the linker leaves out what this program lacks.
    some_calls = [*calls[:MODULES_ALONE], calls[-1]]
    programs = [dispatch_program("with_library", MODULES_ALONE, some_calls, scratch),
                dispatch_program("alone", MODULES_ALONE, unrolled, scratch)]
    sums = [run_tool(program, "sum") for program in programs]
    if sums[0] != sums[1]:
        sys.exit("mlir_compile_time: the products differ")
    times = _milliseconds(programs)
    return [f"| {MODULES} modules, library | {library.columns()} | |",
            f"| {MODULES_ALONE} modules, library | | | | | {times[0]:.3g} |",
            f"| {MODULES_ALONE} modules, MLIR alone | {alone.columns()} | {times[1]:.3g} |"]


# ---------------------------------------------------------------- the tables

def _cpu() -> str:
    match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return match[1] if match else "unknown CPU"


def measure(level: str, parts: list[str]) -> dict[str, str]:
    """Tables in Markdown, by their block."""
    tables = {}
    where = f"({_cpu()}, {level}, {date.today()})"
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        if "perceptron" in parts:
            rows = [row for types in TYPES.values() for width in WIDTHS
                    for row in perceptron_rows(types, width, level, scratch)]
            tables["perceptron"] = "\n".join([f"The perceptron, {ROWS} rows {where}:", "", *HEAD, *rows, ""])
        if "dispatches" in parts:
            per_module = len(ELEMENTS) * len(SHAPES)
            tables["dispatches"] = "\n".join([
                f"{MODULES * per_module} matmuls over {per_module} tiles, {per_module} a module {where}:", "",
                *HEAD, *dispatch_rows(level, scratch), ""])
    return tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("level", help="of the CPU")
    parser.add_argument("--part", action="append", choices=("perceptron", "dispatches"),
                        help="only this one")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    options = parser.parse_args()
    try:
        tables = measure(options.level, options.part or ["perceptron", "dispatches"])
    except LoweringError as error:
        sys.exit(f"mlir_compile_time: {error}")
    for name, table in tables.items():
        print(table)
        if options.update:
            replace_block(options.update, name, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
