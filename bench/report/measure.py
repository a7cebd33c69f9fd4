"""Runs what the report shows, and keeps what it measured: a JSON file per source in one directory.

A file is used again until what it was measured with is newer.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Iterator

from bench.report.data import OP_TYPES, PLACES, ReportError, load
from bench.results import MOST_PERCENT
from bench.tile_runs import ABOVE_PEAK, ABSENT_LEVEL, ARCH, cpu_name
from generator import library
from generator.library import replace_file
from generator.model import Tile
from generator.tiles import table

_ROOT = library.ROOT
# A figure above what is possible is an error of measurement: that often it is measured.
_ATTEMPTS = 4


@dataclass(frozen=True)
class Source:
    name: str  # of its file
    command: tuple[str, ...]  # without the option that says where its JSON goes
    out: str  # that option
    file: str  # where in `out` the JSON is, empty if it is the file itself
    made_of: tuple[Path, ...]
    minutes: float  # that it takes, roughly; stopped after four times as long


_IN_TURNS = ("--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true")


def _benchmark(name: str, program: Path, minutes: float, pattern: str = "",
               options: tuple[str, ...] = ()) -> Source:
    filters = (f"--benchmark_filter={pattern}",) if pattern else ()
    command = (str(program), *filters, *options, "--benchmark_out_format=json")
    return Source(name, command, "--benchmark_out=", "", (program,), minutes)


def _of_generator() -> tuple[Path, ...]:
    return tuple(path for folder in ("generator", "arch", "ukernel")
                 for path in (_ROOT / folder).rglob("*")
                 if path.suffix in (".py", ".j2", ".h", ".inc", ".cc"))


def sources(build: Path, grid: Path) -> Iterator[Source]:
    """Of what this build has. `grid` is a manifest of its tiles."""
    bench = build / "bench"
    for name, path, minutes in (("roofs", bench / "bench_roofs", 0.2),
                                ("copies", bench / "bench_copies", 6)):
        if path.exists():
            yield _benchmark(name, path, minutes)
    for level in library.levels(ARCH):
        program = bench / f"bench_{ARCH}_{level}"
        if program.exists():
            for place, minutes in zip(PLACES, (1, 1.5, 4), strict=True):
                yield _benchmark(f"tiles-{level}-{place}", program, minutes, f"mmt4d.*/{place}",
                                 _IN_TURNS)
    if (ops := bench / "peers" / "bench_ops").exists():
        for type_name in OP_TYPES:
            for threads in (1, 2):
                yield _benchmark(f"ops-{type_name}-{threads}", ops, 5,
                                 f"^{type_name}/.*/threads:{threads}/")
    yield Source("code", (sys.executable, "-m", "generator", "build", "--self-contained", "--manifest",
                          str(grid)), "--out=", "index.json", _of_generator(), 6)
    yield Source("time", (sys.executable, "bench/generator_time.py"), "--json=", "", _of_generator(), 1)


def is_of(name: str, wanted: str) -> bool:
    """Whether a source is meant by a word of the command line: "ops", "tiles-sse2"."""
    return name == wanted or name.startswith(wanted + "-")


# ---------------------------------------------------------------- where figures come from

def _compiler(build: Path) -> tuple[str, str]:
    """The compiler of a build, and the version of the project that it builds."""
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{build} is no build: {error.strerror}") from None
    found = {name: re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
             for name in ("CMAKE_CXX_COMPILER", "CMAKE_PROJECT_VERSION")}
    path, version = (match[1] if match else "" for match in found.values())
    try:
        asked = subprocess.run([path, "--version"], capture_output=True, text=True)
    except OSError:
        raise ReportError(f"{build}: its compiler '{path}' does not run") from None
    return asked.stdout.partition("\n")[0], version


def _commit() -> str:
    asked = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=_ROOT,
                           capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else "no commit"


# ---------------------------------------------------------------- running

def _manifest() -> str:
    """Requests for every mmt4d tile of the library."""
    tiles = [row.tile for row in table(ARCH) if isinstance(row.tile, Tile)]
    return "".join(f"mmt4d {t.type.name} {t.m0}x{t.n0}x{t.k0} {t.isa}{' f32acc' * t.f32acc}\n"
                   for t in tiles)


def _execute(source: Source, command: list[str]) -> int:
    try:
        ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True,
                             timeout=240 * source.minutes)
    except subprocess.TimeoutExpired:
        raise ReportError(f"{source.name}: takes longer than {4 * source.minutes:g} minutes") from None
    except OSError as error:
        raise ReportError(f"{source.name}: {command[0]}: {error.strerror}") from None
    if ran.returncode not in (0, ABOVE_PEAK, ABSENT_LEVEL):
        lines = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
        raise ReportError(f"{source.name}: {lines[-1]}")
    return ran.returncode


def _impossible(benchmark: dict[str, Any]) -> bool:
    return bool(benchmark.get("error_occurred")) or any(
        benchmark.get(name, 0) > MOST_PERCENT for name in ("peak%", "read%"))


def _written(path: Path) -> dict[str, Any]:
    """Without the means of repetitions."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if "benchmarks" in data:
        data["benchmarks"] = [b for b in data["benchmarks"] if b.get("run_type") != "aggregate"]
    return data


