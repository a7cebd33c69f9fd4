"""Times the generator on what a compiler asks of it that lowers many modules, from nothing, and again
with everything in the cache: `build` on 1,000 requests that come down to 50 tiles, and `link` on an object
file with calls of 1,000 functions, which are linalg.mmt4d on memrefs of so many shapes and need 50 tiles.

python3 bench/generator_time.py [--cc CC] [--update FILE]

--update writes the tables between the lines <!-- time --> and <!-- /time -->, and <!-- link time --> and
<!-- /link time -->, of a Markdown file.
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
KINDS_OF_CALLS = (("f32", "f32", 1), ("bf16", "f32", 2), ("f16", "f32", 1), ("i8", "i32", 4), ("i16", "i32", 2))
REQUESTS = 1000
REPEAT = 3


def write_manifest(path: Path) -> int:
    """Returns the number of distinct requests, each of which is there at least once."""
    distinct = [f"mmt4d {kind.format(shape)}" for kind, shape in product(KINDS, SHAPES)]
    numbers = random.Random(1)
    lines = distinct + numbers.choices(distinct, k=REQUESTS - len(distinct))
    numbers.shuffle(lines)
    path.write_text("".join(f"{line}\n" for line in lines))
    return len(distinct)


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
        return f"on {len(os.sched_getaffinity(0))} cores ({self.index['compiler']}, {date.today()})"


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


def build_table(directory: Path, cc: str) -> str:
    """In Markdown."""
    manifest = directory / "manifest.txt"
    tiles = write_manifest(manifest)
    times = measure(directory, "libuk_tiles.a", "build", "--manifest", str(manifest), "--self-contained",
                    "--cc", cc)
    code = sum({row["symbol"]: row["code_bytes"] for row in times.index["requests"]}.values())
    return "\n".join([
        f"{REQUESTS} requests, {tiles} tiles, {times.circumstances}:",
        "",
        "| from nothing | cached | archive | a tile | code of a tile |",
        "|---|---|---|---|---|",
        f"| {times.text} | {1000 * times.from_nothing / tiles:.0f} ms | {code / tiles:.0f} bytes |", ""])


def call_names() -> list[str]:
    names = []
    for kind, shape in product(KINDS_OF_CALLS, SHAPES):
        (element, out, k0), (m0, n0) = kind, shape.split("x")
        for n in range(REQUESTS // len(KINDS_OF_CALLS) // len(SHAPES)):
            m1, n1, k1 = 1 << n % 5, 64 + n, 4096 // k0
            names.append(f"_mlir_ciface_linalg_mmt4d_view{m1}x{k1}x{m0}x{k0}x{element}_"
                         f"view{n1}x{k1}x{n0}x{k0}x{element}_view{m1}x{n1}x{m0}x{n0}x{out}")
    return names


def link_table(directory: Path, cc: str) -> str:
    """In Markdown."""
    names = call_names()
    model = directory / "model.o"
    text = "".join(f"void {name}();\n" for name in names)
    text += "void model() {\n" + "".join(f"  {name}();\n" for name in names) + "}\n"
    subprocess.run([cc, "-c", "-x", "c++", "-", "-o", str(model)], input=f'extern "C" {{\n{text}}}\n',
                   text=True, check=True)
    times = measure(directory, "libuk_link.a", "link", str(model), "--level", "avx512_vnni", "--cc", cc)
    return "\n".join([
        f"{len(times.index['calls'])} functions, {len(times.index['requests'])} tiles, "
        f"{times.circumstances}:",
        "",
        "| from nothing | cached | archive |",
        "|---|---|---|",
        f"| {times.text} |", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the tables there")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from generator.document import replace_block
    for name, table_of in (("time", build_table), ("link time", link_table)):
        with tempfile.TemporaryDirectory() as directory:
            table = table_of(Path(directory), options.cc)
        print(table)
        if options.update:
            replace_block(options.update, name, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
