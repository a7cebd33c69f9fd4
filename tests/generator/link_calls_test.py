"""What the functions that python3 -m generator link writes compute."""

from __future__ import annotations

import ctypes
import random
import subprocess
from itertools import product

from generator import library
from generator.link_names import View
from generator.model import TYPES
from tests.generator import memrefs
from tests.generator.link_support import CIFACE, LinkCase, missing_level, missing_llvm_nm
from tests.generator.memrefs import Memref
from tests.generator.support import COMPILER, main, other_arch

# The exit code says what went wrong; an overflow ends it by a signal.
_EMPTY_PRODUCTS = """\
#include "generator/memref/memref.h"

int calls = 0;
void count(void*, const void*, const void*, uk_index_t, uint32_t) { ++calls; }

int main() {
  const uk::Mmt4dTile tile = {count, 4, 8, 1, 4, 4, 4};
  const uk::Memref<4> none = {nullptr, nullptr, 0, {0, 0, 0, 0}, {0, 0, 1, 1}};
  const uk_index_t huge = uk_index_t{1} << 62;
  const uk_index_t empty[][3] = {{2, 3, 0}, {0, 3, huge}, {2, 0, huge}, {huge, huge, 0}};
  const uk::Memref<5> no_batch = {nullptr, nullptr, 0, {0, 0, 0, 0, 0}, {0, 0, 0, 1, 1}};
  for (const auto& e : empty) {
    uk::mmt4d_of_memrefs(tile, none, none, none, e[0], e[1], e[2]);
    uk::batch_mmt4d_of_memrefs(tile, no_batch, no_batch, no_batch, huge, e[0], e[1], e[2]);
  }
  uk::batch_mmt4d_of_memrefs(tile, no_batch, no_batch, no_batch, 0, 1, 1, 1);
  return calls;
}
"""

_MLIR_ELEMENT = {"s32": "i32", "s16": "i16", "s8": "i8"}


def view(sizes: list[int | None], element: str) -> str:
    return View(tuple(sizes), _MLIR_ELEMENT.get(element, element)).text


class Execution(LinkCase):
    """Calls the archive's functions."""

    def setUp(self) -> None:
        super().setUp()
        self.numbers = random.Random(1)

    def load(self, calls: list[str]) -> ctypes.CDLL:
        self.link(self.object(calls))
        made = self.directory / "calls.so"
        subprocess.run([COMPILER, "-shared", "-Wl,-z,defs", "-Wl,--whole-archive",
                        self.out / "libuk_link.a", "-Wl,--no-whole-archive", "-o", made], check=True)
        return ctypes.CDLL(str(made))

    def call(self, functions: ctypes.CDLL, name: str, operands: list[Memref], *more: object) -> None:
        if name.startswith(CIFACE):
            getattr(functions, name)(*(ctypes.byref(o.descriptor()) for o in operands), *more)
        else:
            getattr(functions, name)(*(field for o in operands for field in o.fields()), *more)

    def assert_same(self, got: Memref, expected: Memref, what: str) -> None:
        if got.data[:] == expected.data[:]:
            return
        wrong = [(place, got[place], expected[place]) for place in got.places()
                 if got[place] != expected[place]]
        self.fail(f"{what}: " + (f"{len(wrong)} elements differ, first {wrong[0]}" if wrong else
                                 "bytes outside the elements were written"))


def _memref_of_batch(whole: Memref, index: int) -> Memref:
    """With the data of the whole."""
    one = Memref(whole.element, whole.sizes[1:], whole.strides[1:],
                 whole.offset + index * whole.strides[0])
    one.data, one.before = whole.data, whole.before
    return one


def _ways_to_lie(sizes: list[int]) -> dict[str, tuple[list[int], int]]:
    """Strides and offset."""
    a, b, c, d = (max(size, 1) for size in sizes)
    return {"dense": ([b * c * d, c * d, d, 1], 0),
            "offset": ([b * c * d, c * d, d, 1], 5),
            "outer": ([b * c * d + 7, c * d, d, 1], 1),
            "panel": ([b * (c * d + 3), c * d + 3, d, 1], 2),
            "outer swapped": ([c * d, a * c * d, d, 1], 0),
            "rows": ([b * c * (d + 1), c * (d + 1), d + 1, 1], 3),
            "inner swapped": ([b * c * d, c * d, 1, c], 1),
            "elements": ([b * c * d * 2, c * d * 2, d * 2, 2], 0),
            "backwards": ([-b * c * d, c * d, d, 1], 4)}


