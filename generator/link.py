"""python3 -m generator link: an archive of the functions that compiled modules call."""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Iterable

from generator import library
from generator.build import (Build, Options, Unit, load_emit, make_index, tile_unit, tiles_to_make,
                             write_output)
from generator.link_inputs import check_llvm_nm, find_llvm_nm, find_mismatches, read_undefined
from generator.link_names import Call, TileCall, find_call
from generator.model import BITS, RequestError, Tile
from generator.requests import Answer, Asked, Request, find_answer

if TYPE_CHECKING:
    from generator.link_mlir import TextOp

ARCHIVE = "libuk_link.a"


class Unserved(Exception):
    """What cannot be served: a line for each as arguments."""


@dataclass(frozen=True)
class Harvest:
    """What the inputs ask for that the generator can make."""

    asked: dict[Request, Asked]
    answers: dict[Request, Answer]
    calls: dict[Call, Request]
    places: dict[Call, str]


def _best_answer(requests: Iterable[Request], arch: str) -> tuple[Request, Answer]:
    """From the level that ranks highest, of those with a way of their own."""
    found = []
    for request in requests:
        try:
            found.append((request, find_answer(request.tile(arch))))
        except RequestError as error:
            reason = error
    if not found:
        raise reason
    return max(found, key=lambda pair: library.levels(arch)[pair[1].tile.isa].rank)


def harvest(inputs: list[str], nm: str | None, arch: str, levels: list[str]) -> Harvest:
    found = Harvest({}, {}, {}, {})
    reasons = []
    best: dict[tuple[Request, ...], tuple[Request, Answer]] = {}  # calls mostly want the same tiles

    def ask(wanted: Call | TextOp, place: str) -> Request:
        requests = tuple(wanted.request(level) for level in levels)
        if requests not in best:
            best[requests] = _best_answer(requests, arch)
        request, answer = best[requests]
        found.answers[request] = answer
        found.asked.setdefault(request, Asked(place)).count += 1
        return request

    texts = [path for path in inputs if path.endswith(".mlir")]
    objects = [path for path in inputs if not path.endswith(".mlir")]
    if texts:
        from generator.link_mlir import read_ops
    for op in (op for path in texts for op in read_ops(path)):
        try:
            if isinstance(op, str):
                reasons.append(op)
            else:
                ask(op, op.place)
        except RequestError as error:
            reasons.append(f"{op.place}: {op.name}: {error}")
    if nm and objects:
        check_llvm_nm(nm)
    undefined = read_undefined(objects, nm or find_llvm_nm()) if objects else {}
    reasons += find_mismatches(objects, arch)
    for symbol, place in undefined.items():
        try:
            if call := find_call(symbol, arch):
                found.calls[call] = ask(call, place)
                found.places[call] = place
        except RequestError as error:
            reasons.append(f"{place}: {symbol}: {error}")
    if reasons:
        raise Unserved(*reasons)
    return found


# ---------------------------------------------------------------- sources

def _calls_source(answer: Answer, calls: list[Call]) -> str:
    tile = answer.tile
    if isinstance(tile, Tile):
        op, tile_type = "mmt4d", "Mmt4dTile"
        # Not for runs that find all they need in the cache.
        from generator.query import is_wide, step_cost
        from generator.tiles import Row
        row = Row(tile, answer.how.numerics, answer.origin)
        constants = [tile.m0, tile.n0, tile.k0,
                     *(BITS[t] // 8 for t in (tile.type.lhs, tile.type.rhs, tile.type.out)),
                     step_cost(row, is_wide(tile.arch, tile.isa))]
    else:
        op, tile_type = tile.op, f"CopyTile<uk_{tile.op}_tile_fn>"
        constants = [tile.tile0, tile.tile1, int(tile.width[1:]) // 8, str(tile.transposed).lower()]
    return load_emit().TEMPLATES.get_template("calls.cc.j2").render(
        op=op, tile=tile, tile_type=tile_type, constants=constants,
        forwarded=[call for call in calls if isinstance(call, TileCall)],
        calls=[call for call in calls if not isinstance(call, TileCall)])


def _library_source(path: str) -> str:
    return (library.ROOT / path).read_text(encoding="utf-8")


def _call_units(found: Harvest, arch: str, baseline: str) -> dict[Call, Unit]:
    """The functions that one tile serves are compiled together, for any CPU."""
    by_tile: dict[str, list[Call]] = {}
    answers = {}
    for call, request in found.calls.items():
        answer = found.answers[request]
        if call.symbol != answer.tile.symbol:
            by_tile.setdefault(answer.tile.symbol, []).append(call)
            answers[answer.tile.symbol] = answer
    units = {}
    for symbol, calls in by_tile.items():
        calls.sort(key=lambda call: call.symbol)
        digest = hashlib.sha256(repr(calls).encode()).hexdigest()[:16]
        unit = Unit(f"{symbol}_calls_{digest}", baseline,
                    partial(_calls_source, answers[symbol], calls), has_intrinsics=False,
                    flags=("-O1",))  # -O3 finds nothing more in a call, and searches
        units |= {call: unit for call in calls}
    return units


def _common_units(calls: Iterable[Call], baseline: str) -> list[Unit]:
    """What the functions that take memrefs have in common."""
    ops = sorted({call.request("").op for call in calls if not isinstance(call, TileCall)})
    return [Unit(f"memref_{op}", baseline, partial(_library_source, f"generator/memref/{op}.cc"),
                 has_intrinsics=False) for op in ops]


# ---------------------------------------------------------------- the archive

def link(options: Options, found: Harvest) -> None:
    baseline = min(library.levels(options.arch).values(), key=lambda level: level.rank).name
    tiles = {symbol: tile_unit(answer)
             for symbol, answer in tiles_to_make(options, found.answers).items()}
    calls = _call_units(found, options.arch, baseline)
    units = [*tiles.values(), *dict.fromkeys(calls.values()), *_common_units(calls, baseline)]
    work = Build(options)
    work.make(units)
    files = {symbol: work.cached(unit) for symbol, unit in tiles.items()}
    index = make_index(options, work.compiler, found.asked, found.answers, files, ARCHIVE)
    index["calls"] = [{"symbol": call.symbol, "place": found.places[call], "request": request.text,
                       "tile": found.answers[request].tile.symbol}
                      for call, request in found.calls.items()]
    write_output(options, [work.cached(unit) for unit in units], index, ARCHIVE)


def run_link(arguments: argparse.Namespace, options: Options) -> int:
    levels = library.level_names(arguments.level)
    for level in levels:
        library.levels_served_by(options.arch, level)  # it exists
    try:
        found = harvest(arguments.inputs, arguments.nm, options.arch, levels)
    except Unserved as error:
        print(*error.args, f"generator: {len(error.args)} cannot be served; nothing was written",
              sep="\n", file=sys.stderr)
        return 1
    link(options, found)
    return 0
