"""Times the generator on what a compiler asks of it that lowers many modules, from nothing, and again
with everything in the cache: `build` on 1,000 requests that come down to 50 tiles, and `link` on an object
file with calls of 1,000 functions, which are linalg.mmt4d on memrefs of so many shapes and need 50 tiles.

python3 bench/generator_time.py [--cc CC] [--update FILE] [--json FILE]

--update writes the tables between the lines <!-- time --> and <!-- /time -->, and <!-- link time --> and
<!-- /link time -->, of a Markdown file; --json the figures of `build` as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Five types; the largest tile has 14x32 accumulators.
KINDS = ("f32f32f32 {}x1 avx512_base", "bf16bf16f32 {}x2 avx512_base", "s8s8s32 {}x4 avx512_vnni",
         "u8s8s32 {}x4 avx512_vnni", "s8s4s32 {}x8 avx512_vnni")
SHAPES = ("14x32", "12x32", "8x32", "4x32", "1x64", "16x16", "9x48", "5x16", "7x31", "3x33")
KINDS_OF_CALLS = (("f32", "f32", 1), ("bf16", "f32", 2), ("f16", "f32", 1), ("i8", "i32", 4),
                  ("i16", "i32", 2))
REQUESTS = 1000
REPEAT = 3


def write_manifest(path: Path) -> None:
    """Each distinct request is there at least once."""
    distinct = [f"mmt4d {kind.format(shape)}" for kind, shape in product(KINDS, SHAPES)]
    numbers = random.Random(1)
    lines = distinct + numbers.choices(distinct, k=REQUESTS - len(distinct))
    numbers.shuffle(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr.strip())
    return time.perf_counter() - start


@dataclass
class Times:
    """Medians in seconds, and what was written."""

    from_nothing: float
    cached: float
    index: dict
    archive_bytes: int

    @property
    def text(self) -> str:
        return f"{self.from_nothing:.1f} s | {self.cached:.2f} s | {self.archive_bytes / 1024:.0f} KiB"

    @property
    def circumstances(self) -> str:
        return f"on {cores()} cores ({self.index['compiler']}, {date.today()})"

    @property
    def code_bytes_per_tile(self) -> float:
        code = {row["symbol"]: row["code_bytes"] for row in self.index["requests"]}
        return sum(code.values()) / len(code)


def cores() -> int:
    return len(os.sched_getaffinity(0))


def measure(directory: Path, archive: str, *arguments: str) -> Times:
    from_nothing, cached = [], []
    for attempt in range(REPEAT):
        out = directory / f"{archive}-{attempt}"
        command = [sys.executable, "-m", "generator", *arguments, "--out", str(out), "--cache",
                   f"{out}-cache"]
        from_nothing.append(seconds_of(command))
        cached.append(seconds_of(command))
    return Times(statistics.median(from_nothing), statistics.median(cached),
                 json.loads((out / "index.json").read_text()), (out / archive).stat().st_size)


def measure_build(directory: Path, cc: str) -> Times:
    manifest = directory / "manifest.txt"
    write_manifest(manifest)
    return measure(directory, "libuk_tiles.a", "build", "--manifest", str(manifest), "--self-contained",
                   "--cc", cc)


def build_table(times: Times) -> str:
    """In Markdown."""
    tiles = len(KINDS) * len(SHAPES)
    return "\n".join([
        f"{REQUESTS} requests, {tiles} tiles, {times.circumstances}:",
        "",
        "| from nothing | cached | archive | a tile | code of a tile |",
        "|---|---|---|---|---|",
        f"| {times.text} | {1000 * times.from_nothing / tiles:.0f} ms "
        f"| {times.code_bytes_per_tile:.0f} bytes |",
        ""])


def build_figures(times: Times) -> dict[str, float | str]:
    """What the report shows."""
    return {"requests": REQUESTS, "tiles": len(KINDS) * len(SHAPES), "cores": cores(),
            "compiler": times.index["compiler"], "from_nothing_s": times.from_nothing,
            "cached_s": times.cached, "archive_bytes": times.archive_bytes,
            "code_bytes_per_tile": times.code_bytes_per_tile}


def call_names() -> list[str]:
    names = []
    for kind, shape in product(KINDS_OF_CALLS, SHAPES):
        (element, out, k0), (m0, n0) = kind, shape.split("x")
        for n in range(REQUESTS // len(KINDS_OF_CALLS) // len(SHAPES)):
            m1, n1, k1 = 1 << n % 5, 64 + n, 4096 // k0
            names.append(f"_mlir_ciface_linalg_mmt4d_view{m1}x{k1}x{m0}x{k0}x{element}_"
                         f"view{n1}x{k1}x{n0}x{k0}x{element}_view{m1}x{n1}x{m0}x{n0}x{out}")
    return names


def measure_link(directory: Path, cc: str) -> Times:
    names = call_names()
    model = directory / "model.o"
    text = "".join(f"void {name}();\n" for name in names)
    text += "void model() {\n" + "".join(f"  {name}();\n" for name in names) + "}\n"
    subprocess.run([cc, "-c", "-x", "c++", "-", "-o", str(model)], input=f'extern "C" {{\n{text}}}\n',
                   text=True, check=True)
    return measure(directory, "libuk_link.a", "link", str(model), "--level", "avx512_vnni", "--cc", cc)


def link_table(times: Times) -> str:
    """In Markdown."""
    return "\n".join([
        f"{len(times.index['calls'])} functions, {len(times.index['requests'])} tiles, "
        f"{times.circumstances}:",
        "",
        "| from nothing | cached | archive |",
        "|---|---|---|",
        f"| {times.text} |", ""])


def check_replaceable(path: Path) -> None:
    """A file is written beside it, then renamed."""
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures of build there")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from generator.document import read_block, replace_block
    from generator.library import replace_file
    from generator.model import RequestError
    try:  # what would otherwise fail after minutes
        for name in ("time", "link time") if options.update else ():
            read_block(options.update, name)
        for path in filter(None, (options.update, options.json)):
            check_replaceable(path)
    except (RequestError, OSError) as error:
        print(f"generator_time.py: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        build = measure_build(Path(directory), options.cc)
        link = measure_link(Path(directory), options.cc)
    for name, table in (("time", build_table(build)), ("link time", link_table(link))):
        print(table)
        if options.update:
            replace_block(options.update, name, table)
    if options.json:
        replace_file(options.json, json.dumps(build_figures(build)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
