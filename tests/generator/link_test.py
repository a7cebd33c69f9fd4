"""python3 -m generator link: names, inputs, the archive."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
import unittest
from pathlib import Path

from generator import library
from generator.link_names import CopyCall, Mmt4dCall, TileCall, View, find_call
from generator.model import RequestError, Tile
from generator.tiles_json import tiles_json
from tests.generator.link_support import CIFACE, LEVEL, MMT4D, LinkCase, missing_llvm_nm, symbols
from tests.generator.support import ARCH, COMPILER, generator_command, main, other_arch, run_generator


class NamesTest(unittest.TestCase):
    def test_views_round_trip(self) -> None:
        numbers = random.Random(1)
        for _ in range(1000):
            rank = numbers.randrange(6)
            made = View(tuple(numbers.choices((None, 0, 1, 7, 64, 11008), k=rank)),
                        numbers.choice(("f32", "bf16", "i8", "index", "f8E4M3FN")),
                        numbers.choice((0, 1, 255)))
            self.assertEqual(View.parse(made.text), made)

    def test_mmt4d(self) -> None:
        name = "linalg_mmt4d_view4x64x16x1xf32_viewsxsx16x1xf32_view4x8x16x16xf32"
        self.assertEqual(find_call(name, "x86_64"),
                         Mmt4dCall(name, False, "f32f32f32", (16, 16, 1), (4, 8, 64)))
        name = f"{CIFACE}linalg_mmt4d_viewsxsxsx2xi8_viewsxsx4xsxi8_viewsxsx8xsxi32as3"
        self.assertEqual(find_call(name, "x86_64"),
                         Mmt4dCall(name, True, "s8s8s32", (8, 4, 2), (None, None, None)))

    def test_batch_mmt4d(self) -> None:
        name = "linalg_batch_mmt4d_view7x4x64x16x1xf32_viewsxsxsx16x1xf32_viewsx4x8x16x16xf32"
        self.assertEqual(find_call(name, "x86_64"),
                         Mmt4dCall(name, False, "f32f32f32", (16, 16, 1), (4, 8, 64), True, 7))

    def test_copies(self) -> None:
        name = "uk_memref_pack_outer10_inner10_view256x64xbf16_viewsx256x16x1xbf16"
        self.assertEqual(find_call(name, "x86_64"), CopyCall(
            name, False, "pack", "x16", (16, 1), (None, 256), (256, 64), True, True))
        name = f"{CIFACE}uk_memref_unpack_viewsx2x8x16xi32_viewsxsxi32"
        self.assertEqual(find_call(name, "x86_64"), CopyCall(
            name, True, "unpack", "x32", (8, 16), (None, 2), (None, None), False, False))

    def test_tiles(self) -> None:
        for name in ("uk_mmt4d_tile_f16f16f16_8x8x1_x86_64_avx2_fma_f32acc",
                     "uk_pack_tile_x32_8x1_t_x86_64_avx2_fma", "uk_unpack_tile_x8_8x4_x86_64_sse2"):
            call = find_call(name, "x86_64")
            self.assertIsInstance(call, TileCall)
            self.assertEqual(call.request("").tile("x86_64").symbol, name)

    def test_other_names(self) -> None:
        for name in ("printf", "memcpy", "linalg_fill_f32_viewsxsxf32", "uk_mmt4d", "uk_pack",
                     "linalg_mmt4", "_mlir_ciface_main", "my_uk_memref_pack_"):
            self.assertIsNone(find_call(name, "x86_64"), name)

    def test_refused(self) -> None:
        for name, reason in (
                ("linalg_mmt4d", "'' is not a memref"),
                ("linalg_mmt4d_", "'' is not a memref"),
                ("linalg_mmt4d_view4x4xf32_view4x4xf32", "it has 2 memrefs"),
                ("linalg_mmt4d_view1x1x1xf32_view1x1x1x1xf32_view1x1x1x1xf32", "LHS has 3 dimensions"),
                ("linalg_mmt4d_view1x1x1x1xf32_view1x1x1x1xf32_view1x1x1x1xf3-2",
                 "'view.*-2' is not a memref"),
                ("linalg_mmt4d_view1x1x8x1xf32_view1x1x8x1xf32_view1x1x8x8xf16",
                 "no tile multiplies f32 by f32 into f16"),
                ("linalg_batch_mmt4d_view1x1x8x1xf32_view1x1x8x1xf32_view1x1x8x8xf32",
                 "LHS has 4 dimensions, not 5"),
                ("linalg_batch_mmt4d_view2x1x1x8x1xf32_view3x1x1x8x1xf32_viewsx1x1x8x8xf32",
                 "the batch is 2 in one operand and 3 in another"),
                ("linalg_mmt4d_view1x1x8x1xindex_view1x1x8x1xindex_view1x1x8x8xindex", "no tile multiplies"),
                (f"linalg_mmt4d_view{2**63}x1x8x1xf32_viewsx1x8x1xf32_viewsx1x8x8xf32", "is 2.63 or more"),
                (f"linalg_mmt4d_view{'9' * 5000}x1x8x1xf32_viewsx1x8x1xf32_viewsx1x8x8xf32",
                 r"9{20}\.\.\. is 2.63 or more"),
                (f"linalg_mmt4d_view1x1x8x1xf32as{'9' * 5000}_viewsx1x8x1xf32_viewsx1x8x8xf32",
                 "is 2.63 or more"),
                (f"uk_mmt4d_tile_f32f32f32_{'9' * 5000}x8x1_x86_64_sse2", "is not the symbol of an mmt4d"),
                (f"uk_pack_tile_x32_{'9' * 5000}x1_x86_64_sse2", "is not the symbol of a pack"),
                ("linalg_mmt4d_view1x1x8x2xi8_view1x1x8x2xi4_view1x1x8x8xi32", "a byte of its own"),
                ("linalg_mmt4d_viewsxsxsx1xf32_viewsxsx8x1xf32_viewsxsxsx8xf32", "M0 is dynamic in all"),
                ("linalg_mmt4d_view1x1x8x1xf32_view1x1x8x1xf32_view2x1x8x8xf32",
                 "M1 is 1 in one operand and 2 in another"),
                ("linalg_mmt4d_view1x1x8x1xf32as256_view1x1x8x1xf32_view1x1x8x8xf32",
                 "LHS is in memory space 256"),
                ("uk_memref_transpose_view1x1xf32", "there is no 'uk_memref_transpose'"),
                ("uk_memref_pack", "it has 1 memrefs|not a memref"),
                ("uk_memref_pack_inner10_outer10_view1x1xf32_view1x1x1x1xf32", "'outer10' is not a memref"),
                ("uk_memref_pack_view10x10xf32_view1x10x8x1xf32", "1 tiles of 8 do not cover 10"),
                ("uk_memref_unpack_inner10_view1x10x8x1xf32_view8x10xf32", "1 tiles of 1 do not cover 8"),
                ("uk_memref_pack_view10x10xi4_view5x5x2x2xi4", "a byte of its own"),
                ("uk_memref_pack_view10x10xi8_view5x5x2x2xf32", "no tile copies i8 to f32"),
                ("uk_memref_pack_viewsxsxf32_viewsxsxsx1xf32", "tile0 is dynamic"),
                ("uk_mmt4d_tile_f32f32_8x8x1_x86_64_sse2", "is not the symbol of an mmt4d tile"),
                ("uk_mmt4d_tile_f32f32f32_8x8x1_arm_64_neon", "a tile of arm_64"),
                ("uk_pack_tile_x32_8x1_t_x86_64_avx2_fma_t8!", "is not the symbol of a pack")):
            with self.subTest(name[:100]), self.assertRaisesRegex(RequestError, reason):
                find_call(name, "x86_64")


class ArchiveTest(LinkCase):
    def test_it_resolves_exactly_what_is_called(self) -> None:
        calls = [MMT4D.format(4), CIFACE + MMT4D.format(4),
                 "linalg_mmt4d_view2x3x4x1xf32_view5x3x8x1xf32_view2x5x4x8xf32",
                 "uk_memref_pack_viewsxsxi32_viewsxsx4x8xi32",
                 f"uk_mmt4d_tile_f32f32f32_4x8x1_{ARCH}_{LEVEL}",
                 f"uk_mmt4d_tile_f32f32f32_2x3x1_{ARCH}_{LEVEL}"]
        index = self.link(self.object([*calls, "foreign", "linalg_fill_f32_viewsxsxf32"]))
        self.assertEqual([row["symbol"] for row in index["calls"]], sorted(calls))
        tile = f"uk_mmt4d_tile_f32f32f32_4x8x1_{ARCH}_{LEVEL}"
        self.assertEqual({row["symbol"]: row["count"] for row in index["requests"]}, {
            tile: 4, tile.replace("4x8x1", "2x3x1"): 1, f"uk_pack_tile_x32_4x8_{ARCH}_{LEVEL}": 1})
        self.assertEqual({row["place"] for row in index["calls"]}, {str(self.directory / "model.o")})
        self.assertEqual({row["file"] for row in index["requests"]}, {"libuk_link.a"})
        archive = self.out / "libuk_link.a"
        defined = symbols(archive, "-g", "--defined-only")
        self.assertEqual({name for name in defined if not name.startswith("_ZN2uk")},
                         {*calls, *(row["symbol"] for row in index["requests"])})
        self.assertLessEqual(symbols(archive, "-u") - defined, {"memcpy"})

    def test_a_level_that_adds_nothing_forwards_to_the_tile_below(self) -> None:
        symbol = f"uk_mmt4d_tile_f32f32f32_3x5x1_{ARCH}_avx_vnni"
        index = self.link(self.object([symbol]))
        self.assertEqual(index["calls"][0]["tile"], symbol.replace("avx_vnni", "avx2_fma"))
        self.assertIn(symbol, symbols(self.out / "libuk_link.a", "-g", "--defined-only"))

    def test_of_several_levels_the_best_serves(self) -> None:
        calls = [MMT4D.format(4), "linalg_mmt4d_viewsxsx4x2xbf16_viewsxsx8x2xbf16_viewsxsx4x8xf32",
                 "linalg_mmt4d_viewsxsx4x4xi8_viewsxsx8x4xi8_viewsxsx4x8xi32"]
        model = self.object(calls)
        for levels in (("avx512_bf16", "avx512_vnni"), ("avx512_vnni+avx512_bf16",),
                       ("avx512_vnni", "avx512_bf16+avx2_fma")):
            index = self.link(model, *(word for level in levels for word in ("--level", level)))
            self.assertEqual({row["symbol"].partition("x86_64_")[2] for row in index["requests"]},
                             {"avx512_base", "avx512_bf16", "avx512_vnni"}, levels)

    def test_a_tile_is_of_its_own_level_whatever_else_there_is(self) -> None:
        call = "linalg_mmt4d_viewsxsx4x2xbf16_viewsxsx8x2xbf16_viewsxsx4x8xf32"
        tile = "uk_mmt4d_tile_bf16bf16f32_4x8x2_x86_64_avx2_fma"
        index = self.link(self.object([call, tile]), "--level", "avx512_bf16")
        self.assertEqual({row["symbol"]: row["tile"] for row in index["calls"]},
                         {call: tile.replace("avx2_fma", "avx512_bf16"), tile: tile})

    def test_what_an_input_defines_is_left_to_it(self) -> None:
        own, wanted = MMT4D.format(4), MMT4D.format(5)
        index = self.link(self.object([own, wanted]), self.object([], "runtime", (own,)))
        self.assertEqual([row["symbol"] for row in index["calls"]], [wanted])

    def test_nothing_called(self) -> None:
        model = self.object(["foreign"])
        index = self.link(model)
        self.assertEqual((index["calls"], index["requests"]), ([], []))
        subprocess.run([COMPILER, "-shared", model, self.out / "libuk_link.a", "-o", self.directory / "a.so"],
                       check=True)

    def test_archives_of_objects(self) -> None:
        archive = self.directory / "with space, and comma.a"
        members = [self.object([MMT4D.format(n)], f"part{n}") for n in (2, 3)]
        subprocess.run(["ar", "rc", archive, *members], check=True)
        index = self.link(archive, self.object([MMT4D.format(3)]))
        self.assertEqual([row["symbol"] for row in index["calls"]], [MMT4D.format(2), MMT4D.format(3)])

    def test_archives_that_share_a_function(self) -> None:
        """Each has it beside one of its own."""
        models = [self.object([MMT4D.format(4), CIFACE + MMT4D.format(4) + space], f"model{n}")
                  for n, space in enumerate(("", "as1"))]
        archives = []
        for number, model in enumerate(models):
            self.link(model)
            archives.append((self.out / "libuk_link.a").rename(self.directory / f"{number}.a"))
        made = self.directory / "a.so"
        subprocess.run([COMPILER, "-shared", "-Wl,-z,defs", *models, *archives, "-o", made], check=True)
        self.assertLessEqual({MMT4D.format(4), CIFACE + MMT4D.format(4) + "as1"},
                             symbols(made, "-D", "--defined-only"))

    def test_beside_library_leaves_its_tiles_out(self) -> None:
        index = self.link(self.object([MMT4D.format(8), MMT4D.format(7)]), "--beside-library")
        self.assertEqual([row["file"] for row in index["requests"]], ["libuk_link.a", None])
        defined = symbols(self.out / "libuk_link.a", "-g", "--defined-only")
        self.assertNotIn(index["requests"][1]["symbol"], defined)
        self.assertIn(MMT4D.format(8), defined)

    def test_the_table_of_the_library_beside_it(self) -> None:
        model = self.object([MMT4D.format(8), MMT4D.format(7)])
        built = next(row["symbol"] for row in self.link(model, "--beside-library")["requests"] if row["file"])
        table = self.directory / "tiles.json"
        table.write_text(tiles_json([ARCH], [Tile.from_symbol(built)]))
        index = self.link(model, "--beside-library", "--table", str(table))
        self.assertEqual([row["file"] for row in index["requests"]], [None, None])

    def test_nothing_is_compiled_twice(self) -> None:
        model = self.object([MMT4D.format(2), MMT4D.format(3)])
        self.link(model)
        made = self.cached_objects()
        first = (self.out / "libuk_link.a").read_bytes()
        self.link(model)
        self.assertEqual((self.out / "libuk_link.a").read_bytes(), first)
        self.link(self.object([MMT4D.format(2)]))
        self.assertEqual(self.cached_objects(), made)

    def cached_objects(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (self.directory / "cache").rglob("*.o")}


class RefusalTest(LinkCase):
    def test_calls_that_cannot_be_served(self) -> None:
        wrong = {"linalg_mmt4d_view1x1x8x1xf32": "it has 1 memrefs",
                 MMT4D.format(65): "M0 = 65 is out of range", "uk_memref_reduce_x": "there is no"}
        model = self.object([*wrong, MMT4D.format(4)])
        lines = "".join(f"{model}: {re.escape(name)}: [^\n]*{reason}[^\n]*\n"
                        for name, reason in sorted(wrong.items()))
        self.assert_refused(1, f"{lines}generator: 3 cannot be served; nothing was written", model)

    def test_an_older_archive_is_kept(self) -> None:
        self.link(self.object([MMT4D.format(4)]))
        first = (self.out / "libuk_link.a").read_bytes()
        ran = run_generator(*self.arguments(self.object(["linalg_mmt4d_x"], "wrong")))
        self.assertEqual(ran.returncode, 1)
        self.assertEqual((self.out / "libuk_link.a").read_bytes(), first)

    def test_damaged_inputs(self) -> None:
        good = self.object([MMT4D.format(4)])
        archive = self.directory / "a.a"
        subprocess.run(["ar", "rc", archive, good], check=True)
        for whole in (good, archive):
            for size in (0, 7, 50, whole.stat().st_size // 2, whole.stat().st_size - 70):
                cut = self.directory / f"cut{whole.suffix}"
                cut.write_bytes(whole.read_bytes()[:size])
                if whole == archive and size == 0:
                    continue
                with self.subTest(cut.name, size=size):
                    self.assert_refused(2, rf"generator: {cut}: [^\n]+", good, cut)
        text = self.directory / "text.o"
        for content in (b"no object\n", b"BC\xc0\xde"):  # the second is where bitcode starts
            text.write_bytes(content)
            self.assert_refused(2, f"generator: {text}: [^\n]+", good, text)

    def test_fields_that_point_nowhere(self) -> None:
        """Of an object, and of one in an archive: the line begins with the file's name."""
        good = self.object([MMT4D.format(4)])
        whole = good.read_bytes()
        sections, = struct.unpack_from("<Q", whole, 0x28)
        symbol_table = next(at for at in range(sections, len(whole), 64)
                            if struct.unpack_from("<I", whole, at + 4) == (2,))
        broken = self.directory / "broken.o"
        for at, form, value in ((0x28, "<Q", 1 << 60),  # e_shoff
                                (0x3C, "<H", 60000),  # e_shnum
                                (symbol_table + 24, "<Q", 1 << 40)):  # sh_offset
            data = bytearray(whole)
            struct.pack_into(form, data, at, value)
            broken.write_bytes(data)
            archive = self.directory / "a.a"
            archive.unlink(missing_ok=True)
            subprocess.run(["ar", "rcS", archive, good, broken], check=True, stderr=subprocess.DEVNULL)
            for made in (broken, archive):
                with self.subTest(made.name, at=at):
                    self.assert_refused(2, rf"generator: {made}\b[^\n]+", good, made)

    def test_gcc_lto_objects(self) -> None:
        marked = self.object([MMT4D.format(4)], "lto")
        text = self.directory / "lto.cc"
        text.write_text('asm(".comm __gnu_lto_slim,1,1");')  # as GCC's -flto marks them
        subprocess.run([COMPILER, "-c", text, "-o", marked], check=True)
        self.assert_refused(2, f"generator: {marked}: GCC's -flto left no code[^\n]*", marked)

    def test_inputs_of_other_architectures(self) -> None:
        good = self.object([MMT4D.format(4)])
        arm = self.directory / "arm.o"
        data = bytearray(good.read_bytes())
        data[18] = 183  # EM_AARCH64
        arm.write_bytes(data)
        narrow = self.directory / "narrow.o"
        subprocess.run([COMPILER, "-m32", "-c", self.directory / "model.cc", "-o", narrow], check=True)
        archive = self.directory / "a.a"
        (self.directory / "odd").write_text("a member of odd size")
        subprocess.run(["ar", "rc", archive, self.directory / "odd", good, arm], check=True)
        lines = "".join(f"{path}: it is not 64-bit ELF for {ARCH}\n" for path in (arm, narrow, archive))
        self.assert_refused(1, f"{lines}generator: 3 cannot be served; nothing was written",
                            arm, good, narrow, archive)

    def test_inputs_that_are_linked_already(self) -> None:
        good = self.object([MMT4D.format(4)])
        shared, program = self.directory / "model.so", self.directory / "program"
        subprocess.run([COMPILER, "-shared", "-o", shared, "-x", "c++", "/dev/null"], check=True)
        subprocess.run([COMPILER, "-x", "c++", "-", "-o", program], input=b"int main() {}\n", check=True)
        subprocess.run(["strip", shared, program], check=True)
        lines = "".join(f"{path}: it is no object file, but a program or a shared object\n"
                        for path in (shared, program))
        self.assert_refused(1, f"{lines}generator: 2 cannot be served; nothing was written", shared, good, program)

    def test_names_that_are_no_text(self) -> None:
        path = Path(os.fsdecode(os.fsencode(self.directory) + b"/\xff.o"))
        self.assert_refused(2, "generator: [^\n]+: No such file or directory", path)
        path.write_bytes(self.object([MMT4D.format(4)]).read_bytes())
        self.assertEqual([row["symbol"] for row in self.link(path)["calls"]], [MMT4D.format(4)])

    def test_no_jinja2(self) -> None:
        (self.directory / "jinja2.py").write_text("raise ImportError('none here')")
        for command in (self.arguments(self.object([CIFACE + MMT4D.format(4)])),
                        ["tile", "f32f32f32", "3x5x1", LEVEL], ["library", "--out", str(self.out)]):
            ran = subprocess.run(generator_command(*command), cwd=library.ROOT, text=True,
                                 capture_output=True, env={**os.environ, "PYTHONPATH": str(self.directory)})
            with self.subTest(command[0]):
                self.assertEqual((ran.returncode, ran.stderr), (2, (
                    "generator: the generator needs Jinja2 (Debian: python3-jinja2): none here\n")))

    def strange_nm(self) -> Path:
        made = self.directory / "strange-nm"
        made.write_text('#!/bin/sh\ncase $1 in --version) echo LLVM;; *) echo; echo odd;; esac\n')
        made.chmod(0o755)
        return made

    def test_wrong_command_lines(self) -> None:
        model = self.object([MMT4D.format(4)])
        good = self.arguments(model)
        nothing = str(self.directory / "nothing")
        for command, message in (
                ([*good, "--level", "avx3"], "unknown level 'avx3'"),
                ([*good, "--cc", nothing], f"compiler '{nothing}' not found"),
                ([*good, "--nm", nothing], f"{nothing}: No such file or directory"),
                ([*good, "--nm", "false"], "false is not llvm-nm"),
                ([*good, "--nm", "true"], "true is not llvm-nm"),
                ([*good, "--nm", "nm"], "nm is not llvm-nm"),
                ([*good, "--nm", str(self.strange_nm())], r"\S+ printed 'odd', which cannot be read"),
                (self.arguments(nothing), f"{nothing}: No such file or directory"),
                (self.arguments(f"{nothing}.mlir"), f"{nothing}.mlir: No such file or directory"),
                (self.arguments(self.directory), f"{self.directory}: Is a directory"),
                ([*good, "--out", str(model)], f"{model}: a file is where a directory should be"),
                ([*good, "--out", str(model / "out")], f"{model}: a file is where a directory should be"),
                (["link", "--level", LEVEL, "--out", str(self.out)], "the following .* required: INPUT")):
            with self.subTest(command[-2:]):
                self.assert_refused(2, rf"generator[^\n]*: {message}[^\n]*", command=command)

    def test_no_llvm_nm(self) -> None:
        model = self.object([MMT4D.format(4)])
        ran = subprocess.run(generator_command(*self.arguments(model)), cwd=library.ROOT, text=True,
                             capture_output=True, env={**os.environ, "PATH": str(self.directory)})
        self.assertEqual((ran.returncode, ran.stderr), (
            2, "generator: 'llvm-nm' not found (Debian: llvm-19); --nm names another\n"))
        self.assertFalse(self.out.exists())


