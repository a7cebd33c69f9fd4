"""The sources that the library's build generates: which, and what is left alone."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from generator import cli, library, library_build
from generator.build import sources_hash
from generator.library_build import TILES_PER_FILE
from generator.model import Tile
from generator.tiles import copies_for, generated_rows, table
from tests.generator.support import ARCH, run_generator

EXTRA = "mmt4d f32f32f32 9x48x3 avx2_fma"
EXTRA_ROW = "UK_MMT4D_TILE(f32, f32, f32, 9, 48, 3, x86_64, avx2_fma, fma_chain)"

# The sources of a file, which many runs of these tests have in common and take seconds to write.
_written_source = functools.cache(library_build._source)

_TILE = re.compile(r'^(?:extern "C" void|UK_DEFINE_STRIDED_TILE)\b', re.MULTILINE)


class RowsTest(unittest.TestCase):
    def test_no_tile_is_there_twice(self) -> None:
        tiles = [row.tile for row in table(ARCH)]
        self.assertEqual(len(tiles), len(set(tiles)))

    def test_grid_is_more_than_the_hand_written_rows(self) -> None:
        levels = {row.tile.isa for row in generated_rows(ARCH) if isinstance(row.tile, Tile)}
        self.assertLessEqual({"sse2", "avx2_fma", "avx_vnni", "avx512_base", "avx512_vnni", "avx512_fp16"},
                             levels)

    def test_every_mmt4d_tile_has_its_pack_and_unpack_tiles(self) -> None:
        tiles = {row.tile for row in table(ARCH)}
        for tile in tiles:
            for copy in copies_for(tile) if isinstance(tile, Tile) else []:
                served = [replace(copy, isa=level.name)
                          for level in library.levels_served_by(ARCH, copy.isa)]
                self.assertTrue(tiles & set(served), f"{tile.symbol} lacks {copy.symbol}")

    def test_every_shape_is_served_at_every_level(self) -> None:
        """Operands that were packed for one CPU can be multiplied on another."""
        tiles = {row.tile for row in table(ARCH)}
        served = {level: library.levels_served_by(ARCH, level) for level in library.levels(ARCH)}
        for tile in tiles:
            for level in served if isinstance(tile, Tile) else ():
                self.assertTrue(any(replace(tile, isa=below.name) in tiles for below in served[level]),
                                f"{level} has nothing for {tile.symbol}")

    def test_row_text_is_read_back(self) -> None:
        for row in table(ARCH):
            (macro, columns), = library.expand_rows(library.row_text(row.tile, row.numerics))
            self.assertEqual(library.tile_of_row(macro, columns), row.tile)


class SourcesHashTest(unittest.TestCase):
    def test_levels_are_part_of_it(self) -> None:
        """What a level can do decides what is generated for it."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "ukernel").mkdir()
            levels = root / "ukernel" / "isa.inc"
            with patch.object(library, "ROOT", root):
                hashes = []
                for text in ("", "UK_ISA_LEVEL()"):
                    levels.write_text(text)
                    sources_hash.cache_clear()
                    hashes.append(sources_hash(ARCH))
        sources_hash.cache_clear()
        self.assertNotEqual(*hashes)