class Mmt4dTest(Execution):
    def check(self, functions: ctypes.CDLL, name: str, kind: str, lhs: Memref, rhs: Memref, out: Memref,
              what: str) -> None:
        expected = out.copy()
        memrefs.mmt4d(TYPES[kind], lhs, rhs, expected)
        self.call(functions, name, [lhs, rhs, out])
        self.assert_same(out, expected, f"{name}, {what}")

    def test_every_type_in_both_conventions(self) -> None:
        """Static and dynamic sizes, dense memrefs and such that lie in odd ways."""
        (m1, n1, k1), cases = (2, 3, 5), []
        for kind, (m0, n0, k0) in (
                ("f32f32f32", (6, 16, 1)), ("f64f64f64", (3, 5, 2)), ("f16f16f32", (4, 8, 1)),
                ("f16f16f16", (2, 3, 3)), ("bf16bf16f32", (3, 8, 2)), ("bf16bf16bf16", (2, 3, 1)),
                ("s8s8s32", (3, 7, 4)), ("s16s16s32", (5, 8, 2)), ("s16s8s32", (3, 8, 2))):
            t = TYPES[kind]
            shapes = (([m1, k1, m0, k0], t.lhs), ([n1, k1, n0, k0], t.rhs), ([m1, n1, m0, n0], t.out))
            static = "_".join(view(*shape) for shape in shapes)
            dynamic = "_".join(view([None, None, *sizes[2:]], element) for sizes, element in shapes)
            cases.append((kind, shapes, [f"linalg_mmt4d_{static}", f"{CIFACE}linalg_mmt4d_{static}",
                                         f"linalg_mmt4d_{dynamic}", f"{CIFACE}linalg_mmt4d_{dynamic}"]))
        functions = self.load([name for _, _, names in cases for name in names])
        for kind, shapes, names in cases:
            ways = list(_ways_to_lie(shapes[0][0]))
            for number, way in enumerate(ways):
                # Each operand lies in each way, and most pairs of ways come together.
                of_operand = [ways[(number * step) % len(ways)] for step in (1, 2, 4)]
                operands = [Memref(element, sizes, *_ways_to_lie(sizes)[w]).fill(self.numbers)
                            for (sizes, element), w in zip(shapes, of_operand)]
                self.check(functions, names[number % 4], kind, *operands, str(of_operand))

    def test_batch(self) -> None:
        """Static and dynamic sizes in both conventions; dense, and with gaps and in odd order."""
        (batch, m1, n1, k1), (m0, n0, k0), cases = (3, 2, 2, 4), (3, 8, 2), []
        for kind in ("f32f32f32", "bf16bf16f32", "s8s8s32"):
            t = TYPES[kind]
            shapes = (([m1, k1, m0, k0], t.lhs), ([n1, k1, n0, k0], t.rhs), ([m1, n1, m0, n0], t.out))
            static = "_".join(view([batch, *sizes], element) for sizes, element in shapes)
            dynamic = "_".join(view([None, None, None, *sizes[2:]], element) for sizes, element in shapes)
            names = [f"{c}linalg_batch_mmt4d_{sizes}" for c in ("", CIFACE) for sizes in (static, dynamic)]
            cases += [(kind, shapes, name) for name in names]
        functions = self.load([name for *_, name in cases])
        for (kind, shapes, name), way in product(cases, ("dense", "rows", "batch inside")):
            operands = []
            for sizes, element in shapes:
                (first, *strides), offset = _ways_to_lie(sizes)["rows" if way == "rows" else "dense"]
                outer = [first, batch * first] if way == "batch inside" else [first * sizes[0] + 3, first]
                operands.append(Memref(element, [batch, *sizes], outer + strides, offset).fill(self.numbers))
            lhs, rhs, out = operands
            expected = out.copy()
            for index in range(batch):
                memrefs.mmt4d(TYPES[kind], *(_memref_of_batch(o, index) for o in (lhs, rhs, expected)))
            self.call(functions, name, operands)
            self.assert_same(out, expected, f"{name}, {way}")

    def test_empty(self) -> None:
        """OUT stays as it is where K1 is 0, and without M1 or N1 there is none."""
        name = "linalg_mmt4d_viewsxsx4x1xf32_viewsxsx8x1xf32_viewsxsx4x8xf32"
        functions = self.load([name, CIFACE + name])
        for m1, n1, k1 in ((2, 3, 0), (0, 3, 2), (2, 0, 2), (0, 0, 0)):
            for symbol in (name, CIFACE + name):
                operands = [Memref("f32", sizes).fill(self.numbers) for sizes in (
                    [m1, k1, 4, 1], [n1, k1, 8, 1], [m1, n1, 4, 8])]
                self.check(functions, symbol, "f32f32f32", *operands, f"{m1}x{n1}x{k1}")

    def test_empty_products_call_no_tile(self) -> None:
        text, made = self.directory / "empty.cc", self.directory / "empty"
        text.write_text(_EMPTY_PRODUCTS)
        subprocess.run([COMPILER, "-std=c++17", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error",
                        f"-I{library.ROOT}", text, library.ROOT / "generator/memref/mmt4d.cc", "-o", made],
                       check=True)
        self.assertEqual(subprocess.run([made]).returncode, 0)

    def test_one_operand_tells_a_size(self) -> None:
        """The inner sizes of one operand, the outer ones of another."""
        name = CIFACE + "linalg_mmt4d_viewsx3x6xsxf32_view2xsxsx1xf32_view1xsxsx16xf32"
        functions = self.load([name])
        operands = [Memref("f32", sizes).fill(self.numbers)
                    for sizes in ([1, 3, 6, 1], [2, 3, 16, 1], [1, 2, 6, 16])]
        self.check(functions, name, "f32f32f32", *operands, "")

    def test_large(self) -> None:
        """K and M that the walk splits into blocks, and K that is more than is copied at a time."""
        names = {element: CIFACE + "linalg_mmt4d_" + "_".join([view([None, None, 1, 1], element)] * 3)
                 for element in ("f32", "f16")}
        functions = self.load(list(names.values()))
        for element, m1, k1, strides in (("f32", 20, 17000, None), ("f32", 20, 17000, [34003, 2, 1, 1]),
                                         ("f16", 3, 9000, [18001, 2, 1, 1])):
            lhs = Memref(element, [m1, k1, 1, 1], strides).fill(self.numbers)
            rhs = Memref(element, [1, k1, 1, 1]).fill(self.numbers)
            out = Memref(element, [m1, 1, 1, 1]).fill(self.numbers)
            self.check(functions, names[element], element * 3, lhs, rhs, out, str(strides))


