"""Times what it costs to compile with MLIR 19 and this library, against MLIR alone: the perceptron of
tests/mlir with narrow and with wide layers, and 1,000 matmuls over 50 tiles.

python3 bench/mlir_compile_time.py LEVEL [--update FILE]

LEVEL is the best of this CPU, avx512_vnni for instance. Times are CPU seconds of all tools together, and
memory is that of the largest. --update writes the tables into the blocks <!-- perceptron --> and
<!-- dispatches --> of a Markdown file. The matmuls take two and a half minutes of one CPU, the
perceptron one.
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

from bench.tile_runs import cpu_name
from generator.document import replace_block
from generator.model import RequestError
from tests.mlir.perceptron import TYPES, Perceptron, Types, compiler, link_command, link_program
from tests.mlir.pipelines import (LIBRARY_CALLS, MLIR_ALONE, MLIR_LOOPS, LoweringError, Target,
                                  compile_commands, run_tool)

# k, h and n of the perceptron; m is always the same.
ROWS = 128
WIDTHS = {"64 wide": (64, 64, 64), "11008 wide": (512, 11008, 512)}

SHAPES = ((14, 32), (12, 32), (8, 32), (4, 32), (1, 64), (16, 16), (9, 48), (5, 16), (7, 31), (3, 33))
ELEMENTS = (("f32", "f32", 1), ("f64", "f64", 1), ("bf16", "f32", 2), ("i16", "i32", 2), ("i8", "i32", 4))
MODULES = 20  # each of them has every tile once
MODULES_ALONE = 4  # of them are compiled in all ways

RUN_SECONDS = 1

WITHOUT_LIBRARY = {"MLIR alone": MLIR_ALONE, "MLIR alone, plain loops": MLIR_LOOPS}


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
    objects: list[Path]
    link: Cost = Cost()  # of the library's part, from nothing
    cached: Cost = Cost()

    def columns(self) -> str:
        total, again = self.compile + self.link, self.compile + self.cached
        return (f"{total.seconds:.2f} | {again.seconds:.2f} | {total.mebibytes:.0f} | "
                f"{code_bytes(*self.objects) / 1024:.1f}")


def compile_in_turns(sources: list[Path], ways: dict[str, tuple[str, ...]], level: str) -> dict[str, Way]:
    """Source by source, so that what else the machine does meanwhile counts for all ways alike."""
    costs = dict.fromkeys(ways, Cost())
    objects = {way: [source.with_suffix(f".way{i}.o") for source in sources]
               for i, way in enumerate(ways)}
    for i, source in enumerate(sources):
        for way, passes in ways.items():
            costs[way] += cost_of(compile_commands(source, passes, Target(level), objects[way][i]))
    return {way: Way(costs[way], objects[way]) for way in ways}


def with_library(calls: Way, level: str, out: Path) -> Way:
    link = link_command(calls.objects, level, out, out / "cache")
    from_nothing, cached = cost_of([link]), cost_of([link])
    return Way(calls.compile, [*calls.objects, out / "libuk_link.a"], from_nothing, cached)


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
    ways = compile_in_turns([source], {"library": LIBRARY_CALLS} | WITHOUT_LIBRARY, level)
    ways["library"] = with_library(ways["library"], level, scratch / f"{name}.library")
    programs = [scratch / f"{name}.{i}" for i in range(len(ways))]
    for program, way in zip(programs, ways.values()):
        link_program(program, driver, *way.objects)
    return [f"| {types.element}, {width}, {way} | {made.columns()} | {ms:.3g} |"
            for (way, made), ms in zip(ways.items(), _milliseconds(programs))]


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


def dispatch_program(made: Path, modules: int, way: Way) -> Path:
    rows = "".join(dispatch.row() for m in range(modules) for dispatch in dispatches_of(m))
    (made.parent / "mlir_dispatches.inc").write_text(rows)
    run_tool(compiler(), "-std=c++17", "-O2", f"-I{made.parent}", ROOT / "bench/mlir_dispatches.cc",
             *way.objects, "-lm", "-o", made)
    return made


def dispatch_sources(scratch: Path) -> list[Path]:
    template = jinja2.Environment(loader=jinja2.FileSystemLoader(ROOT / "bench"), trim_blocks=True,
                                  lstrip_blocks=True).get_template("mlir_dispatches.mlir.j2")
    sources = [scratch / f"module{m}.mlir" for m in range(MODULES)]
    for module, source in enumerate(sources):
        source.write_text(template.render(dispatches=dispatches_of(module)))
    return sources


def dispatch_rows(level: str, scratch: Path) -> list[str]:
    sources = dispatch_sources(scratch)
    calls = {"library": LIBRARY_CALLS}
    ways = compile_in_turns(sources[:MODULES_ALONE], calls | WITHOUT_LIBRARY, level)
    some = ways["library"]
    rest = compile_in_turns(sources[MODULES_ALONE:], calls, level)["library"]
    everything = with_library(Way(some.compile + rest.compile, some.objects + rest.objects), level,
                              scratch / "all")
    ways["library"] = with_library(some, level, scratch / "some")
    programs = [dispatch_program(scratch / f"some{i}", MODULES_ALONE, way)
                for i, way in enumerate(ways.values())]
    if len({run_tool(program, "sum") for program in programs}) != 1:
        sys.exit("mlir_compile_time: the products differ")
    all_calls = dispatch_program(scratch / "all_calls", MODULES, everything)
    *times, time_of_all = _milliseconds([*programs, all_calls])
    return [*(f"| {MODULES_ALONE} modules, {way} | {made.columns()} | {ms:.3g} |"
              for (way, made), ms in zip(ways.items(), times)),
            f"| {MODULES} modules, library | {everything.columns()} | {time_of_all:.3g} |"]


# ---------------------------------------------------------------- the tables

def measure(level: str, parts: list[str]) -> dict[str, str]:
    """Tables in Markdown, by their block."""
    tables = {}
    where = f"({cpu_name()}, {level}, {date.today()})"
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
    except (LoweringError, RequestError) as error:
        sys.exit(f"mlir_compile_time: {error}")
    for name, table in tables.items():
        print(table)
        if options.update:
            replace_block(options.update, name, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
