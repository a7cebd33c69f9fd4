"""The tiles that ops in MLIR text ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator

from generator.library import read_text
from generator.link_names import View, copy_width, matmul_type, mmt4d_tile, read_number
from generator.model import RequestError
from generator.requests import Request

# A name in quotes before operands is an op in its generic form; other strings are none, such as what a
# transform script matches.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?P<operands>\s*\(\s*[%)])?|//[^\n]*')
_OP = re.compile(r'(?P<quote>"?)\b(?P<op>linalg\.(?:batch_)?mmt4d|(?:tensor|linalg)\.(?:un)?pack)\b(?!\.)')
_OPENING_BRACE, _BRACE = re.compile(r"\s*\{"), re.compile(r"[{}]")
_MMT4D = re.compile(r"\s*ins\((?P<ins>.*?)\bouts\((?P<outs>[^:]*:\s*\S+)", re.DOTALL)
_COPY = re.compile(r"[^:]*?(?:\bpadding_value\([^)]*\)[^:]*?)?\binner_dims_pos\s*=\s*\[(?P<dims>[^\]]*)\]"
                   r"\s*inner_tiles\s*=\s*\[(?P<tiles>[^\]]*)\][^:]*:(?P<types>[^\n]*\s*->\s*\S+)")
_TYPE = re.compile(r"\b(?:tensor|memref)<(?P<sizes>(?:(?:\?|[0-9]+)x)*)(?P<element>[A-Za-z]\w*)")


@dataclass(frozen=True)
class TextOp:
    """An op of MLIR text; `request` is what it asks for at a level."""

    place: str  # file:line
    name: str
    type: str
    op: str
    tile: tuple[int, ...]
    option: str = ""

    def request(self, level: str) -> Request:
        return Request(self.op, self.type, self.tile, level, self.option)


def _views(text: str) -> list[View]:
    return [View(tuple(None if size == "?" else read_number(size)
                       for size in match["sizes"].split("x")[:-1]), match["element"])
            for match in _TYPE.finditer(text)]


def _skip_attributes(text: str, at: int) -> int:
    """Behind the dictionary of attributes that may be here."""
    if not _OPENING_BRACE.match(text, at):
        return at
    depth = 0
    for brace in _BRACE.finditer(text, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise RequestError("its attributes do not end")


def _mmt4d(place: str, name: str, text: str, at: int) -> TextOp:
    match = _MMT4D.match(text, _skip_attributes(text, at))
    views = _views(match["ins"] + match["outs"]) if match else []
    if len(views) != 3:
        raise RequestError("its types cannot be read")
    for operand, view in zip(("LHS", "RHS", "OUT"), views):
        view.check_rank(operand, 5 if name == "linalg.batch_mmt4d" else 4)
    return TextOp(place, name, matmul_type(*views), "mmt4d", mmt4d_tile(*views))


def _copy(place: str, name: str, text: str, at: int) -> TextOp | None:
    """None: no tile is needed."""
    match = _COPY.match(text, at)
    views = _views(match["types"]) if match else []
    if len(views) != 2:
        raise RequestError("its types cannot be read")
    dims, tiles = ([word.strip() for word in match[part].split(",")] for part in ("dims", "tiles"))
    if len(tiles) == 1:
        return None
    if len(tiles) != 2 or len(dims) != 2:
        raise RequestError(f"it tiles {len(tiles)} dimensions, not two")
    for tile in tiles:
        if not tile.isdecimal():
            raise RequestError(f"the tile size '{tile}' is dynamic: a tile has a fixed shape")
    outer, inner = map(read_number, dims)
    return TextOp(place, name, copy_width(views[0].element, views[1].element), name.partition(".")[2],
                  tuple(map(read_number, tiles)), "t" if outer > inner else "")


def _blank(match: re.Match[str]) -> str:
    return match[0] if match["operands"] else '""' if match[0].startswith('"') else ""


def read_ops(path: str) -> Iterator[TextOp | str]:
    """The ops that want tiles; for those that can have none, a line that says why."""
    text = _STRING_OR_COMMENT.sub(_blank, read_text(path))
    line, counted = 1, 0
    for match in _OP.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        place, name = f"{path}:{line}", match["op"]
        try:
            if match["quote"]:
                raise RequestError("it is in its generic form; mlir-opt prints the other one")
            read = _mmt4d if name.endswith("mmt4d") else _copy
            if op := read(place, name, text, match.end()):
                yield op
        except RequestError as error:
            yield f"{place}: {name}: {error}"