class SourcesTest(unittest.TestCase):
    after_a_run: Path  # without extra tiles, into a directory of its own

    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.after_a_run = Path(directory.name) / "generated"
        run_generator("library", "--arch", ARCH, "--out", cls.after_a_run)

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name) / "generated"

    def generate(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and what was said."""
        said = io.StringIO()
        with (patch.object(library_build, "_source", lambda rows: _written_source(tuple(rows))),
              contextlib.redirect_stderr(said)):
            return cli.main(["library", "--arch", ARCH, "--out", str(self.out), *arguments]), said.getvalue()

    def start_after_a_run(self) -> None:
        shutil.copytree(self.after_a_run, self.out, dirs_exist_ok=True)  # and the times of its files

    def files(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.out.rglob("*") if path.is_file()}

    def test_writes_each_tile_once(self) -> None:
        self.assertEqual(self.generate(), (0, ""))
        rows = (self.out / "tiles.inc").read_text()
        for row in generated_rows(ARCH):
            self.assertEqual(rows.count(library.row_text(row.tile, row.numerics) + "\n"), 1)
        sources = {path.parent.name: "" for path in self.out.glob("*/*.cc")}
        for path in self.out.glob("*/*.cc"):
            text = path.read_text()
            self.assertLessEqual(len(_TILE.findall(text)), TILES_PER_FILE)
            sources[path.parent.name] += text
        for row in generated_rows(ARCH):
            if isinstance(row.tile, Tile):
                head = f"\nUK_DEFINE_STRIDED_TILE({row.tile.symbol}, "
                self.assertEqual(sources[row.tile.isa].count(head), 1, row.tile.symbol)

    def test_a_second_run_writes_nothing(self) -> None:
        self.start_after_a_run()
        before = self.files()
        self.assertEqual(self.generate(), (0, ""))
        self.assertEqual(self.files(), before)

    def test_a_tile_more_changes_its_file_alone(self) -> None:
        self.start_after_a_run()
        before = self.files()
        self.assertEqual(self.generate("--tile", EXTRA), (0, ""))
        changed = {str(path.relative_to(self.out)).rpartition("_")[0] or path.name
                   for path, when in self.files().items() if before.get(path) != when}
        self.assertIn("avx2_fma/mmt4d_f32f32f32", changed)
        others = {name for name in changed if name.startswith(("avx", "sse")) and "mmt4d" in name}
        self.assertEqual(others, {"avx2_fma/mmt4d_f32f32f32"})
        self.assertIn(EXTRA_ROW, (self.out / "tiles.inc").read_text())
        # And gone when no one asks for it any more.
        self.generate()
        self.assertEqual(self.files().keys(), before.keys())
        self.assertNotIn(EXTRA_ROW, (self.out / "tiles.inc").read_text())

    def test_an_interrupted_run_is_made_good(self) -> None:
        """What it wrote, and an earlier one that it was to replace, goes when no one wants it."""
        self.generate("--tile", EXTRA)
        stamp = self.out / "stamp"
        _, *names = stamp.read_text().splitlines()
        stray = self.out / "sse2" / "mmt4d_f32f32f32_99.cc"
        stray.write_text("of a larger grid")
        stamp.write_text("\n".join(["incomplete", *names, "sse2/mmt4d_f32f32f32_99.cc"]))
        (self.out / "sse2" / "mmt4d_f32f32f32_0.cc").unlink()
        self.assertEqual(self.generate(), (0, ""))
        self.assertFalse(stray.exists())
        self.assertEqual({str(path.relative_to(self.out)) for path in self.files()},
                         {"stamp", *stamp.read_text().splitlines()[1:]})

    def test_an_interruption_forgets_no_file(self) -> None:
        """Whenever it comes: after each file that is written."""
        (self.out / "sse2").mkdir(parents=True)
        earlier = "sse2/mmt4d_f32f32f32_0.cc"
        (self.out / earlier).write_text("")
        (self.out / "stamp").write_text(f"of it\n{earlier}")
        wanted = {"tiles.inc": "rows", "avx2_fma/mmt4d_f32f32f32_0.cc": "tiles"}
        replace_file = library.replace_file
        for last in range(3):
            written = 0

            def replace_some(path: Path, text: str) -> None:
                nonlocal written
                if written == last:
                    raise KeyboardInterrupt
                written += 1
                replace_file(path, text)

            with (patch.object(library_build, "_files", lambda *_: wanted.items()),
                  patch.object(library, "replace_file", replace_some),
                  self.assertRaises(KeyboardInterrupt)):
                library_build.write_library_sources(ARCH, [], self.out)
            listed = (self.out / "stamp").read_text().splitlines()[1:]
            there = {str(path.relative_to(self.out)) for path in self.files()} - {"stamp"}
            self.assertLessEqual(there, set(listed))
        with patch.object(library_build, "_files", lambda *_: wanted.items()):
            library_build.write_library_sources(ARCH, [], self.out)
        self.assertEqual({str(path.relative_to(self.out)) for path in self.files()}, {"stamp", *wanted})

    def test_files_of_others_are_kept(self) -> None:
        """Even where a stamp names them."""
        names = ["thesis.tex", "sse2/thesis.cc", "sse2/deep/er.cc", "avx2_fma/mmt4d_other.cc"]
        (self.out / "sse2" / "deep").mkdir(parents=True)
        (self.out / "avx2_fma").mkdir()
        for name in names:
            (self.out / name).write_text("mine")
        outside = self.out.parent / "mmt4d_outside.cc"
        outside.write_text("mine")
        (self.out / "stamp").write_text(
            f"0\nthesis.tex\nsse2/thesis.cc\n../mmt4d_outside.cc\n{outside}\nsse2/deep/er.cc")
        for arguments in ([], ["--tile", EXTRA], []):
            self.assertEqual(self.generate(*arguments), (0, ""))
        for path in [outside, *(self.out / name for name in names)]:
            self.assertEqual(path.read_text(), "mine")

    def test_what_is_missing_or_damaged_is_written_again(self) -> None:
        self.start_after_a_run()
        before = {path: path.read_bytes() for path in self.files()}
        (self.out / "tiles.inc").write_bytes(b"\xff")
        next(self.out.glob("sse2/*.cc")).unlink()
        self.assertEqual(self.generate(), (0, ""))
        self.assertEqual({path: path.read_bytes() for path in self.files()}, before)
        (self.out / "stamp").write_bytes(b"\xff")
        self.assertEqual(self.generate(), (0, ""))
        self.assertEqual({path: path.read_bytes() for path in self.files()}, before)

    def test_manifests(self) -> None:
        manifest = self.out.parent / "manifest.txt"
        manifest.write_text(f"{EXTRA}\npack x32 9x3 t sse2  # and its comment\n")
        self.assertEqual(self.generate("--manifest", str(manifest)), (0, ""))
        rows = (self.out / "tiles.inc").read_text()
        self.assertIn(EXTRA_ROW, rows)
        self.assertIn("UK_PACK_TILE(x32, 9, 3, transposed, x86_64, sse2)", rows)
        # A request of the manifest brings its operands' tiles.
        self.assertIn("UK_PACK_TILE(x32, 48, 3, straight, x86_64, avx2_fma)", rows)

    def test_what_the_library_has_is_not_generated(self) -> None:
        self.generate("--tile", "mmt4d f32f32f32 8x32x1 avx512_base")
        self.assertNotIn("f32, f32, f32, 8, 32, 1, x86_64, avx512_base",
                         (self.out / "tiles.inc").read_text())

    def test_a_tile_of_a_lower_level_is_said_to_be_one(self) -> None:
        symbol = "uk_mmt4d_tile_f32f32f32_9x48x3_x86_64_avx512_vnni"
        self.assertEqual(self.generate("--tile", "mmt4d f32f32f32 9x48x3 avx512_vnni"), (0, (
            f"{symbol}: avx512_vnni has nothing of its own for this; avx512_base serves it\n")))

    def test_a_wrong_request_changes_nothing(self) -> None:
        self.start_after_a_run()
        before = self.files()
        for wrong, reason in (("mmt4d f32f32f32 65x16x1 avx2_fma", "M0 = 65 is out of range, 1 to 64"),
                              ("mmt4d f32f32 8x8x1 sse2", "unknown type 'f32f32'; there are "),
                              ("nonsense", "'nonsense' is not a request: "), ("# no", "it is not a request")):
            code, said = self.generate("--tile", EXTRA, "--tile", wrong)
            self.assertEqual(code, 2, wrong)
            self.assertEqual(len(said.splitlines()), 1, said)
            self.assertTrue(said.startswith(f"generator: '{wrong}': {reason}"), said)
        self.assertEqual(self.generate("--manifest", "nosuch.txt")[0], 2)
        self.assertEqual(self.files(), before)


class ConfigureTest(unittest.TestCase):
    """The build's own part, as far as CMake's configuration."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.build = Path(directory.name)

    def configure(self, *arguments: str, path: str | None = None) -> tuple[int, str]:
        ran = subprocess.run(
            [os.environ.get("CMAKE", "cmake"), "-S", library.ROOT, "-B", self.build, "-DUK_BUILD_TESTS=OFF",
             "-DUK_BUILD_BENCH=OFF", *arguments], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, **({"PATH": path} if path else {})})
        return ran.returncode, " ".join(ran.stdout.split())  # CMake breaks lines

    def test_extra_tiles(self) -> None:
        code, text = self.configure(f"-DUK_EXTRA_TILES={EXTRA};pack x8 3x5 t sse2")
        self.assertEqual(code, 0, text)
        rows = (self.build / "generated" / ARCH / "tiles.inc").read_text()
        self.assertIn(EXTRA_ROW, rows)
        self.assertIn("UK_PACK_TILE(x8, 3, 5, transposed, x86_64, sse2)", rows)

    def test_only_what_was_generated_is_compiled(self) -> None:
        level = self.build / "generated" / ARCH / "sse2"
        level.mkdir(parents=True)
        (level / "stray.cc").write_text("")
        code, text = self.configure()
        self.assertEqual(code, 0, text)
        compiled = (self.build / "compile_commands.json").read_text()
        self.assertTrue((level / "stray.cc").exists())
        self.assertIn(f"{level}/mmt4d_f32f32f32_0.cc", compiled)
        self.assertNotIn(f"{level}/stray.cc", compiled)
        for path in level.parent.glob("*/*.cc"):
            self.assertEqual(path.name != "stray.cc", str(path) in compiled, path)

    def test_a_wrong_tile_stops_it(self) -> None:
        code, text = self.configure("-DUK_EXTRA_TILES=mmt4d f32f32f32 9x48x17 avx2_fma")
        self.assertNotEqual(code, 0)
        self.assertIn("'mmt4d f32f32f32 9x48x17 avx2_fma': K0 = 17 is out of range, 1 to 16", text)

    def test_without_the_generator(self) -> None:
        code, text = self.configure("-DUK_GENERATE=OFF")
        self.assertEqual(code, 0, text)
        self.assertFalse((self.build / "generated").exists())
        code, text = self.configure("-DUK_GENERATE=OFF", f"-DUK_EXTRA_TILES={EXTRA}")
        self.assertNotEqual(code, 0)
        self.assertIn("need UK_GENERATE", text)

    def test_without_cpuinfo(self) -> None:
        with patch.dict(os.environ, {"PKG_CONFIG_LIBDIR": "/nosuch", "PKG_CONFIG_PATH": ""}):
            code, text = self.configure("-DUK_GENERATE=OFF")
            self.assertNotEqual(code, 0)
            self.assertIn("ukernel::cpu needs cpuinfo (Debian: libcpuinfo-dev); -DUK_BUILD_CPU=OFF leaves it out", text)
            code, text = self.configure("-DUK_GENERATE=OFF", "-DUK_BUILD_CPU=OFF")
            self.assertEqual(code, 0, text)
        self.assertNotIn("ukernel_cpu", (self.build / "compile_commands.json").read_text())
        code, text = self.configure("-DUK_GENERATE=OFF", "-DUK_BUILD_CPU=OFF", "-DUK_BUILD_TESTS=ON")
        self.assertNotEqual(code, 0)
        self.assertIn("UK_BUILD_TESTS and UK_BUILD_BENCH need UK_BUILD_CPU", text)

    def test_a_python_without_jinja2_on_the_path(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            bare = Path(directory) / "python3"
            bare.write_text("#!/bin/sh\nexit 1\n")
            bare.chmod(0o755)
            path = f"{directory}:{os.environ['PATH']}"
            code, text = self.configure(path=path)
            if "needs Python" in text:
                self.skipTest("no other Python with Jinja2 on this machine")
            self.assertEqual(code, 0, text)
            self.assertTrue((self.build / "generated" / ARCH / "tiles.inc").exists())

    def test_a_python_that_cannot_be_run(self) -> None:
        code, text = self.configure("-DUK_PYTHON=/nosuch/python3")
        self.assertNotEqual(code, 0)
        self.assertIn("UK_PYTHON, /nosuch/python3, cannot be run: No such file or directory", text)

    def test_a_python_that_says_nothing(self) -> None:
        code, text = self.configure("-DUK_PYTHON=/bin/false")
        self.assertNotEqual(code, 0)
        self.assertIn("UK_PYTHON, /bin/false, ended with 1 and said nothing", " ".join(text.split()))

    def test_no_python_at_all(self) -> None:
        code, text = self.configure("-DUK_PYTHON=", "-DUK_PYTHON_CANDIDATES=/nosuch/python3")
        self.assertNotEqual(code, 0)
        self.assertIn("Debian: python3-jinja2", text)
        self.assertIn("UK_GENERATE=OFF", text)


if __name__ == "__main__":
    unittest.main()