def _run(source: Source, scratch: Path) -> dict[str, Any] | None:
    """What it measured; None if this CPU lacks what it needs."""
    out = scratch / "out"
    code = _execute(source, [*source.command, f"{source.out}{out}"])
    if code == ABSENT_LEVEL:
        return None
    data = _written(out / source.file if source.file else out)
    for _ in range(_ATTEMPTS - 1):
        benchmarks = data.get("benchmarks", ())
        again = {b["name"] for b in benchmarks} - {b["name"] for b in benchmarks if not _impossible(b)}
        if not again:
            break
        unfiltered = [word for word in source.command if not word.startswith("--benchmark_filter=")]
        _execute(source, [*unfiltered, f"--benchmark_filter=^({'|'.join(sorted(again))})$",
                          f"{source.out}{out}"])
        better = _written(out)["benchmarks"]
        data["benchmarks"] = [b for b in data["benchmarks"] if b["name"] not in again] + better
    return data


def _relative(word: str) -> str:
    path = Path(word)
    if path.is_absolute() and path.is_relative_to(_ROOT):
        return str(path.relative_to(_ROOT))
    return "python3" if word == sys.executable else word


def _is_current(source: Source, kept: Path) -> bool:
    if not kept.exists():
        return False
    load(kept)
    return kept.stat().st_mtime >= max(path.stat().st_mtime for path in source.made_of)


def _choose(every: list[Source], directory: Path, only: list[str] | None, again: bool) -> list[Source]:
    for wanted in only or ():
        if not any(is_of(source.name, wanted) for source in every):
            names = ", ".join(dict.fromkeys(source.name.partition("-")[0] for source in every))
            raise ReportError(f"nothing is called '{wanted}'; this build has {names}")
    asked = [s for s in every if not only or any(is_of(s.name, name) for name in only)]
    return [s for s in asked if again or not _is_current(s, directory / f"{s.name}.json")]


def measure(build: Path, directory: Path, only: list[str] | None, again: bool) -> None:
    """Brings the files of a directory up to date, or those that `only` names; `again`: even if they
    are."""
    grid = directory / "grid.txt"
    stale = _choose(list(sources(build, grid)), directory, only, again)
    compiler, version = _compiler(build)
    directory.mkdir(parents=True, exist_ok=True)
    replace_file(grid, _manifest())
    left = sum(source.minutes for source in stale)
    for source in stale:
        print(f"measuring {source.name}; {max(left, 1):.0f} min left", file=sys.stderr, flush=True)
        left -= source.minutes
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=directory, prefix=".partial-") as scratch:
            data = _run(source, Path(scratch))
        kept = directory / f"{source.name}.json"
        if data is None:
            kept.unlink(missing_ok=True)
            print("  skipped: this CPU lacks the level", file=sys.stderr)
            continue
        words = [_relative(word) for word in source.command if word != "--benchmark_out_format=json"]
        words += [f"{source.out}DIR"] * bool(source.file)  # that command writes nowhere else
        replace_file(kept, json.dumps({
            "command": shlex.join(words), "cpu": cpu_name(), "compiler": compiler,
            "version": f"{version} ({_commit()})",
            "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            "seconds": round(time.monotonic() - start, 1), "data": data}))
