"""Memrefs in Python: data, descriptors, and what the ops on them ought to give."""

from __future__ import annotations

import ctypes
import random
import struct
from itertools import product
from typing import Iterator, Sequence

from generator.model import BITS, MatmulType

_LIBM = ctypes.CDLL("libm.so.6")
for _name, _type in (("fmaf", ctypes.c_float), ("fma", ctypes.c_double)):
    getattr(_LIBM, _name).argtypes = [_type] * 3
    getattr(_LIBM, _name).restype = _type

Number = int | float
_FORMATS = {"f64": "d", "f32": "f", "f16": "e", "s32": "i", "s16": "h", "s8": "b"}


def encode(element: str, value: Number) -> bytes:
    """Rounds to nearest even; integers wrap around."""
    if element == "bf16":
        bits, = struct.unpack("<I", struct.pack("<f", value))
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    if element[0] == "s":
        half = 1 << (BITS[element] - 1)
        value = (int(value) + half) % (2 * half) - half
    return struct.pack("<" + _FORMATS[element], value)


def decode(element: str, data: bytes) -> Number:
    if element == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return struct.unpack("<" + _FORMATS[element], data)[0]


class Memref:
    """With its gaps: bytes around and between the elements, which no one may write."""

    def __init__(self, element: str, sizes: Sequence[int], strides: Sequence[int] | None = None,
                 offset: int = 0) -> None:
        if strides is None:
            strides = [1]
            for size in reversed(sizes[1:]):
                strides.insert(0, strides[0] * size)
        self.element, self.sizes, self.strides = element, list(sizes), list(strides)
        self.bytes = BITS[element] // 8
        self.offset = offset
        reach = [(size - 1) * stride for size, stride in zip(sizes, strides)] if all(sizes) else [0]
        self.before = 8 - sum(min(0, r) for r in reach) * self.bytes  # elements may lie below the offset
        after = (offset + sum(max(0, r) for r in reach) + 1) * self.bytes + 8
        self.data = ctypes.create_string_buffer(b"\xa5" * (self.before + after), self.before + after)

    def descriptor(self) -> ctypes.Structure:
        rank = len(self.sizes)

        class Descriptor(ctypes.Structure):
            _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
                        ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank),
                        ("strides", ctypes.c_int64 * rank)]

        numbers = ctypes.c_int64 * rank
        return Descriptor(0, ctypes.addressof(self.data) + self.before, self.offset,
                          numbers(*self.sizes), numbers(*self.strides))

    def fields(self) -> list[object]:
        """The same as arguments."""
        d = self.descriptor()
        return [ctypes.c_void_p(d.allocated), ctypes.c_void_p(d.aligned),
                *map(ctypes.c_int64, (d.offset, *d.sizes, *d.strides))]

    def _at(self, place: Sequence[int]) -> int:
        return self.before + self.bytes * (
            self.offset + sum(i * stride for i, stride in zip(place, self.strides)))

    def __getitem__(self, place: Sequence[int]) -> Number:
        at = self._at(place)
        return decode(self.element, self.data[at:at + self.bytes])

    def __setitem__(self, place: Sequence[int], value: Number) -> None:
        at = self._at(place)
        self.data[at:at + self.bytes] = encode(self.element, value)

    def places(self) -> Iterator[tuple[int, ...]]:
        return product(*map(range, self.sizes))

    def fill(self, numbers: random.Random) -> Memref:
        for place in self.places():
            self[place] = (numbers.randint(-100, 100) if self.element[0] == "s" else
                           numbers.uniform(-2, 2))
        return self

    def copy(self) -> Memref:
        other = Memref(self.element, self.sizes, self.strides, self.offset)
        other.data[:] = self.data[:]
        return other


def _multiply_add(kind: MatmulType, a: Number, b: Number, c: Number) -> Number:
    """One step, as the numerics of README.md have it where there is FMA."""
    match kind.out:
        case "s32":
            return a * b + c
        case "f64":
            return _LIBM.fma(a, b, c)
        case "f16":
            return decode("f16", encode("f16", a * b + c))  # exact in f64 for the numbers of fill()
        case "bf16":
            return decode("bf16", encode("bf16", _LIBM.fmaf(a, b, c)))
    return _LIBM.fmaf(a, b, c)


def mmt4d(kind: MatmulType, lhs: Memref, rhs: Memref, out: Memref) -> None:
    """linalg.mmt4d."""
    (m1, k1, m0, k0), (n1, _, n0, _) = lhs.sizes, rhs.sizes
    for i, j, p, q in product(range(m1), range(n1), range(m0), range(n0)):
        total = out[i, j, p, q]
        for k, r in product(range(k1), range(k0)):
            total = _multiply_add(kind, lhs[i, k, p, r], rhs[j, k, q, r], total)
        out[i, j, p, q] = total


def _element_of_place(place: tuple[int, ...], tile: Sequence[int], outer10: bool, inner10: bool
                      ) -> tuple[int, int]:
    """Row and column of the matrix, which may not reach that far."""
    outer, inner = place[:2], place[2:]
    if outer10:
        outer = outer[::-1]
    if inner10:
        inner, tile = inner[::-1], tile[::-1]
    return outer[0] * tile[0] + inner[0], outer[1] * tile[1] + inner[1]


def pack(matrix: Memref, tiles: Memref, padding: Number, outer10: bool, inner10: bool) -> None:
    """tensor.pack with outer_dims_perm or inner_dims_pos [1, 0]."""
    for place in tiles.places():
        r, c = _element_of_place(place, tiles.sizes[2:], outer10, inner10)
        inside = r < matrix.sizes[0] and c < matrix.sizes[1]
        tiles[place] = matrix[r, c] if inside else padding


def unpack(tiles: Memref, matrix: Memref, outer10: bool, inner10: bool) -> None:
    for place in tiles.places():
        r, c = _element_of_place(place, tiles.sizes[2:], outer10, inner10)
        if r < matrix.sizes[0] and c < matrix.sizes[1]:
            matrix[r, c] = tiles[place]
