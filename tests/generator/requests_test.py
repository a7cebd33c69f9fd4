"""Manifests, and what answers each request; no compiler."""

from __future__ import annotations

import re
import tempfile
import unittest
from pathlib import Path

from generator.copy_tile import emit_copies
from generator.model import RequestError
from generator.requests import Answer, Request, find_answer, parse_line, read_manifests
from generator.tiles_json import tiles_json
from tests.generator.support import ARCH, run_generator


def _request(line: str) -> Request:
    request = parse_line(line)
    assert request
    return request


def _answer(line: str) -> Answer:
    return find_answer(_request(line).tile(ARCH))


class ManifestTest(unittest.TestCase):
    def test_text_and_json_say_the_same(self) -> None:
        for text, json_text in (
                ("mmt4d s8s8s32 12x32x4 avx512_vnni",
                 '{"op": "mmt4d", "type": "s8s8s32", "shape": "12x32x4", "level": "avx512_vnni"}'),
                ("mmt4d f16f16f16 3x5x1 avx2_fma f32acc",
                 '{"level": "avx2_fma", "type": "f16f16f16", "shape": "3x5x1", "op": "mmt4d", '
                 '"f32acc": true}'),
                ("pack x32 8x1 t avx2_fma",
                 '{"op": "pack", "type": "x32", "shape": "8x1", "t": true, "level": "avx2_fma"}'),
                ("unpack x32 8x8 avx2_fma",
                 '{"op": "unpack", "type": "x32", "shape": "8x8", "t": false, "level": "avx2_fma"}')):
            self.assertEqual(_request(text), _request(json_text))
            self.assertEqual(_request(text).text, text)

    def test_space_comments_and_leading_zeros_do_not_matter(self) -> None:
        plain = _request("mmt4d s8s8s32 12x32x4 avx512_vnni")
        self.assertEqual(_request("  mmt4d\ts8s8s32 012x32x4  avx512_vnni # weights"), plain)
        self.assertIsNone(parse_line("  # nothing"))
        self.assertIsNone(parse_line(""))

    def test_manifests_are_gathered(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            first, second = Path(directory, "a.txt"), Path(directory, "b.txt")
            first.write_text("# one\nmmt4d s8s8s32 1x2x4 avx2_fma\nmmt4d f32f32f32 1x2x1 avx2_fma\n")
            second.write_text("mmt4d s8s8s32  1x2x4 avx2_fma\n")
            asked = read_manifests([str(first), str(second)])
        self.assertEqual([(r.text, a.count) for r, a in asked.items()],
                         [("mmt4d s8s8s32 1x2x4 avx2_fma", 2), ("mmt4d f32f32f32 1x2x1 avx2_fma", 1)])
        self.assertEqual([a.place for a in asked.values()], [f"{first}:2", f"{first}:3"])

    def test_a_byte_order_mark_is_no_part_of_the_first_request(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            manifest = Path(directory, "a.txt")
            manifest.write_bytes(b"\xef\xbb\xbfpack x32 9x3 t sse2\r\npack x32 9x3 t sse2")
            (request, asked), = read_manifests([str(manifest)]).items()
        self.assertEqual((request.text, asked.count), ("pack x32 9x3 t sse2", 2))


class AnswerTest(unittest.TestCase):
    def test_hand_written_goes_first(self) -> None:
        answer = _answer("mmt4d f32f32f32 6x16x1 avx2_fma")
        self.assertEqual((answer.origin, answer.note), ("hand", ""))
        self.assertEqual(_answer("pack x32 8x1 t avx2_fma").origin, "hand")

    def test_other_shapes_are_generated(self) -> None:
        for line in ("mmt4d f32f32f32 5x17x3 avx2_fma", "pack x32 9x3 t sse2", "unpack x64 1x63 avx2_fma",
                     "pack x4 9x6 t avx512_base"):
            answer = _answer(line)
            self.assertEqual((answer.origin, answer.note), ("generated", ""))
        self.assertEqual(answer.how.numerics, "exact")

    def test_a_level_that_adds_nothing_is_served_by_the_one_below(self) -> None:
        for line, level in (("mmt4d f32f32f32 7x19x1 avx512_vnni", "avx512_base"),
                            ("mmt4d f64f64f64 7x19x1 avx512_bf16", "avx512_base"),
                            ("mmt4d f32f32f32 6x16x1 avx_vnni", "avx2_fma"),
                            ("mmt4d bf16bf16f32 7x19x3 avx512_bf16", "avx512_base"),
                            ("mmt4d bf16bf16bf16 7x19x2 avx512_bf16", "avx512_base"),
                            ("mmt4d f16f16f32 7x19x1 avx512_fp16", "avx512_base"),
                            ("mmt4d f16f16f16 7x19x1 avx512_fp16 f32acc", "avx512_base"),
                            ("mmt4d s8s8s32 7x19x4 amx_int8", "avx512_vnni"),
                            ("mmt4d bf16bf16f32 7x19x2 amx_bf16", "avx512_base"),
                            ("pack x32 8x1 avx512_vnni", "avx512_base"),
                            ("pack x32 9x3 avx512_fp16", "avx512_base"),
                            ("unpack x4 9x6 t avx512_bf16", "avx512_base"),
                            ("unpack x8 3x5 avx_vnni", "avx2_fma")):
            answer = _answer(line)
            self.assertEqual(answer.tile.isa, level, line)
            self.assertIn(f"{level} serves it", answer.note)
        for line in ("mmt4d bf16bf16f32 7x19x2 avx512_bf16", "mmt4d s8s8s32 7x19x4 avx_vnni",
                     "mmt4d bf16bf16bf16 7x19x2 avx512_bf16 f32acc",
                     "mmt4d f16f16f16 7x19x3 avx512_fp16"):
            self.assertEqual(_answer(line).note, "", line)

    def test_refusals_say_why(self) -> None:
        for line, reason in (
                ("mmt4d s8s8s16 1x1x1 avx2_fma", "unknown type 's8s8s16'; there are f32f32f32, "),
                ("mmt4d s8s8s32 65x1x1 avx2_fma", "M0 = 65 is out of range, 1 to 64"),
                ("mmt4d s8s8s32 1x0x1 avx2_fma", "N0 = 0 is out of range, 1 to 64"),
                ("mmt4d s8s8s32 1x1x17 avx2_fma", "K0 = 17 is out of range, 1 to 16"),
                ("mmt4d s8s4s32 4x8x3 avx2_fma", "K0 = 3 splits a byte"),
                ("mmt4d s8s8s32 1x1x1 avx3", "unknown level 'avx3'; there are sse2, "),
                ("mmt4d s8s8s32 1x1x1 neon", "amx_bf16; --arch arm_64 has it"),
                ("mmt4d f32f32f32 1x1x1 avx2_fma f32acc", "f32acc means nothing for f32f32f32"),
                ("pack x32 65x7 avx2_fma", "tile0 = 65 is out of range, 1 to 64"),
                ("unpack x32 5x0 t avx2_fma", "tile1 = 0 is out of range, 1 to 64"),
                ("pack x32 5x7 avx3", "unknown level 'avx3'; there are sse2, "),
                ("pack x33 5x7 avx2_fma", "unknown element width 'x33'"),
                ("unpack x4 2x3 avx2_fma", "tile1 = 3 splits a byte")):
            with self.subTest(line), self.assertRaises(RequestError) as raised:
                _answer(line)
            self.assertIn(reason, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))


class CopySourceTest(unittest.TestCase):
    def test_a_file_has_many_tiles_of_one_level(self) -> None:
        tiles = [_answer(line).tile for line in
                 ("pack x32 9x3 t sse2", "unpack x4 9x6 sse2", "pack x32 9x3 avx2_fma")]
        text = emit_copies(tiles[:2])
        self.assertIn("UK_DEFINE_PACK_TILE(x32, 9, 3, transposed, x86_64, sse2)\n"
                      "UK_DEFINE_UNPACK_TILE(x4, 9, 6, straight, x86_64, sse2)\n", text)
        with self.assertRaises(ValueError):
            emit_copies(tiles)


class ExplainTest(unittest.TestCase):
    def test_explains_each_request_once(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            manifest = Path(directory, "a.txt")
            manifest.write_text("mmt4d f32f32f32 6x16x1 avx2_fma\n"
                                "mmt4d f32f32f32 7x19x1 avx512_vnni\n"
                                "mmt4d f32f32f32 6x16x1 avx2_fma\n"
                                "mmt4d f32f32f32 99x1x1 avx2_fma\n"
                                "pack x32 9x3 t avx_vnni\n")
            ran = run_generator("explain", "--manifest", manifest)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        hand, generated, refused, copy = ran.stdout.splitlines()
        self.assertRegex(hand, r"^hand +mmt4d f32f32f32 6x16x1 avx2_fma: uk_\w+_x86_64_avx2_fma$")
        self.assertRegex(generated, r"^generated +mmt4d f32f32f32 7x19x1 avx512_vnni: uk_\w+_avx512_base; "
                                    r".* avx512_base serves it; not in the library: .*registers")
        self.assertRegex(refused, r"^refused +mmt4d f32f32f32 99x1x1 avx2_fma: M0 = 99 is out of range, 1 to 64 "
                                  rf"\({manifest}:4\)$")
        self.assertRegex(copy, r"^generated +pack x32 9x3 t avx_vnni: uk_pack_tile_x32_9x3_t_x86_64_avx2_fma; "
                               r".* avx2_fma serves it; not in the library: build makes it$")

    def test_says_who_asks_for_what_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            paths = [Path(directory, name) for name in ("a.txt", "b.txt")]
            for path in paths:
                path.write_text("\nmmt4d f32f32f32 99x1x1 avx2_fma\n")
            ran = run_generator("explain", "--manifest", *paths)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, rf" \({paths[0]}:2 and 1 more\)\n$")

    def test_says_whether_the_library_has_it(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            manifest, table = Path(directory, "a.txt"), Path(directory, "tiles.json")
            manifest.write_text("mmt4d f32f32f32 9x32x1 avx2_fma\nmmt4d f32f32f32 9x48x1 avx2_fma\n")
            table.write_text(tiles_json([ARCH], [_request("mmt4d f32f32f32 9x48x1 avx2_fma").tile(ARCH)]))
            without = run_generator("explain", "--manifest", manifest).stdout.splitlines()
            beside = run_generator("explain", "--manifest", manifest, "--table", table).stdout.splitlines()
        self.assertEqual(["; in the library; " in line for line in without], [True, False])
        self.assertEqual(["; in the library; " in line for line in beside], [True, True])

    def test_refusals_are_no_error(self) -> None:
        """As the help says."""
        with tempfile.TemporaryDirectory() as directory:
            manifest = Path(directory, "a.txt")
            manifest.write_text("mmt4d f32f32f32 99x1x1 avx2_fma\n")
            ran = run_generator("explain", "--manifest", manifest)
        self.assertEqual((ran.returncode, ran.stderr, ran.stdout.partition(" ")[0]), (0, "", "refused"))
        for command in (["explain"], []):
            said = " ".join(run_generator(*command, "--help").stdout.split())
            self.assertIn("the exit code is 0 where requests are refused, too", said)

    def test_manifests_by_one_option_or_several(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            first, second, third = paths = [Path(directory, f"{n}.txt") for n in (1, 2, 3)]
            for n, path in enumerate(paths, 1):
                path.write_text(f"mmt4d f32f32f32 {n}x19x1 avx2_fma\n")
            together = run_generator("explain", "--manifest", *paths)
            apart = run_generator("explain", "--manifest", first, second, "--manifest", third)
        self.assertEqual(re.findall("f32f32f32 ([0-9]+)x19x1 ", together.stdout), ["1", "2", "3"])
        self.assertEqual((apart.returncode, apart.stderr, apart.stdout), (0, "", together.stdout))


if __name__ == "__main__":
    unittest.main()
