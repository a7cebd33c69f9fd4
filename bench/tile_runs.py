"""Runs of bench_<arch>_<level>, for the scripts that read their figures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ARCH = "x86_64"
ABOVE_PEAK, ABSENT_LEVEL = 3, 77  # exit codes


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def run(directory: Path, level: str, option: str) -> dict[str, dict[str, float]] | None:
    """The counters of each tile by its symbol; None, and a line that says so, if this CPU lacks the
    level. A tile above its peak has none."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        ran = subprocess.run(
            [directory / f"bench_{ARCH}_{level}", option, f"--benchmark_out={out.name}",
             "--benchmark_out_format=json"], capture_output=True, text=True)
        if ran.returncode == ABSENT_LEVEL:
            print(f"skipped {level}: this CPU lacks it", file=sys.stderr)
            return None
        if ran.returncode not in (0, ABOVE_PEAK):
            sys.exit(ran.stderr.strip())
        return {tile["name"].partition("/")[0]: tile for tile in json.load(out)["benchmarks"]
                if "error_occurred" not in tile}
