"""Compiled tiles: 64-bit ELF objects, and static archives of them."""

from __future__ import annotations

import struct
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Iterator, NamedTuple

from generator.model import RequestError

_SYMBOL_TABLE = 2  # SHT_SYMTAB
_EXECUTABLE = 4  # SHF_EXECINSTR
_PUBLIC = (1, 2, 10)  # STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE

_GCC_LTO = b"__gnu_lto_slim"

_MAGIC = b"!<arch>\n"

BITCODE_MAGICS = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # bare, and in a wrapper


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Object:
    """An object of the cache."""

    def __init__(self, path: Path) -> None:
        self.name, self.data = path.name, path.read_bytes()
        self._order = "<" if self.data[5:6] == b"\1" else ">"
        try:
            if self.data[:5] != b"\x7fELF\2":
                raise ValueError
            self._sections = self._read_sections()
            self.public_symbols = list(self._read_public_symbols())
            if _GCC_LTO in self.public_symbols:  # what it is of, only a linker with GCC's plugin finds
                raise ValueError
        except (IndexError, ValueError, struct.error):
            raise RequestError(f"{path}: not a whole 64-bit ELF object of machine code") from None
        self.code_bytes = sum(section.size for section in self._sections if section.flags & _EXECUTABLE)

    def _read_sections(self) -> list[_Section]:
        table, = struct.unpack_from(self._order + "Q", self.data, 0x28)
        count, = struct.unpack_from(self._order + "H", self.data, 0x3C)
        row = struct.Struct(self._order + "IIQQQQIIQQ")
        return [_Section._make(row.unpack_from(self.data, table + i * row.size)) for i in range(count)]

    def _read_public_symbols(self) -> Iterator[bytes]:
        """Those that it defines."""
        for table in self._sections:
            if table.type != _SYMBOL_TABLE:
                continue
            names = self._sections[table.link].offset
            first = table.offset + table.info * table.entry_size  # behind the local ones
            rows = self.data[first:table.offset + table.size]
            for name, info, _, section, _, _ in struct.iter_unpack(self._order + "IBBHQQ", rows):
                if section and info >> 4 in _PUBLIC:
                    yield self.data[names + name:self.data.index(b"\0", names + name)]


@cache
def read_object(path: Path) -> Object:
    return Object(path)


def is_compiled(path: Path) -> bool:
    """Whether it is what a compiler should write there. C++ may hold anything."""
    if path.suffix == ".bc":
        with open(path, "rb") as file:
            return file.read(4) in BITCODE_MAGICS
    if path.suffix == ".o":
        try:
            read_object(path)
        except RequestError:
            return False
    return True


def _member(name: str, fields: str, data: bytes) -> bytes:
    return f"{name:16}{fields:32}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)


def _long_name(name: str) -> str:
    """What the table of names has of it; a member's header has 16 bytes."""
    return f"{name}/\n" if len(name) > 15 else ""


def write_archive(path: Path, paths: list[Path]) -> None:
    """The bytes that `ar rcsD` writes, which takes longer than all else where everything is cached."""
    objects = [read_object(path) for path in paths]
    long_names = [_long_name(o.name) for o in objects]
    name_at = accumulate(map(len, long_names), initial=0)
    fields = f"{0:<12}{0:<6}{0:<6}"  # time and owner
    members = [_member(f"/{at}" if long else f"{o.name}/", f"{fields}{644:<8}", o.data)
               for o, long, at in zip(objects, long_names, name_at)]
    names = "".join(long_names).encode()
    name_table = _member("//", "", names + b"\n" * (len(names) % 2)) if names else b""

    listed = b"".join(symbol + b"\0" for o in objects for symbol in o.public_symbols)
    listed += b"\0" * (len(listed) % 2)
    count = sum(len(o.public_symbols) for o in objects)
    first_at = len(_MAGIC) + len(_member("/", "", bytes(4 + 4 * count) + listed)) + len(name_table)
    member_at = accumulate(map(len, members), initial=first_at)
    offsets = [at for o, at in zip(objects, member_at) for _ in o.public_symbols]
    table = _member("/", f"{fields}{0:<8}", struct.pack(f">{1 + count}I", count, *offsets) + listed)
    path.write_bytes(b"".join([_MAGIC, *([table] if objects else []), name_table, *members]))
