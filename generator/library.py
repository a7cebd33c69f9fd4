"""What the library itself says: its hand-written tiles, its ISA levels, its compiler flags."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Iterable, Iterator

from generator.copy_tile import CopyTile
from generator.model import ARCHS, TYPES, RequestError, Tile

ROOT = Path(__file__).resolve().parent.parent

AnyTile = Tile | CopyTile


@dataclass(frozen=True)
class HandRow:
    """A row of a tiles.inc."""

    macro: str  # UK_MMT4D_TILE, ...
    columns: tuple[str, ...]
    tile: AnyTile

    @property
    def numerics(self) -> str:
        return self.columns[8] if self.macro == "UK_MMT4D_TILE" else "exact"


@dataclass(frozen=True)
class Level:
    """A row of ukernel/isa.inc."""

    name: str
    rank: int
    vector_registers: int
    vector_bytes: int
    lhs_by_lane: int
    fma: int
    f16_fma: int
    bf16_dot: int
    s16_k: int
    s16_dot: int
    byte_dot: int
    byte_flip: int
    tile_steps: int
    wide: int
    panels_in_turns: int
    l3_feeds: int
    features: frozenset[str]  # the tails of UK_CPU_*
    slow: frozenset[str]  # of those that put it last


def replace_file(path: Path, text: str) -> None:
    """All of the new text or all of the old, whenever it is interrupted; where a link leads, and with the mode there."""
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".uk-partial-{path.name}")
    try:
        partial.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, partial)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def quoted(text: str) -> str:
    """A word or line of who runs the generator, in a message of one line."""
    return ascii(text if len(text) <= 80 else f"{text[:77]}...")


def named(text: str) -> str:
    """The type of command-line arguments that name a file, directory or program: the empty name, which a
    script's unset variable leaves, would be the current directory or a default."""
    if not text:
        raise argparse.ArgumentTypeError("'' names nothing")
    return text


def named_path(text: str) -> Path:
    return Path(named(text))


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """A file of who runs the generator."""
    try:
        with open(path, encoding=encoding) as file:
            return file.read()
    except UnicodeDecodeError:
        raise RequestError(f"{path}: not a text file") from None


def _read(path: str) -> str:
    """A file of C or CMake that is part of this source tree."""
    return (ROOT / path).read_text(encoding="utf-8")


# ---------------------------------------------------------------- hand-written rows

_DEFINE = re.compile(r"#define (\w+)\(([^)]*)\)\s*(.*)")
_CALL = re.compile(r"(\w+)\(([^()]*)\)")

_Macros = dict[str, tuple[list[str], str]]


def _split(arguments: str) -> list[str]:
    return [a.strip() for a in arguments.split(",")]


def _expand(text: str, macros: _Macros) -> Iterator[tuple[str, list[str]]]:
    if _CALL.sub("", text).strip():
        raise RequestError(f"not a row of tiles: '{text.strip()}'")
    for name, arguments in _CALL.findall(text):
        values = _split(arguments)
        if name in macros:
            parameters, body = macros[name]
            bound = dict(zip(parameters, values, strict=True))
            yield from _expand(re.sub(r"\w+", lambda m: bound.get(m[0], m[0]), body), macros)
        else:
            yield name, values


def expand_rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """The macro and columns of each row of a tiles.inc, its own helper macros expanded."""
    macros: _Macros = {}
    for line in re.sub(r"//.*", "", text).replace("\\\n", " ").splitlines():
        if define := _DEFINE.match(line):
            macros[define[1]] = (_split(define[2]), define[3])
        elif line.startswith("#undef "):
            del macros[line.split()[1]]
        else:
            yield from _expand(line, macros)


def tile_of_row(macro: str, columns: list[str]) -> AnyTile:
    if macro == "UK_MMT4D_TILE":
        lhs, rhs, out, m0, n0, k0, arch, isa, numerics = columns
        return Tile(TYPES[lhs + rhs + out], int(m0), int(n0), int(k0), arch, isa,
                    numerics.endswith("f32acc"))
    op = {"UK_PACK_TILE": "pack", "UK_UNPACK_TILE": "unpack"}[macro]
    width, tile0, tile1, order, arch, isa = columns
    return CopyTile(op, width, int(tile0), int(tile1), order == "transposed", arch, isa)


def row_text(tile: AnyTile, numerics: str) -> str:
    """The row of a tiles.inc for this tile."""
    if isinstance(tile, Tile):
        t = tile.type
        return (f"UK_MMT4D_TILE({t.lhs}, {t.rhs}, {t.out}, {tile.m0}, {tile.n0}, {tile.k0}, "
                f"{tile.arch}, {tile.isa}, {numerics})")
    order = "transposed" if tile.transposed else "straight"
    return (f"UK_{tile.op.upper()}_TILE({tile.width}, {tile.tile0}, {tile.tile1}, {order}, "
            f"{tile.arch}, {tile.isa})")


