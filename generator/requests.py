"""Requests for tiles: reading manifests, and finding what answers each request."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Iterable

from generator import library
from generator.copy_tile import CopyCode, CopyTile, copy_level
from generator.library import AnyTile, HandRow, quoted
from generator.model import TYPES, Primitive, RequestError, Tile
from generator.select import choose_primitive

OPS = ("mmt4d", "pack", "unpack")


@dataclass(frozen=True)
class Request:
    """A line of a manifest."""

    op: str
    type: str  # of pack and unpack the element width, x8
    shape: tuple[int, ...]
    level: str
    option: str = ""  # "f32acc" of mmt4d, "t" (inner transpose) of pack and unpack

    @property
    def text(self) -> str:
        shape = "x".join(map(str, self.shape))
        fields = ([self.op, self.type, shape, self.level, self.option] if self.op == "mmt4d" else
                  [self.op, self.type, shape, self.option, self.level])
        return " ".join(filter(None, fields))

    def tile(self, arch: str) -> AnyTile:
        if self.op == "mmt4d":
            if self.type not in TYPES:
                raise RequestError(f"unknown type '{self.type}'; there are {', '.join(TYPES)}")
            return Tile(TYPES[self.type], *self.shape, arch, self.level, self.option == "f32acc")
        return CopyTile(self.op, self.type, *self.shape, self.option == "t", arch, self.level)


@dataclass
class Asked:
    """How often a request was made, and where first: file:line."""

    place: str
    count: int = 0


# ---------------------------------------------------------------- manifests

def make_request(op: str, type_name: str, shape: str, level: str, options: list[str]) -> Request:
    if op not in OPS:
        raise RequestError(f"unknown op {quoted(op)}; there are {', '.join(OPS)}")
    for word in (type_name, level):  # messages are a line each, and show what they are about
        if not re.fullmatch(r"\w{1,40}", word, re.ASCII):
            raise RequestError(f"{quoted(word)} is neither a type nor a level")
    form, option = ("M0xN0xK0", "f32acc") if op == "mmt4d" else ("tile0xtile1", "t")
    if not re.fullmatch("x".join([r"[0-9]{1,9}"] * (form.count("x") + 1)), shape):
        raise RequestError(f"{quoted(shape)} is not a shape of {op}, {form}")
    if options not in ([], [option]):
        raise RequestError(f"{quoted(' '.join(options))} is not an option of {op}, which has '{option}'")
    return Request(op, type_name, tuple(map(int, shape.split("x"))), level, "".join(options))


def _parse_text(line: str) -> Request:
    words = line.split()
    if len(words) in (4, 5):
        op, type_name, shape, *rest = words
        level = rest.pop(0 if op == "mmt4d" else -1)
        return make_request(op, type_name, shape, level, rest)
    raise RequestError(f"{quoted(line)} is not a request: 'mmt4d s8s8s32 12x32x4 avx512_vnni [f32acc]' or "
                       "'pack x32 8x1 [t] avx2_fma'")


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RequestError("the request has a member twice")
    return members


_EXAMPLES = {"op": "mmt4d", "type": "s8s8s32", "shape": "9x48x3", "level": "avx2_fma"}


def _parse_json(line: str) -> Request:
    try:
        fields = json.loads(line, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"not JSON: {error}") from None
    texts = []
    for name, example in _EXAMPLES.items():
        if name not in fields:
            raise RequestError(f"the request has no text '{name}'")
        value = fields.pop(name)
        if not isinstance(value, str):
            raise RequestError(f"'{name}' must be text, such as {json.dumps(example)}")
        texts.append(value)
    for name, value in fields.items():
        if name not in ("f32acc", "t"):
            raise RequestError(f"a request has no member {quoted(name)}")
        if not isinstance(value, bool):
            raise RequestError(f"'{name}' is neither true nor false")
    return make_request(*texts, [name for name, value in fields.items() if value])


def parse_line(line: str) -> Request | None:
    """None: a line that holds nothing but space and a comment."""
    line = line.strip()
    if line.startswith("{"):
        return _parse_json(line)
    line = line.partition("#")[0].rstrip()
    return _parse_text(line) if line else None


def read_manifests(paths: Iterable[str]) -> dict[Request, Asked]:
    asked: dict[Request, Asked] = {}
    parsed: dict[str, Request | None] = {}  # modules mostly ask for the same
    for path in paths:
        for number, line in enumerate(library.read_text(path, "utf-8-sig").split("\n"), 1):
            if line not in parsed:
                try:
                    parsed[line] = parse_line(line)
                except RequestError as error:
                    raise RequestError(f"{path}:{number}: {error}") from None
            if request := parsed[line]:
                asked.setdefault(request, Asked(f"{path}:{number}")).count += 1
    return asked


# ---------------------------------------------------------------- answers

@dataclass(frozen=True)
class Answer:
    """What serves a request: a hand-written tile, or what one is generated with."""

    asked: AnyTile
    tile: AnyTile
    how: HandRow | Primitive | CopyCode

    @property
    def origin(self) -> str:
        return "hand" if isinstance(self.how, HandRow) else "generated"

    @property
    def note(self) -> str:
        """Why the symbol is not the one that was asked for; empty if it is."""
        if self.tile == self.asked:
            return ""
        return f"{self.asked.isa} has nothing of its own for this; {self.tile.isa} serves it"


def find_answer(asked: AnyTile) -> Answer:
    """From the level that was asked for, or the best level below it that has an own way."""
    if isinstance(asked, CopyTile):
        tile = replace(asked, isa=copy_level(asked.arch, asked.isa))
        return Answer(asked, tile, library.hand_rows_of(tile.arch, tile.isa).get(tile, CopyCode()))
    reasons = []
    for level in library.levels_served_by(asked.arch, asked.isa):
        tile = replace(asked, isa=level.name)
        if hand := library.hand_rows_of(tile.arch, tile.isa).get(tile):
            return Answer(asked, tile, hand)
        try:
            return Answer(asked, tile, choose_primitive(tile))
        except RequestError as error:
            reasons.append(str(error))
    raise RequestError(reasons[-1])
