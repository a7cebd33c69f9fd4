"""Times `python3 -m generator build` on 1,000 requests that come down to 50 tiles, as a compiler makes
them that lowers many modules: from nothing, and again with everything in the cache.

python3 bench/generator_time.py [--cc CC] [--update FILE] [--json FILE]

--update writes the table between the lines <!-- time --> and <!-- /time --> of a Markdown file, --json
the figures as JSON.
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
from datetime import date
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Five types; the largest tile has 14x32 accumulators.
KINDS = ("f32f32f32 {}x1 avx512_base", "bf16bf16f32 {}x2 avx512_base", "s8s8s32 {}x4 avx512_vnni",
         "u8s8s32 {}x4 avx512_vnni", "s8s4s32 {}x8 avx512_vnni")
SHAPES = ("14x32", "12x32", "8x32", "4x32", "1x64", "16x16", "9x48", "5x16", "7x31", "3x33")
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


def measure(cc: str) -> dict[str, float | str]:
    from_nothing, cached = [], []
    with tempfile.TemporaryDirectory() as directory:
        manifest = Path(directory) / "manifest.txt"
        tiles = write_manifest(manifest)
        for attempt in range(REPEAT):
            out = Path(directory) / f"out{attempt}"
            command = [sys.executable, "-m", "generator", "build", "--manifest", str(manifest),
                       "--self-contained", "--cc", cc, "--out", str(out), "--cache",
                       str(Path(directory) / f"cache{attempt}")]
            from_nothing.append(seconds_of(command))
            cached.append(seconds_of(command))
        index = json.loads((out / "index.json").read_text())
        archive = (out / "libuk_tiles.a").stat().st_size
    code = sum({row["symbol"]: row["code_bytes"] for row in index["requests"]}.values())
    return {"requests": REQUESTS, "tiles": tiles, "cores": len(os.sched_getaffinity(0)),
            "compiler": index["compiler"], "from_nothing_s": statistics.median(from_nothing),
            "cached_s": statistics.median(cached), "archive_bytes": archive,
            "code_bytes_per_tile": code / tiles}


def markdown(m: dict) -> str:
    return "\n".join([
        f"{m['requests']} requests, {m['tiles']} tiles, on {m['cores']} cores "
        f"({m['compiler']}, {date.today()}):",
        "",
        "| from nothing | cached | archive | a tile | code of a tile |",
        "|---|---|---|---|---|",
        f"| {m['from_nothing_s']:.1f} s | {m['cached_s']:.2f} s | {m['archive_bytes'] / 1024:.0f} KiB "
        f"| {1000 * m['from_nothing_s'] / m['tiles']:.0f} ms | {m['code_bytes_per_tile']:.0f} bytes |",
        ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CXX", "c++"), help="the compiler")
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the table there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures there")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from generator.document import replace_block
    from generator.library import replace_file
    figures = measure(options.cc)
    table = markdown(figures)
    print(table)
    if options.json:
        replace_file(options.json, json.dumps(figures))
    if options.update:
        replace_block(options.update, "time", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
