"""The query and the table in Python, against what the library itself answers: query_test.py
<library_table> <tiles.json>: the program of library_table.cc, and what the build installs."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from itertools import product
from pathlib import Path
from unittest import mock

from generator import library
from generator.coverage import CLASSES
from generator.model import ARCHS, TYPES, RequestError, Tile
from generator.query import (Library, further_features, level_of_cpu, query_row, query_tile_sizes,
                             reads_abreast, takes_decoded_lhs, takes_decoded_rhs)
from generator.requests import parse_line
from generator.tiles import Row, table
from generator.tiles_json import read_rows, tiles_json
from tests.generator.support import ARCH, EMULATOR, run_generator, seeds_and_main

SEEDS = [1]
QUERIES = 6000

SIZES = [-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 40, 63, 64, 65, 96, 100, 127, 128, 129, 512, 1439, 4096,
         11008, 57525, (1 << 31) + 1, (1 << 53) + 1, (1 << 63) - 1]
LIBRARY_TABLE = ""
TILES_JSON = ""


def from_library(mode: str, lines: str = "") -> list[str]:
    return subprocess.run([*EMULATOR, LIBRARY_TABLE, mode], input=lines, capture_output=True,
                          text=True, check=True).stdout.splitlines()


def feature_bits(name: str) -> tuple[int, int]:
    """Of fields 0 and 7, by the header."""
    header = (library.ROOT / "ukernel" / "ukernel.h").read_text()
    prefix = rf"#define UK_CPU_(FIELD7_)?{ARCH.upper()}_{name} "
    (in_field7, bit), = re.findall(prefix + r"\(UINT64_C\(1\) << (\d+)\)", header)
    return (0, 1 << int(bit)) if in_field7 else (1 << int(bit), 0)


class TableTest(unittest.TestCase):
    def test_rows_are_those_of_the_library(self) -> None:
        expected = []
        for line in from_library("rows"):
            symbol, op, kind, shape, arch, isa, numerics, origin, variant, *fields = line.split()
            sizes = list(map(int, shape.split("x")))
            expected.append((symbol, op, kind, sizes if op == "mmt4d" else sizes[:2], arch, isa,
                             numerics, origin, bool(int(variant)), *map(int, fields)))
        read = []
        for row in json.loads(Path(TILES_JSON).read_text())["tiles"]:
            if row["arch"] != ARCH:  # the tiles that other machines' libraries have
                continue
            variant = row["needs_skip" if row["op"] == "mmt4d" else "transposed"]
            fields = [sum(field) for field in zip((0, 0), *map(feature_bits, row["features"]))]
            read.append((row["symbol"], row["op"], row["type"], row["shape"], row["arch"],
                         row["isa"], row["numerics"], row["origin"], variant, *fields))
        self.assertEqual(sorted(read), sorted(expected))

    def test_rows_of_other_architectures_are_those_of_now(self) -> None:
        for arch in set(ARCHS) - {ARCH}:
            self.assertEqual(read_rows(Path(TILES_JSON), arch), table(arch))

    def test_layouts_hold_the_shapes(self) -> None:
        for row in json.loads(Path(TILES_JSON).read_text())["tiles"]:
            layout = row["layout"]
            if row["op"] == "mmt4d":
                m0, n0, k0 = row["shape"]
                self.assertEqual([layout[name]["shape"] for name in ("lhs", "rhs", "out")],
                                 [["k1", m0, k0], ["k1", n0, k0], [m0, n0]], row["symbol"])
            else:
                self.assertEqual(layout["tile"]["shape"], row["shape"], row["symbol"])

    def test_levels_have_what_their_rows_need(self) -> None:
        content = json.loads(tiles_json(ARCHS))
        levels = {(level["arch"], level["name"]): level for level in content["levels"]}
        for row in content["tiles"]:
            self.assertEqual(levels[row["arch"], row["isa"]]["features"], row["features"])
        for arch in ARCHS:
            ranks = [level["rank"] for level in levels.values() if level["arch"] == arch]
            self.assertEqual(len(set(ranks)), len(library.levels(arch)))


class QueryTest(unittest.TestCase):
    """Of the table that the build installs."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.library = Library(ARCH, read_rows(Path(TILES_JSON), ARCH))

    def _queries(self, numbers: random.Random) -> list[tuple]:
        """Every type and level, alone and with another one, all sets of fixed members: of a tile that
        is there, mostly."""
        shapes = {name: sorted({(r.tile.m0, r.tile.n0, r.tile.k0) for r in self.library.rows
                                if isinstance(r.tile, Tile) and r.tile.type.name == name})
                  for name in TYPES}
        levels = list(library.levels(ARCH))
        found: list[tuple] = []
        if ARCH == "x86_64":
            # Short and long panels from memory, and several in the caches, where it matters how many.
            from_memory = [(m, (32 << 20) // k, k) for m in (1, 4, 8, 9, 13)
                           for k in (256, 512, 1024, 1025, 2048, 4095, 4096)]
            in_caches = [(m, n, 256) for m in (1, 2, 4, 5, 6, 9, 12, 13, 17) for n in (32, 48, 64, 192, 256, 384)]
            found = [("avx512_bf16+avx_vnni", name, m, n, k, 0, 0, 0, 0)
                     for name in TYPES for m, n, k in from_memory + in_caches]
        for i in range(QUERIES):
            name = list(TYPES)[i % len(TYPES)]
            level = levels[i // len(TYPES) % len(levels)]
            if numbers.random() < 0.2:
                level += "+" + numbers.choice(levels)
            for further in sorted(further_features(ARCH)):
                level += numbers.choice(("", f"+{further.lower()}"))
            members = i // (len(TYPES) * len(levels)) % 8
            fixed = [size if members >> bit & 1 else 0
                     for bit, size in enumerate(numbers.choice(shapes[name]))]
            if numbers.random() < 0.02:
                fixed[numbers.randrange(3)] = numbers.choice([-1, 1, 3, 1234])
            m, n, k = (numbers.choice(SIZES) for _ in range(3))
            found.append((level, name, m, n, k, *fixed, numbers.randrange(2)))
        return found

    def test_answers_are_those_of_the_library(self) -> None:
        for seed in SEEDS:
            queries = self._queries(random.Random(seed))
            lines = "".join(" ".join(map(str, query)) + "\n" for query in queries)
            errors = 0
            for query, expected in zip(queries, from_library("queries", lines), strict=True):
                try:
                    tile = query_row(ARCH, *query[:-1], bool(query[-1]), self.library).tile
                    answer = f"{tile.m0}x{tile.n0}x{tile.k0} {tile.symbol}"
                except RequestError:
                    answer = "error"
                    errors += 1
                self.assertEqual(answer, expected, f"seed {seed}, query {query}")
            self.assertTrue(0 < errors < QUERIES // 2, f"{errors} errors")

    def test_every_type_and_level_has_an_answer(self) -> None:
        for arch in ARCHS:  # a compiler asks for other machines
            for level, name, skip in product(library.levels(arch), TYPES, (False, True)):
                for m in (*(m0s[0] for m0s in CLASSES.values()), 1024):
                    m0, n0, k0 = query_tile_sizes(arch, level, name, m, 0, 0, skip=skip)
                    self.assertTrue(1 <= m0 and 1 <= n0 and 1 <= k0)

    def test_tiles_that_take_a_decoded_rhs_are_those_of_the_library(self) -> None:
        expected = set(from_library("on_decoded_rhs"))
        taken = {row.tile.symbol for row in table(ARCH) if isinstance(row.tile, Tile) and takes_decoded_rhs(row)}
        self.assertEqual(taken, expected & {row.tile.symbol for row in table(ARCH)})
        self.assertEqual(bool(expected), ARCH == "x86_64")

    def test_tiles_that_take_a_decoded_lhs_are_those_of_the_library(self) -> None:
        expected = set(from_library("on_decoded_lhs"))
        taken = {row.tile.symbol for row in table(ARCH) if isinstance(row.tile, Tile) and takes_decoded_lhs(row)}
        self.assertEqual(taken, expected & {row.tile.symbol for row in table(ARCH)})
        self.assertEqual(bool(expected), ARCH == "x86_64")

    def test_tiles_that_read_panels_abreast_are_those_of_the_library(self) -> None:
        expected = set(from_library("abreast"))
        self.assertTrue(expected)
        if ARCH != "x86_64":
            return
        for row in self.library.rows:
            if isinstance(row.tile, Tile):
                self.assertEqual(reads_abreast(row), row.tile.symbol in expected, row.tile.symbol)


class ErrorTest(unittest.TestCase):
    def _check(self, expected: str, *query: object) -> None:
        with self.assertRaisesRegex(RequestError, expected) as caught:
            query_row(*query)  # type: ignore[arg-type]
        self.assertNotIn("\n", str(caught.exception))

    def test_errors_say_what_is_wrong(self) -> None:
        self._check("unknown type 'f8f8f32'; there are", "x86_64", "sse2", "f8f8f32", 1, 1, 1)
        self._check("unknown level 'sse9'; there are", "x86_64", "sse2+sse9", "f32f32f32", 1, 1, 1)
        self._check("unknown level 'neon'; there are sse2, [^;]*; --arch arm_64 has it$", "x86_64", "sse2+neon",
                    "f32f32f32", 1, 1, 1)
        self._check("N0 = -1 is negative", "x86_64", "sse2", "f32f32f32", 1, 1, 1, 0, -1)
        self._check("K0 = 3 splits a byte", "x86_64", "sse2", "s8s4s32", 1, 1, 1, 0, 0, 3)
        self._check(r"no tile of f32f32f32 is 63x\*x1 on sse2", "x86_64", "sse2", "f32f32f32", 1, 1, 1,
                    63, 0, 1)

    def test_levels_add_up(self) -> None:
        vnni, bf16, both = (level_of_cpu("x86_64", name) for name in (
            "avx512_vnni", "avx512_bf16", "avx512_vnni+avx512_bf16"))
        self.assertEqual(both, vnni | bf16)


class LevelTest(unittest.TestCase):
    def test_f16_is_summed_where_an_fma_rounds_to_it(self) -> None:
        """In tiles as wide as a vector of f16."""
        for m, m0 in ((2, 2), (128, 16)):
            for level in ("avx512_fp16", "avx512_vnni+avx512_bf16+avx512_fp16"):
                tile = query_row("x86_64", level, "f16f16f16", m, 4096, 4096).tile
                self.assertEqual((tile.isa, tile.m0, tile.n0), ("avx512_fp16", m0, 32))

    def test_what_the_cpu_is_slow_at_is_taken_last(self) -> None:
        for cpu, level in (("avx512_bf16", "avx512_bf16"), ("avx512_bf16+slow_avx512bf16", "avx512_base")):
            row = query_row("x86_64", cpu, "bf16bf16f32", 512, 4096, 4096)
            self.assertEqual(row.tile.isa, level)

    def test_few_rows_have_tiles_that_read_panels_abreast(self) -> None:
        def row(cpu: str, name: str, m: int, n: int) -> Row:
            return query_row("x86_64", cpu, name, m, n, n)

        for name, m, n, shape in (("bf16bf16f32", 1, 4096, (1, 32)), ("s8s8s32", 2, 4096, (2, 16)),
                                  ("f32f32f32", 4, 4096, (4, 8)), ("f32f32f32", 2, 256, (2, 16)),
                                  ("f64f64f64", 1, 256, (1, 16))):
            found = row("avx2_fma+reads_ahead", name, m, n)
            self.assertEqual((found.tile.m0, found.tile.n0), shape)
            self.assertTrue(reads_abreast(found))
            self.assertFalse(reads_abreast(row("avx2_fma", name, m, n)))
        # Of fewer panels a tile that could do so counts as it is on one.
        self.assertEqual(row("avx2_fma+reads_ahead", "f32f32f32", 2, 32), row("avx2_fma", "f32f32f32", 2, 32))

    def test_few_rows_from_memory_have_few_sums_where_several_panels_come_sooner(self) -> None:
        zen5 = "avx512_bf16+avx_vnni"
        for cpu, name, n, k, shape in (
                (zen5, "f32f32f32", 4096, 4096, (8, 16)),
                (zen5, "f32f32f32", 256, 256, (8, 32)),
                ("avx512_bf16", "f32f32f32", 4096, 4096, (8, 32)),  # reads two in turns
                (zen5, "f16f16f32", 4096, 4096, (8, 32)),  # decoding binds
                (zen5, "bf16bf16bf16", 4096, 4096, (8, 16)),
                (zen5, "f32f32f32", 8192, 1024, (8, 16)),
                (zen5, "f32f32f32", 8192, 1023, (8, 32)),  # panels of 16 columns are too short
                (zen5, "f32f32f32", 65536, 256, (8, 32))):
            found = query_row("x86_64", cpu, name, 8, n, k)
            self.assertEqual((found.tile.m0, found.tile.n0), shape, (cpu, name, n, k))


class CommandTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def test_query_prints_the_tile(self) -> None:
        ran = run_generator("query", "--level", "avx512_vnni", "s8s8s32", "100", "-1", "0", "--n0", "32",
                            "--k0", "4")
        row = query_row("x86_64", "avx512_vnni", "s8s8s32", 100, -1, 0, 0, 32, 4)
        m0 = row.tile.m0
        self.assertEqual((ran.stdout, ran.stderr, ran.returncode),
                         (f"{m0}x32x4 {row.tile.symbol} {row.origin}\n", "", 0))

    def test_levels_by_one_option_or_several_in_any_order(self) -> None:
        def answer(*levels: str) -> str:
            ran = run_generator("query", *(word for level in levels for word in ("--level", level)),
                                "bf16bf16f32", "512", "4096", "4096")
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            return ran.stdout

        together = answer("avx2_fma+avx512_bf16")
        self.assertIn("_avx512_bf16 ", together)
        for levels in (("avx2_fma", "avx512_bf16"), ("avx512_bf16", "avx2_fma"), ("avx512_bf16+avx2_fma",),
                       ("avx512_bf16", "avx2_fma", "avx512_bf16")):
            self.assertEqual(answer(*levels), together, levels)

    def test_skip_changes_the_tile(self) -> None:
        ran = run_generator("query", "--level", "avx2_fma", "f16f16f16", "64", "64", "64", "--skip")
        self.assertIn("_f32acc ", ran.stdout)

    def test_errors_are_one_line(self) -> None:
        for arguments in (["--level", "sse9", "f32f32f32", "1", "1", "1"],
                          ["--level", "sse2", "f32f32f32", "1", "1", "x"],
                          ["--level", "sse2", "f32f32f32", "1", "1", str(2**63)],
                          ["--level", "sse2", "f32f32f32", "1", "1", "9" * 400],
                          ["--level", "sse2", "f32f32f32", "1", "1", "1", "--m0", "63"]):
            ran = run_generator("query", *arguments)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran.stderr)

    def test_an_error_is_the_same_every_time(self) -> None:
        def error(seed: str) -> str:
            with mock.patch.dict(os.environ, {"PYTHONHASHSEED": seed}):
                return run_generator("query", "--level", "sse9", "f32f32f32", "1", "1", "1").stderr

        self.assertEqual({error(str(seed)) for seed in range(1, 6)},
                         {f"generator: unknown level 'sse9'; there are {', '.join(library.levels('x86_64'))}, "
                          f"{', '.join(sorted(map(str.lower, further_features('x86_64'))))}\n"})

    def test_a_table_with_tiles_beside_the_grid(self) -> None:
        query = ["query", "--level", "avx2_fma", "f32f32f32", "9", "48", "999", "--m0", "9", "--n0", "48"]
        extra = parse_line("mmt4d f32f32f32 9x48x3 avx2_fma").tile("x86_64")
        path = self.directory / "tiles.json"
        path.write_text(tiles_json(ARCHS, [extra]))
        self.assertEqual(run_generator(*query).returncode, 2)
        ran = run_generator(*query, "--table", path)
        self.assertEqual((ran.stdout, ran.stderr, ran.returncode),
                         (f"9x48x3 {extra.symbol} generated\n", "", 0))
        self.assertEqual(read_rows(path, "x86_64"), table("x86_64", (extra,)))
        self.assertEqual(read_rows(path, "arm_64"), table("arm_64"))

    def test_files_that_are_no_table(self) -> None:
        path = self.directory / "tiles.json"
        row = json.loads(tiles_json([ARCH]))["tiles"][0]
        symbol = row["symbol"]
        for text, message in (
                ("", "not a table of tiles, as tiles.json is"),
                ("[" * 100_000, "not a table of tiles, as tiles.json is"),
                *((json.dumps(content), message) for content, message in (
                    (5, "not a table of tiles, as tiles.json is"),
                    ({"tiles": 5}, "not a table of tiles, as tiles.json is"),
                    ({"tiles": [5]}, "not a table of tiles, as tiles.json is"),
                    ({"requests": [row]}, "not a table of tiles, as tiles.json is"),
                    ({"tiles": [{"arch": ARCH}]}, "a tile has no symbol"),
                    ({"tiles": [{**row, "symbol": "x\n"}]}, r"'x\n' is not as this version of the generator writes it"),
                    *(({"tiles": [{**row, **wrong}]}, f"'{symbol}' is not as this version of the generator writes it")
                      for wrong in ({"isa": "sse9"}, {"features": []}, {"shape": [1]}, {"origin": "other"},
                                    {"numerics": ["exact"]}, {"origin": ["hand"]}, {"op": "pack"}))))):
            with self.subTest(text[:200]):
                path.write_text(text)
                ran = run_generator("query", "--arch", ARCH, "--level", "sse2", "f32f32f32", "1", "1", "1",
                                    "--table", path)
                self.assertEqual((ran.returncode, ran.stdout, ran.stderr),
                                 (2, "", f"generator: {path}: {message}\n"))
        path.unlink()
        ran = run_generator("query", "--level", "sse2", "f32f32f32", "1", "1", "1", "--table", path)
        self.assertEqual((ran.returncode, ran.stderr), (2, f"generator: {path}: No such file or directory\n"))

    def test_table_is_printed(self) -> None:
        self.assertEqual(run_generator("table", "--arch", ARCH).stdout, tiles_json([ARCH]))


if __name__ == "__main__":
    LIBRARY_TABLE, TILES_JSON = sys.argv.pop(1), sys.argv.pop(1)
    if not any(" generated " in line for line in from_library("rows")):
        print("skipped: this build of the library has hand-written tiles only")
        sys.exit()
    seeds_and_main(SEEDS)
