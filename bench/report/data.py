"""What was measured, read from the JSON files that measure.py keeps.

A file has the name of its source, says where its figures come from, and holds what the benchmark
wrote: {"command": ..., "cpu": ..., ..., "data": {...}}. A file that is not there leaves its figures
out; one that cannot be understood, or has a figure above what is possible, is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator

from bench.results import (JUDGED_FIGURES, MOST_PERCENT, MOST_UNCERTAINTY, NAIVE, OP_NAME,
                           PEER_SPEED, finite_number, read_json, uncertainty_of)
from generator import library
from generator.model import BITS, TYPES, RequestError, Tile

PLACES = ("L1", "L2", "mem")  # where the panels of a tile lie

# The types of whole operations, by the names that bench_ops gives them.
OP_TYPES = {"f32": "f32f32f32", "bf16": "bf16bf16f32", "f16": "f16f16f32", "s8s8": "s8s8s32",
            "u8s8": "u8s8s32", "s8s4": "s8s4s32"}


class ReportError(Exception):
    """Why there is no report; its text is one line for the user."""


@dataclass(frozen=True)
class Provenance:
    """Where the figures of a file come from."""

    command: str
    cpu: str
    compiler: str
    version: str  # of the library: version and commit
    date: str
    seconds: float


@dataclass(frozen=True)
class Peak:
    instruction: str
    gops: float  # the highest of all times it was measured


@dataclass(frozen=True)
class TileFigure:
    source: str  # the name of its file
    tile: Tile
    hand: bool
    place: str
    gops: float
    percent: float  # of the instruction's peak; from memory, of the rate of reading alone

    @property
    def ops_per_byte(self) -> float:
        """Of the bytes read at `place`: from memory come the columns, the row stays in the cache."""
        t = self.tile
        rows = 0 if self.place == "mem" else t.m0 * BITS[t.type.lhs]
        return 16 * t.m0 * t.n0 / (rows + t.n0 * BITS[t.type.rhs])


@dataclass(frozen=True)
class PeerFigure:
    ratio: float  # this library's speed by the other's
    gops: float
    is_certain: bool  # the ratio


@dataclass(frozen=True)
class OpFigure:
    source: str  # the name of its file
    type: str
    shape: tuple[int, int, int]  # M, N, K
    form: str  # "packed", "rows", "nk" or "kn"
    cold: bool
    threads: int
    tile: str
    level: str
    gops: float
    percent: float
    bound_percent: float | None  # where weights come from memory
    scaling: float | None  # where there are two threads
    peers: dict[str, PeerFigure]

    @property
    def best_peer(self) -> str | None:
        """Of the other libraries."""
        rivals = self.peers.keys() - {NAIVE}
        return min(rivals, key=lambda name: self.peers[name].ratio) if rivals else None

    @property
    def ops_per_byte(self) -> float:
        """Of operands and result, each moved once."""
        m, n, k = self.shape
        t = TYPES[self.type]
        return 16 * m * n * k / (m * k * BITS[t.lhs] + n * k * BITS[t.rhs] + m * n * BITS[t.out])


@dataclass(frozen=True)
class CopyFigure:
    op: str
    width: str
    tile: tuple[int, int]
    order: str
    size: str
    gbytes: float
    percent: float  # of memcpy, which is no limit: it writes through the cache


@dataclass(frozen=True)
class CodeFigure:
    tile: Tile
    hand: bool
    bytes: int


@dataclass(frozen=True)
class CompileTime:
    requests: int
    tiles: int
    cores: int
    from_nothing: float  # seconds
    cached: float
    archive_bytes: int
    tile_bytes: float


@dataclass
class Measured:
    provenance: dict[str, Provenance] = field(default_factory=dict)
    peaks: dict[tuple[str, str], str] = field(default_factory=dict)  # type, level: instruction
    instructions: dict[str, Peak] = field(default_factory=dict)
    reads: dict[str, float] = field(default_factory=dict)  # place: GB/s, the highest
    tiles: list[TileFigure] = field(default_factory=list)
    ops: list[OpFigure] = field(default_factory=list)
    disturbed_ops: list[OpFigure] = field(default_factory=list)  # in no chart, and in no list but the standings
    copies: list[CopyFigure] = field(default_factory=list)
    code: list[CodeFigure] = field(default_factory=list)
    compile_time: CompileTime | None = None
    peers: str = ""  # other libraries with their versions

    def peak(self, type_name: str, level: str) -> Peak | None:
        instruction = self.peaks.get((type_name, level))
        return self.instructions[instruction] if instruction else None

    def note_peak(self, type_name: str, level: str, instruction: str, gops: float) -> None:
        self.peaks[type_name, level] = instruction
        known = self.instructions.get(instruction)
        if not known or gops > known.gops:
            self.instructions[instruction] = Peak(instruction, gops)

    def note_read(self, place: str, gbytes: float) -> None:
        self.reads[place] = max(gbytes, self.reads.get(place, 0))


# ---------------------------------------------------------------- reading

@dataclass(frozen=True)
class _Record:
    """An object of JSON that knows what to say when a member is not there."""

    place: str
    members: dict[str, Any]

    def number(self, name: str) -> float:
        number = finite_number(self.members.get(name))
        if number is None:
            raise ReportError(f"{self.place} has no number '{name}'")
        return number

    def positive(self, name: str) -> float:
        value = self.number(name)
        if value <= 0:
            raise ReportError(f"{self.place} has a '{name}' of {value:g}")
        return value

    def maybe(self, name: str) -> float | None:
        return self.number(name) if name in self.members else None

    def text(self, name: str) -> str:
        value = self.members.get(name)
        if not isinstance(value, str):
            raise ReportError(f"{self.place} has no text '{name}'")
        return value

    def records(self, name: str) -> Iterator[_Record]:
        value = self.members.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ReportError(f"{self.place} has no list '{name}'")
        for item in value:
            yield _Record(f"{self.place}: {item.get('name') or item.get('symbol')}", item)

    def match(self, name: str, pattern: str | re.Pattern[str]) -> re.Match[str]:
        found = re.match(pattern, self.text(name))
        if not found:
            raise ReportError(f"{self.place}: {name} '{self.text(name)}' is not understood")
        return found


def _repetitions(data: _Record) -> Iterator[list[_Record]]:
    """Those of each benchmark that went well; an error if there is none."""
    by_name: dict[str, list[_Record]] = {}
    for benchmark in data.records("benchmarks"):
        if benchmark.members.get("run_type") != "aggregate":
            by_name.setdefault(benchmark.text("name"), []).append(benchmark)
    for all_of_it in by_name.values():
        good = [b for b in all_of_it if not b.members.get("error_occurred")]
        if not good:
            raise ReportError(f"{all_of_it[0].place}: {all_of_it[0].text('error_message')}")
        yield good


def _benchmarks(data: _Record) -> Iterator[_Record]:
    """Of what is measured once."""
    for repetitions in _repetitions(data):
        yield repetitions[-1]


def _possible(place: str, percent: float, of_what: str) -> float:
    """A percentage of what cannot be exceeded. One that is means an error of measurement."""
    if percent > MOST_PERCENT:
        raise ReportError(f"{place} is at {percent:.1f} % of {of_what}")
    return percent


def _best(repetitions: list[_Record], speed: str, percent: str, of_what: str) -> tuple[float, float]:
    """The highest speed, and the highest of what it was a percentage of."""
    return (max(r.positive(speed) for r in repetitions),
            max(100 * r.positive(speed) / _possible(r.place, r.positive(percent), of_what)
                for r in repetitions))


def _tile(record: _Record, symbol: str) -> Tile:
    try:
        tile = Tile.from_symbol(symbol)
    except RequestError as error:
        raise ReportError(f"{record.place}: {error}") from None
    if tile.isa not in library.levels(tile.arch):
        raise ReportError(f"{record.place}: unknown level '{tile.isa}'")
    return tile


def _is_hand(tile: Tile) -> bool:
    return tile in library.hand_rows(tile.arch)


def _read_roofs(data: _Record, into: Measured, source: str) -> None:
    for b in _benchmarks(data):
        kind, *rest = b.text("name").split("/")
        if kind == "peak" and len(rest) >= 2:
            into.note_peak(rest[0], rest[1], b.text("label"), b.positive("GOP/s"))
        elif kind == "read" and rest and rest[0] in PLACES:
            into.note_read(rest[0], b.positive("GB/s"))
        else:
            raise ReportError(f"{b.place} is neither a peak nor a bandwidth")


def _read_tiles(data: _Record, into: Measured, source: str) -> None:
    for repetitions in _repetitions(data):
        b = repetitions[0]
        symbol, place = b.match("name", r"(\w+)/(L1|L2|mem)\b").groups()
        tile = _tile(b, symbol)
        # What shares the core disturbs some repetitions: the best one counts, against the best of the
        # yardstick.
        gops = max(r.positive("GOP/s") for r in repetitions)
        if place == "mem":
            speed, read = _best(repetitions, "bytes_per_second", "read%", "the read bandwidth")
            percent = 100 * speed / read
            into.note_read("mem", read / 1e9)
        else:
            instruction = b.match("label", "of (.+)")[1]
            _, peak = _best(repetitions, "GOP/s", "peak%", f"the peak of {instruction}")
            percent = 100 * gops / peak
            into.note_peak(tile.type.name, tile.isa, instruction, peak)
        into.tiles.append(TileFigure(source, tile, _is_hand(tile), place, gops, percent))


def _read_ops(data: _Record, into: Measured, source: str) -> None:
    context = data.members.get("context")
    if isinstance(context, dict):
        into.peers = str(context.get("peers", into.peers))
    def is_certain(b: _Record, name: str) -> bool:
        return uncertainty_of(name, b.positive) <= MOST_UNCERTAINTY

    for b in _benchmarks(data):
        type_name, m, n, k, form, cold, threads = b.match("name", OP_NAME).groups()
        if type_name not in OP_TYPES:
            raise ReportError(f"{b.place}: unknown type '{type_name}'")
        tile, level, instruction = b.match("label", r"(\w+) (\w+), of (.+)").groups()
        gops = b.positive("GFLOP/s")
        percent = _possible(b.place, b.positive("peak%"), f"the peak of {instruction}")
        if threads == "1":
            into.note_peak(OP_TYPES[type_name], level, instruction, 100 * gops / percent)
        if "read%" in b.members:
            _possible(b.place, b.number("read%"), "the read bandwidth")
        names = [name.removesuffix(PEER_SPEED) for name in b.members if name.endswith(PEER_SPEED)]
        peers = {name: PeerFigure(b.positive(name), b.positive(name + PEER_SPEED), is_certain(b, name))
                 for name in names}
        op = OpFigure(source, OP_TYPES[type_name], (int(m), int(n), int(k)), form, bool(cold), int(threads), tile,
                      level, gops, percent, b.maybe("bound%"), b.maybe("scaling"), peers)
        judged = {*JUDGED_FIGURES, op.best_peer} & b.members.keys()
        (into.ops if all(is_certain(b, name) for name in judged) else into.disturbed_ops).append(op)


def _read_copies(data: _Record, into: Measured, source: str) -> None:
    for b in _benchmarks(data):
        op, width, tile0, tile1, order, size = b.match(
            "name", r"(pack|unpack)/(x\d+)/(\d+)x(\d+)/(n|i|o|io)/(\w+)").groups()
        into.copies.append(CopyFigure(op, width, (int(tile0), int(tile1)), order, size,
                                      b.positive("bytes_per_second") / 1e9, b.positive("memcpy%")))


def _read_code(data: _Record, into: Measured, source: str) -> None:
    for request in data.records("requests"):
        tile = _tile(request, request.text("symbol"))
        into.code.append(CodeFigure(tile, _is_hand(tile), int(request.positive("code_bytes"))))


def _read_time(data: _Record, into: Measured, source: str) -> None:
    into.compile_time = CompileTime(
        int(data.positive("requests")), int(data.positive("tiles")), int(data.positive("cores")),
        data.positive("from_nothing_s"), data.positive("cached_s"), int(data.positive("archive_bytes")),
        data.positive("code_bytes_per_tile"))


# By what the name of a file starts with, up to a hyphen.
_READERS: dict[str, Callable[[_Record, Measured, str], None]] = {
    "roofs": _read_roofs, "tiles": _read_tiles, "ops": _read_ops, "copies": _read_copies,
    "code": _read_code, "time": _read_time}


def load(path: Path) -> tuple[Provenance, _Record]:
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise ReportError(f"{path.name}: cannot be read: {error}; --only {path.stem} --again makes it anew"
                          ) from None
    if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
        raise ReportError(f"{path.name}: not a measurement; --only {path.stem} --again makes it anew")
    file = _Record(path.name, content)
    provenance = Provenance(*(file.text(name) for name in ("command", "cpu", "compiler", "version",
                                                          "date")), file.number("seconds"))
    if not provenance.command.strip():
        raise ReportError(f"{path.name} has an empty 'command'")
    return provenance, _Record(path.name, content["data"])


def _check_roofs(measured: Measured) -> None:
    """A tile below its peak may still be faster than its panels can be read."""
    for f in measured.tiles:
        if f.place in measured.reads:
            read_percent = 100 * f.gops / (measured.reads[f.place] * f.ops_per_byte)
            _possible(f"{f.tile.symbol} from {f.place}", read_percent, "the read bandwidth")


def read(directory: Path) -> Measured:
    measured = Measured()
    for path in sorted(directory.glob("*.json")):
        reader = _READERS.get(path.stem.partition("-")[0])
        if not reader:
            raise ReportError(f"{path}: the report has no use for a file of this name")
        measured.provenance[path.stem], data = load(path)
        reader(data, measured, path.stem)
    _check_roofs(measured)
    return measured