_WRONG_OPS = """\
%1 = tensor.pack %0 inner_dims_pos = [0, 1] inner_tiles = [%c, 1] into %e : tensor<8xf32> -> tensor<1xf32>
%2 = "linalg.mmt4d"(%0, %1, %2) : () -> ()
%3 = linalg.mmt4d ins(%1, %2 : tensor<1x1x8x1xui8>, tensor<1x1x8x1xf32>) outs(%3 : tensor<1x1x8x8xi8>)
%4 = linalg.mmt4d ins(%1, %2 : !lhs, !rhs) outs(%3 : !out)
%5 = tensor.pack %0 inner_dims_pos = [a, b] inner_tiles = [8, 1] into %e : tensor<?xf32> -> tensor<?xf32>
%6 = linalg.mmt4d ins(%1, %2 : tensor<HUGEx1x8x1xf32>, tensor<1x1x8x1xf32>) outs(%3 : tensor<?x1x8x8xf32>)
%7 = tensor.pack %0 inner_dims_pos = [0, 1] inner_tiles = [HUGE, 1] into %e : tensor<?xf32> -> tensor<?xf32>
%8 = linalg.mmt4d {a = {b} ins(%1, %2 : tensor<1x1x8x99xf32>
%9 = linalg.mmt4d ins(%1, %2 : tensor<1x1x8x99xf32>, tensor<1x1x8x99xf32>) outs(%3: tensor<1x1x8x8xf32>)
"""