@cache
def hand_rows_of(arch: str, level: str) -> dict[AnyTile, HandRow]:
    path = f"arch/{arch}/{level}/tiles.inc"
    rows = {}
    for macro, columns in expand_rows(_read(path) if (ROOT / path).exists() else ""):
        tile = tile_of_row(macro, columns)
        if (tile.arch, tile.isa) != (arch, level):
            raise RequestError(f"{path}: {tile.symbol} is of another level")
        rows[tile] = HandRow(macro, tuple(columns), tile)
    return rows


@cache
def hand_rows(arch: str) -> dict[AnyTile, HandRow]:
    return {tile: row for level in sorted(levels(arch)) for tile, row in hand_rows_of(arch, level).items()}


# ---------------------------------------------------------------- levels

@cache
def levels(arch: str) -> dict[str, Level]:
    text = re.sub(r"//.*", "", _read("ukernel/isa.inc")).replace("\\\n", " ")
    macros = dict(re.findall(r"#define (\w+)\s+\(([^)]*)\)", text))

    def features(expression: str) -> Iterator[str]:
        for name in re.findall(r"UK_\w+", expression):
            if name in macros:
                yield from features(macros[name])
            else:
                yield re.sub(r"UK_CPU_(FIELD7_)?[A-Z0-9]+_64_", "", name)

    found = {}
    for arguments in re.findall(r"UK_ISA_LEVEL\(([^()]*)\)", text):
        row_arch, isa, *numbers, field0, field7, slow = _split(arguments)
        if row_arch == arch:
            found[isa] = Level(isa, *map(int, numbers),
                               frozenset([*features(field0), *features(field7)]), frozenset(features(slow)))
    return found


def slow_features(arch: str) -> frozenset[str]:
    """Those that a CPU may have beside its levels' features, to put some of these last."""
    return frozenset().union(*(level.slow for level in levels(arch).values()))


def level_names(texts: Iterable[str]) -> list[str]:
    """Those that --level, as often as it is there, names: several with + between them."""
    return list(dict.fromkeys(name for text in texts for name in text.split("+")))


def check_level(arch: str, name: str, names: Iterable[str]) -> None:
    """That it is one of the names."""
    if name not in names:
        others = "".join(f"; --arch {other} has it" for other in ARCHS if other != arch and name in levels(other))
        raise RequestError(f"unknown level {quoted(name)}; there are {', '.join(names)}{others}")


def levels_served_by(arch: str, name: str) -> list[Level]:
    """The level and all that a CPU of this level can also run, best first."""
    check_level(arch, name, levels(arch))
    features = levels(arch)[name].features
    usable = [level for level in levels(arch).values() if level.features <= features]
    return sorted(usable, key=lambda level: (level.name == name, level.rank), reverse=True)


# ---------------------------------------------------------------- compiler flags

def _cmake_variables(text: str, variables: dict[str, list[str]]) -> None:
    """Runs the commands of a CMake file that set variables; it may hold function definitions, and
    conditions on one variable, STREQUAL or MATCHES. Anything else is refused."""
    text = re.sub(r"#.*", "", text)
    text = re.sub(r"\bfunction\s*\(.*?\bendfunction\s*\([^)]*\)", "", text, flags=re.DOTALL)
    conditions: list[bool] = []
    for command, arguments in re.findall(r"(\w+)\s*\(([^()]*)\)", text):
        words: list[str] = []
        for word in arguments.split():
            reference = re.fullmatch(r"\$\{(\w+)\}", word)
            words += variables.get(reference[1], []) if reference else [word.strip('"')]
        match command, words:
            case "if", [variable, "STREQUAL" | "MATCHES" as relation, value]:
                actual = ";".join(variables.get(variable, []))
                conditions.append(actual == value if relation == "STREQUAL" else
                                  re.search(value, actual) is not None)
            case "else", _:
                conditions[-1] = not conditions[-1]
            case "endif", _:
                conditions.pop()
            case ("set", _) | ("list", _) if not all(conditions):
                pass
            case "set", [name, *values]:
                variables[name] = values
            case "list", ["APPEND", name, *values]:
                variables[name] = [*variables.get(name, []), *values]
            case _:
                raise RequestError(f"cmake/UkIsa.cmake: cannot read '{command}({arguments})'")


@cache
def compiler_flags(arch: str, level: str, compiler_id: str) -> tuple[str, ...]:
    """What the tiles of a level are compiled with. compiler_id is CMake's name for the compiler."""
    variables = {"CMAKE_CXX_COMPILER_ID": [compiler_id], "UK_ARCH": [arch]}
    _cmake_variables(_read("cmake/UkIsa.cmake"), variables)
    of_level = f"UK_FLAGS_{arch}_{level}"
    for name in (of_level, "UK_OBJECT_FLAGS", "UK_TILE_FLAGS"):
        if name not in variables:
            raise RequestError(f"cmake/UkIsa.cmake does not set {name}")
    return (*variables["UK_OBJECT_FLAGS"], *variables["UK_TILE_FLAGS"], *variables[of_level])
