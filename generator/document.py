"""Tables that are kept in Markdown files, between the lines <!-- name --> and <!-- /name -->."""

from __future__ import annotations

from pathlib import Path

from generator.library import read_text, replace_file
from generator.model import RequestError


def _split(path: Path, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    text = read_text(path)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise RequestError(f"{path}: wants the lines '{begin.strip()}' and '{end.strip()}', once each")
    before, _, rest = text.partition(begin)
    block, _, after = rest.partition(end)
    return before + begin, block, end + after


def read_block(path: Path, name: str) -> str:
    return _split(path, name)[1]


def replace_block(path: Path, name: str, block: str) -> None:
    before, _, after = _split(path, name)
    replace_file(path, before + block + after)