class TextTest(LinkCase):
    """MLIR text."""

    def text(self, ops: str) -> Path:
        made = self.directory / "model.mlir"
        made.write_text(ops)
        return made

    def test_tiles_that_ops_ask_for(self) -> None:
        index = self.link(self.text("""\
            // %0 = linalg.mmt4d in a comment
            %1 = tensor.pack %0 padding_value(%c : f32) inner_dims_pos = [0, 1] inner_tiles = [6, 1]
                into %e : tensor<10x20xf32> -> tensor<2x20x6x1xf32>
            %2 = linalg.pack %0 outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [16, 2]
                into %e : tensor<?x?xbf16> -> tensor<?x?x16x2xbf16>
            %3 = tensor.pack %b inner_dims_pos = [0] inner_tiles = [16]
                into %e : tensor<32xf32> -> tensor<2x16xf32>
            %m = transform.structured.match ops{["linalg.mmt4d", "tensor.pack"]} in %root // "one quote
            %4 = linalg.mmt4d {a = {b = "}// linalg.mmt4d"}, c = {}}
                                      ins(%1, %2 : tensor<2x20x6x1xf32>, tensor<?x?x16x1xf32>)
                                      outs(%3 : tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
            linalg.mmt4d
                ins(%5, %6 : memref<2x3x3x2xi8, strided<[?, ?, 2, 1], offset: ?>>, memref<?x?x5x2xi4>)
                outs(%7 : memref<?x?x3x5xi32, 1>)
            linalg.batch_mmt4d ins(%5, %6 : memref<9x2x3x4x2xbf16>, memref<?x?x?x8x2xbf16>)
                               outs(%7 : memref<?x?x?x4x8xf32>)
            %8 = tensor.unpack %4 inner_dims_pos = [0, 1] inner_tiles = [6, 16]
                into %e : tensor<2x2x6x16xf32> -> tensor<10x20xf32>
            """))
        self.assertEqual([row["request"].removesuffix(f" {LEVEL}") for row in index["requests"]], [
            "pack x32 6x1", "pack x16 16x2 t", "mmt4d f32f32f32 6x16x1", "mmt4d s8s4s32 3x5x2",
            "mmt4d bf16bf16f32 4x8x2",
            "unpack x32 6x16"])
        self.assertEqual(index["calls"], [])
        self.assertLessEqual({row["symbol"] for row in index["requests"]},
                             symbols(self.out / "libuk_link.a", "-g", "--defined-only"))

    def test_ops_that_cannot_be_served(self) -> None:
        path = self.text(_WRONG_OPS.replace("HUGE", "9" * 5000))
        reasons = ("tile size '%c' is dynamic", "generic form", "no tile multiplies ui8 by f32 into i8",
                   "types cannot be read", "'a' is not a number", "is 2.63 or more", "is 2.63 or more",
                   "attributes do not end", "K0 = 99 is out of range")
        lines = "".join(f"{path}:{number}: (linalg.mmt4d|tensor.pack): [^\n]*{reason}[^\n]*\n"
                        for number, reason in enumerate(reasons, 1))
        self.assert_refused(1, f"{lines}generator: 9 cannot be served; nothing was written", path)


if __name__ == "__main__":
    main(other_arch("x86_64"), missing_llvm_nm())
