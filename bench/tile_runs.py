"""Runs of bench_<arch>_<level>, for the scripts that read their figures."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ARCH = "x86_64"
ABOVE_PEAK, ABSENT_LEVEL = 3, 77  # exit codes
AMD_CORES = {"25": "Zen 4", "26": "Zen 5"}  # by family
ZEN3_MODELS = {0x0, 0x2, 0x4, 0x5}  # of family 25, in sixteens
# By model: Sapphire and Emerald Rapids; the Xeons from Skylake to Cooper Lake, whose cores are alike.
INTEL_CORES = {"143": "Golden Cove", "207": "Golden Cove", "85": "Cascade Lake"}


def _cpu() -> dict[str, str]:
    """What Linux says of the last CPU, by name."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def cpu_name() -> str:
    return _cpu().get("model name", "unknown CPU")


def core_name() -> str:
    """As generator/isa_x86.py names the Core, by the CPU's maker, family and model."""
    cpu = _cpu()
    maker, family = cpu.get("vendor_id", ""), cpu.get("cpu family", "")
    if maker == "GenuineIntel":
        return INTEL_CORES.get(cpu.get("model", ""), "Intel")
    if maker == "AuthenticAMD" and family in AMD_CORES:
        is_zen3 = family == "25" and int(cpu["model"]) // 16 in ZEN3_MODELS
        return "Zen 3" if is_zen3 else AMD_CORES[family]
    sys.exit(f"the planner knows no bounds of this CPU's cores: {maker} family {family}")


def passes(text: str) -> int:
    """Of an option."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of passes")
    return int(text)


def run(directory: Path, level: str, option: str) -> dict[str, dict[str, float]] | None:
    """The counters of each tile by its symbol; None, and a line that says so, if this CPU lacks the
    level. A tile above its peak has none."""
    program = directory / f"bench_{ARCH}_{level}"
    if not program.is_file():
        sys.exit(f"no {program}: name the `bench` folder of a build")
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        ran = subprocess.run(
            [program, option, f"--benchmark_out={out.name}",
             "--benchmark_out_format=json"], capture_output=True, text=True)
        if ran.returncode == ABSENT_LEVEL:
            print(f"skipped {level}: this CPU lacks it", file=sys.stderr)
            return None
        if ran.returncode not in (0, ABOVE_PEAK):
            sys.exit(ran.stderr.strip())
        return {tile["name"].partition("/")[0]: tile for tile in json.load(out)["benchmarks"]
                if "error_occurred" not in tile}
