"""What serves each type on each CPU level: by hand, generated, a lower level, or nothing."""

from __future__ import annotations

import argparse
import sys
from typing import Iterator

from generator import library
from generator.document import read_block, replace_block
from generator.library import Level
from generator.model import BITS, TYPES
from generator.query import select
from generator.tiles import Row, grid_shapes, table


def block_of(arch: str) -> str:
    """The name of the block of a Markdown file that has the table."""
    return f"coverage {arch}"


# M0 of what a matmul is cut into: a vector, a few rows, and anything larger.
CLASSES = {"M0 = 1": range(1, 2), "M0 2 to 7": range(2, 8), "M0 from 8": range(8, 65)}


def _variants() -> Iterator[tuple[str, bool, str]]:
    """Type, SKIP and a name. Types with a 16-bit output are there twice."""
    for name, kind in TYPES.items():
        yield name, False, name
        if BITS[kind.out] == 16:
            yield name, True, f"{name}, rounded once"


def unserved(arch: str, rows: tuple[Row, ...]) -> list[str]:
    """The shapes of the grid that a level leaves to the scalar path."""
    found = []
    for level in library.levels(arch).values():
        selected = {skip: select(rows, level.features, skip) for skip in (False, True)}
        for type_name, m0xn0, k0, f32acc in grid_shapes(arch):
            m0, n0 = map(int, m0xn0.split("x"))
            if (type_name, m0, n0, k0) not in selected[f32acc]:
                found.append(f"{type_name} {m0xn0}x{k0} on {level.name}"
                             + (", rounded once" if f32acc else ""))
    return found


def _served_by(level: Level, rows: list[Row]) -> str:
    """By the level itself, in which way, or by the best of the levels below it."""
    own = {row.origin for row in rows if row.tile.isa == level.name}
    if own:
        return " and ".join(sorted(own, reverse=True))
    if not rows:
        return "none"
    levels = library.levels(rows[0].tile.arch)
    return max((row.tile.isa for row in rows), key=lambda name: levels[name].rank)


def _cell(level: Level, k0s: list[int], rows: list[Row]) -> str:
    """One word if it holds for every K0, or one for each."""
    served = [_served_by(level, [row for row in rows if row.tile.k0 == k0]) for k0 in k0s]
    if len(set(served)) == 1:
        return served[0]
    return ", ".join(f"{k0}: {by}" for k0, by in zip(k0s, served))


def coverage_lines(arch: str, rows: tuple[Row, ...]) -> list[list[str]]:
    """The table: its head, then a line for each type and class of shapes."""
    levels = library.levels(arch).values()
    lines = [["type", "tiles", "K0", *(level.name for level in levels)]]
    for type_name, skip, title in _variants():
        for class_name, m0s in CLASSES.items():
            of_level = {level: [row for (name, m0, _, _), row in
                                select(rows, level.features, skip).items()
                                if name == type_name and m0 in m0s] for level in levels}
            k0s = sorted({row.tile.k0 for served in of_level.values() for row in served})
            cells = [_cell(level, k0s, served) for level, served in of_level.items()]
            lines.append([title, class_name, ", ".join(map(str, k0s)), *cells])
    return lines


def coverage(arch: str, rows: tuple[Row, ...]) -> str:
    """The table in Markdown."""
    head, *lines = coverage_lines(arch, rows)
    lines = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# ---------------------------------------------------------------- command line

def add_coverage_parser(commands: argparse._SubParsersAction, arch: dict) -> None:
    parser = commands.add_parser(
        "coverage", help="print what serves each type on each CPU level; fails where nothing does")
    into = parser.add_mutually_exclusive_group()
    into.add_argument("--check", type=library.named_path, metavar="FILE",
                      help="fail unless the table is what the file has at <!-- coverage ARCH -->")
    into.add_argument("--update", type=library.named_path, metavar="FILE", help="put the table there")
    parser.add_argument("--arch", **arch)
    parser.set_defaults(run=_run)


def _fail(reason: str) -> None:
    print(f"generator: {reason}", file=sys.stderr)
    sys.exit(1)


def _run(arguments: argparse.Namespace) -> None:
    rows = table(arguments.arch)
    missing = unserved(arguments.arch, rows)
    if missing:
        _fail(f"nothing serves {missing[0]}" + (f" and {len(missing) - 1} more" * (len(missing) > 1)))
    text = coverage(arguments.arch, rows)
    if arguments.update:
        replace_block(arguments.update, block_of(arguments.arch), text)
    elif not arguments.check:
        print(text, end="")
    elif read_block(arguments.check, block_of(arguments.arch)) != text:
        _fail(f"{arguments.check}: not what 'python3 -m generator coverage --arch {arguments.arch}' "
              "prints; --update mends it")