class CopyTest(Execution):
    def test_pack_and_unpack(self) -> None:
        """All orders, ragged edges, tiles that hold only padding, odd strides."""
        cases = []
        for element, tile in (("f32", [4, 2]), ("s8", [3, 5]), ("bf16", [8, 1]), ("f64", [2, 3])):
            for outer10 in (False, True):
                for inner10 in (False, True):
                    order = "_outer10" * outer10 + "_inner10" * inner10
                    matrix, tiles = view([None, None], element), view([None, None, *tile], element)
                    cases.append((element, tile, outer10, inner10,
                                  [f"{c}uk_memref_pack{order}_{matrix}_{tiles}" for c in ("", CIFACE)],
                                  [f"{c}uk_memref_unpack{order}_{tiles}_{matrix}" for c in ("", CIFACE)]))
        functions = self.load([name for *_, packs, unpacks in cases for name in packs + unpacks])
        for element, tile, outer10, inner10, packs, unpacks in cases:
            step = tile[::-1] if inner10 else tile
            for rows, columns in ((2 * step[0], 3 * step[1]), (2 * step[0] + 1, 3 * step[1] - 1), (1, 1),
                                  (0, 3)):
                outer = [-(-rows // step[0]) + 1, -(-columns // step[1])]
                sizes = [*(outer[::-1] if outer10 else outer), *tile]
                for number, (strides, offset) in enumerate(_ways_to_lie(sizes).values()):
                    matrix = Memref(element, [rows, columns], ([columns + 2, 1], [1, rows + 1])[number % 2],
                                    number)
                    tiles = Memref(element, sizes, strides, offset)
                    self.check(functions, packs[number // 2 % 2], unpacks[number // 2 % 2], matrix, tiles,
                               outer10, inner10)

    def check(self, functions: ctypes.CDLL, pack: str, unpack: str, matrix: Memref, tiles: Memref,
              outer10: bool, inner10: bool) -> None:
        matrix.fill(self.numbers)
        padding = memrefs.encode(matrix.element, 3)
        expected = tiles.copy()
        memrefs.pack(matrix, expected, 3, outer10, inner10)
        # What is above the element's bits is ignored.
        bits = ctypes.c_uint64(int.from_bytes(padding + b"\x77" * (8 - len(padding)), "little"))
        self.call(functions, pack, [matrix, tiles], bits)
        self.assert_same(tiles, expected, f"{pack} of {matrix.sizes}, {tiles.strides}")
        result = Memref(matrix.element, matrix.sizes, matrix.strides, matrix.offset)
        expected = result.copy()
        memrefs.unpack(tiles, expected, outer10, inner10)
        self.call(functions, unpack, [tiles, result])
        self.assert_same(result, expected, f"{unpack} to {matrix.sizes}, {tiles.strides}")


if __name__ == "__main__":
    main(other_arch("x86_64"), missing_llvm_nm(), missing_level())
