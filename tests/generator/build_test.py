"""python3 -m generator tile and build: outputs, cache, errors, interruption."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from generator import library
from generator.build import Compiler, default_compiler
from generator.objects import write_archive
from generator.requests import parse_line
from generator.tiles_json import tiles_json
from tests.generator.support import ARCH, COMPILER, generator_command, main, other_arch, run_generator

# Logs what it compiles, and fails, or hangs, on the tile named in a file beside it.
_COMPILER = """\
#!/bin/sh
here={here}
case "$*" in
  --version|-dumpmachine) ;;
  *x++-header*|*c++-header*) ;;
  *)
    for word; do case "$word" in *.cc) echo "$word" >> "$here/compiled";; esac; done
    if [ -s "$here/broken" ]; then
      case "$*" in *"$(cat "$here/broken")"*) echo "tile.cc:1:1: error: broken" >&2; exit 1;; esac
    fi
    if [ -e "$here/slow" ]; then : > "$here/started"; sleep 1; fi;;
esac
exec {compiler} "$@"
"""

_HAND = "mmt4d f32f32f32 6x16x1 avx2_fma"
# Of the level that compiles in a tenth of the time of others.
_GENERATED = "mmt4d f32f32f32 3x5x1 sse2"
_GENERATED_SYMBOL = "uk_mmt4d_tile_f32f32f32_3x5x1_x86_64_sse2"
_ON_AVX2 = "mmt4d f32f32f32 3x5x1 avx2_fma"
_THREE = [f"mmt4d f32f32f32 {m0}x5x1 sse2" for m0 in (1, 2, 3)]


def _symbols(object_file: Path) -> set[str]:
    ran = subprocess.run(["nm", "-g", "--defined-only", object_file], capture_output=True, text=True,
                         check=True)
    return {line.split()[-1] for line in ran.stdout.splitlines() if len(line.split()) == 3}


def _take_signals() -> None:
    """Whatever runs the tests may ignore some, as nohup does."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


# Runs the generator with a signal that comes when it imports a module.
_SIGNALLED = """\
import os, runpy, signal, sys
class Finder:
    def find_spec(name, path, target=None):
        if name == module:
            os.kill(os.getpid(), number)
number, module, *sys.argv[1:] = int(sys.argv[1]), *sys.argv[2:]
sys.meta_path.insert(0, Finder)
runpy.run_module("generator", run_name="__main__", alter_sys=True)
"""


class BuildCase(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.out = self.directory / "out" / "tiles"
        self.cache = self.directory / "cache"
        self.cc = self.directory / "cc"
        self.cc.write_text(_COMPILER.format(here=shlex.quote(str(self.directory)),
                                            compiler=shlex.quote(COMPILER)))
        self.cc.chmod(0o755)

    def arguments(self, lines: list[str], *more: str) -> list[str]:
        manifest = self.directory / "manifest.txt"
        manifest.write_text("".join(f"{line}\n" for line in lines))
        return ["build", "--manifest", str(manifest), "--arch", ARCH, "--out", str(self.out),
                "--cache", str(self.cache), "--cc", str(self.cc), *more]

    def build(self, lines: list[str], *more: str) -> list[dict]:
        """The rows of the index."""
        ran = run_generator(*self.arguments(lines, *more))
        self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (0, "", ""))
        return json.loads((self.out / "index.json").read_text())["requests"]

    def compiled(self) -> list[str]:
        """The tiles compiled since the last call."""
        log = self.directory / "compiled"
        names = sorted(log.read_text().split()) if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def assert_refused(self, message: str, *arguments: str) -> None:
        """One line, exit 2, and nothing is written."""
        before = self.outputs()
        ran = run_generator(*arguments)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertRegex(ran.stderr, rf"^generator[^\n]*: [^\n]*{message}[^\n]*\n$")
        self.assertEqual(ran.stdout, "")
        self.assertEqual(self.outputs(), before)
        self.assert_no_temporaries()

    def outputs(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.out.parent.rglob("*") if path.is_file()}

    def names(self) -> list[str]:
        return sorted(path.name for path in self.out.iterdir())

    def assert_no_temporaries(self) -> None:
        self.assertEqual(list(self.directory.rglob(".*")), [])


class TileTest(BuildCase):
    def test_source_compiles_and_says_its_plan(self) -> None:
        for words in ("s8s4s32 12x32x8 avx512_vnni", "f16f16f16 3x5x3 avx2_fma --f32acc"):
            ran = run_generator("tile", *words.split())
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertRegex(ran.stdout, r"// uk_mmt4d_tile_\w+\n// .* registers")
            flags = library.compiler_flags(ARCH, words.split()[2], "GNU")
            made = self.directory / "tile.o"
            command = [COMPILER, "-std=c++17", "-O1", *[f for f in flags if f.startswith("-m")],
                       f"-I{library.ROOT}", "-c", "-x", "c++", "-", "-o", str(made)]
            subprocess.run(command, input=ran.stdout, text=True, check=True)
            self.assertEqual(len(_symbols(made)), 1)

    def test_a_hand_written_shape_and_a_level_that_adds_nothing_are_noted(self) -> None:
        ran = run_generator("tile", "f32f32f32", "6x16x1", "avx_vnni")
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr, "avx2_fma serves it\n.*hand-written; this is the generated one")
        self.assertIn("// uk_mmt4d_tile_f32f32f32_6x16x1_x86_64_avx2_fma\n", ran.stdout)


class OutputTest(BuildCase):
    def test_archive_and_index(self) -> None:
        rows = self.build([_HAND, _ON_AVX2, _ON_AVX2, "mmt4d s8s8s32 3x5x4 avx_vnni",
                           "mmt4d f32f32f32 3x5x1 avx_vnni"])
        self.assertEqual([(row["request"], row["count"], row["origin"], row["file"]) for row in rows], [
            (_HAND, 1, "hand", None), (_ON_AVX2, 2, "generated", "libuk_tiles.a"),
            ("mmt4d s8s8s32 3x5x4 avx_vnni", 1, "generated", "libuk_tiles.a"),
            ("mmt4d f32f32f32 3x5x1 avx_vnni", 1, "generated", "libuk_tiles.a")])
        hand, plain, vnni, moved = rows
        self.assertIsNone(hand["code_bytes"])
        symbol = plain["symbol"]
        self.assertEqual(symbol, "uk_mmt4d_tile_f32f32f32_3x5x1_x86_64_avx2_fma")
        self.assertEqual(plain["features"], ["AVX", "AVX2", "F16C", "FMA"])
        self.assertEqual(plain["numerics"], "fma_chain")
        self.assertEqual(plain["note"], "")
        self.assertEqual(plain["layout"], {"lhs": {"type": "f32", "shape": ["k1", 3, 1]},
                                           "rhs": {"type": "f32", "shape": ["k1", 5, 1]},
                                           "out": {"type": "f32", "shape": [3, 5]}})
        self.assertIn("AVXVNNI", vnni["features"])
        self.assertEqual(moved["requested_symbol"], symbol.replace("avx2_fma", "avx_vnni"))
        self.assertEqual(moved["symbol"], symbol)
        self.assertIn("avx2_fma serves it", moved["note"])
        self.assertEqual(_symbols(self.out / "libuk_tiles.a"), {symbol, vnni["symbol"]})
        self.assertEqual(self.compiled(), [f"{symbol}.cc", f"{vnni['symbol']}.cc"])
        self.assert_no_temporaries()
        size = subprocess.run(["size", "-A", self.out / "libuk_tiles.a"], capture_output=True,
                              text=True, check=True).stdout
        text = [int(line.split()[1]) for line in size.splitlines() if line.startswith(".text")]
        self.assertEqual(sum(text), plain["code_bytes"] + vnni["code_bytes"])

    def test_manifests_by_several_options(self) -> None:
        second = self.directory / "second.txt"
        second.write_text(f"{_THREE[0]}\n{_GENERATED}\n")
        rows = self.build([_GENERATED], "--manifest", str(second), "--emit", "cpp")
        self.assertEqual([(row["request"], row["count"]) for row in rows], [(_GENERATED, 2), (_THREE[0], 1)])

    def test_self_contained_has_the_hand_written_tiles(self) -> None:
        lines = [_HAND, "pack x32 8x1 t avx2_fma", "unpack x32 8x8 avx2_fma"]
        rows = self.build(lines, "--self-contained")
        self.assertEqual([row["origin"] for row in rows], ["hand"] * 3)
        self.assertEqual({row["file"] for row in rows}, {"libuk_tiles.a"})
        self.assertEqual(_symbols(self.out / "libuk_tiles.a"), {row["symbol"] for row in rows})
        self.assertTrue(all(row["code_bytes"] > 0 for row in rows))

    @unittest.skipUnless(shutil.which("ar"), "no ar")
    def test_archives_are_what_ar_writes(self) -> None:
        """With names of members that fit their headers, and such that do not; with none."""
        self.build([_GENERATED, _HAND], "--self-contained")
        tiles = sorted(self.cache.rglob("*.o"))
        short = Path(shutil.copy(tiles[0], self.directory / "fifteen_bytes.o"))
        own, expected = self.directory / "own.a", self.directory / "expected.a"
        for members in (tiles, [short], [*tiles, short], []):
            expected.unlink(missing_ok=True)
            subprocess.run(["ar", "rcsD", expected, *members], check=True)
            write_archive(own, members)
            self.assertEqual(own.read_bytes(), expected.read_bytes(), members)

    def test_without_grid_leaves_out_what_the_library_generates(self) -> None:
        of_grid = "mmt4d s16s8s32 8x16x2 sse2"
        beside = "mmt4d s16s8s32 9x16x2 sse2"
        rows = self.build([of_grid, beside])
        self.assertEqual([row["file"] for row in rows], ["libuk_tiles.a"] * 2)
        rows = self.build([of_grid, beside], "--without-grid")
        self.assertEqual([row["file"] for row in rows], [None, "libuk_tiles.a"])
        self.assertEqual(_symbols(self.out / "libuk_tiles.a"), {rows[1]["symbol"]})

    def test_the_table_of_a_library_says_what_it_generates(self) -> None:
        """More than the grid, or less."""
        of_grid, extra, neither = (f"mmt4d s16s8s32 {m0}x16x2 sse2" for m0 in (8, 9, 10))
        table = self.directory / "tiles.json"
        more = tiles_json([ARCH], [parse_line(extra).tile(ARCH)])
        symbol = parse_line(of_grid).tile(ARCH).symbol
        less = re.sub(rf'{{"symbol": "{symbol}".*?\n', "", more)
        for text, expected in ((more, [None, None, "libuk_tiles.a"]),
                               (less, ["libuk_tiles.a", None, "libuk_tiles.a"])):
            table.write_text(text)
            rows = self.build([of_grid, extra, neither], "--without-grid", "--table", str(table))
            self.assertEqual([row["file"] for row in rows], expected)
        table.write_text("{}")
        self.assert_refused(f"{table}: not a table of tiles",
                            *self.arguments([of_grid]), "--without-grid", "--table", str(table))
        self.assert_refused("--table says what --without-grid leaves out, and that is not asked for",
                            *self.arguments([of_grid]), "--table", str(table))

    def test_same_bytes_from_nothing_in_any_company(self) -> None:
        """With three neighbours more, headers are precompiled."""
        tile, *more = (f"mmt4d f32f32f32 {m0}x7x1 avx2_fma" for m0 in (1, 2, 3, 4))
        row, = self.build([tile], "--emit", "obj")
        alone = (self.out / row["file"]).read_bytes()
        shutil.rmtree(self.cache)
        self.build([*more, tile], "--emit", "obj")
        self.assertEqual((self.out / row["file"]).read_bytes(), alone)

    def test_files_no_longer_asked_for_go(self) -> None:
        self.build(_THREE, "--emit", "obj")
        self.assertEqual(len(list(self.out.glob("*.o"))), 3)
        (self.out / "mine.o").write_text("")
        self.build(_THREE[:1], "--emit", "obj")
        self.assertEqual(len(list(self.out.glob("*.o"))), 2)
        self.build(_THREE[:1], "--emit", "cpp")
        source = "uk_mmt4d_tile_f32f32f32_1x5x1_x86_64_sse2.cc"
        self.assertEqual(self.names(), ["index.json", "mine.o", source])
        self.build([_HAND])  # an archive of nothing
        self.assertEqual(self.names(), ["index.json", "libuk_tiles.a", "mine.o"])
        self.build(_THREE[:1], "--emit", "cpp")
        self.assertEqual(self.names(), ["index.json", "mine.o", source])

    def test_an_index_of_another_tool_deletes_nothing(self) -> None:
        precious = self.directory / "out" / "precious.o"
        self.out.mkdir(parents=True)
        for file in ("../precious.o", "precious.o", 5, ["precious.o"]):
            precious.touch()
            (self.out / "precious.o").touch()
            index = {"archive": None, "requests": [{"file": file}]}
            (self.out / "index.json").write_text(json.dumps(index))
            self.build([_GENERATED])
            self.assertTrue(precious.exists())
            self.assertTrue((self.out / "precious.o").exists())
        (self.out / "index.json").write_text("[" * 100_000)
        self.build([_GENERATED])

    def test_an_output_on_another_file_system(self) -> None:
        elsewhere = Path("/dev/shm")
        if not elsewhere.is_dir() or elsewhere.stat().st_dev == self.directory.stat().st_dev:
            self.skipTest("no other file system")
        with tempfile.TemporaryDirectory(dir=elsewhere) as directory:
            self.out.parent.mkdir()
            self.out.symlink_to(directory)
            self.build([_GENERATED])
            self.assertEqual(self.names(), ["index.json", "libuk_tiles.a"])

    def test_two_builds_at_once_leave_one_of_them(self) -> None:
        """What the index names is there, and nothing else."""
        manifests = []
        for type_name in ("f32f32f32", "f64f64f64"):
            lines = [f"mmt4d {type_name} {m0}x5x1 sse2" for m0 in range(1, 9)]
            manifests.append(self.directory / f"{type_name}.txt")
            manifests[-1].write_text("".join(f"{line}\n" for line in lines))
            self.build(lines, "--emit", "cpp")
        for _ in range(10):
            both = [subprocess.Popen(generator_command(
                        "build", "--manifest", str(manifest), "--arch", ARCH, "--out", str(self.out),
                        "--cache", str(self.cache), "--cc", str(self.cc), "--emit", "cpp"),
                        cwd=library.ROOT) for manifest in manifests]
            self.assertEqual([one.wait(timeout=60) for one in both], [0, 0])
            rows = json.loads((self.out / "index.json").read_text())["requests"]
            self.assertEqual(self.names(), ["index.json", *sorted(row["file"] for row in rows)])

    def test_source_needs_no_compiler(self) -> None:
        arguments = self.arguments([_GENERATED, _HAND], "--emit", "cpp", "--self-contained")
        self.cc.unlink()
        at = arguments.index("--cc")
        with mock.patch.dict(os.environ, {"CXX": str(self.cc)}):
            ran = run_generator(*arguments[:at], *arguments[at + 2:])
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        index = json.loads((self.out / "index.json").read_text())
        self.assertIsNone(index["compiler"])
        for row in index["requests"]:
            self.assertIn("-fno-ipa-icf", row["flags"])
            self.assertIn(row["symbol"], (self.out / row["file"]).read_text())
            self.assertIsNone(row["code_bytes"])

    def test_sources_have_the_flags_of_the_compiler_that_is_named(self) -> None:
        row, = self.build([_GENERATED], "--emit", "cpp")
        source = (self.out / row["file"]).read_bytes()
        self.cc.write_text("#!/bin/sh\n[ $# = 1 ] && echo clang version 1\n")
        row, = self.build([_GENERATED], "--emit", "cpp")
        self.assertIn("-fno-builtin", row["flags"])
        self.assertNotIn("-fno-ipa-icf", row["flags"])  # GCC's
        index = json.loads((self.out / "index.json").read_text())
        self.assertEqual(index["compiler"], "clang version 1")
        self.assertEqual((self.out / row["file"]).read_bytes(), source)
        self.assertEqual(len(list(self.cache.rglob("uk_*.cc"))), 1)
        self.cc.unlink()
        self.assert_refused(f"compiler '{self.cc}' not found", *self.arguments([_GENERATED], "--emit", "cpp"))

    def test_sources_compile_with_the_flags_of_the_index(self) -> None:
        first, = self.build([_ON_AVX2], "--emit", "obj")
        row, = self.build([_ON_AVX2], "--emit", "cpp")
        made = self.directory / "tile.o"
        for flags in (first["flags"], row["flags"]):
            subprocess.run([COMPILER, *flags, f"-I{library.ROOT}", "-c", self.out / row["file"], "-o", made],
                           check=True)
            self.assertEqual(_symbols(made), {row["symbol"]})
        self.assertLessEqual({"-mavx2", "-mfma", "-ffp-contract=off"}, set(row["flags"]))

    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_bitcode(self) -> None:
        row, = self.build([_GENERATED], "--emit", "bitcode", "--cc", "clang++")
        self.assertEqual((self.out / row["file"]).read_bytes()[:4], b"BC\xc0\xde")
        self.assertIsNone(row["code_bytes"])


class ProgressTest(BuildCase):
    def shown(self) -> str:
        """What a build of three files on one core writes to the terminal that its errors go to."""
        here, terminal = os.openpty()
        try:
            ran = subprocess.run(generator_command(*self.arguments(_THREE, "--jobs", "1")), cwd=library.ROOT,
                                 stderr=terminal)
            self.assertEqual(ran.returncode, 0)
            os.set_blocking(here, False)
            return os.read(here, 10_000).decode()
        except BlockingIOError:
            return ""
        finally:
            os.close(here)
            os.close(terminal)

    def test_slow_compilations_show_that_something_happens(self) -> None:
        self.cc.write_text(self.cc.read_text().replace("sleep 1", "sleep 1.4"))
        (self.directory / "slow").touch()
        shown = self.shown()
        self.assertTrue(shown.startswith("\r0 of 3 files\r"), repr(shown))
        self.assertIn("\r2 of 3 files\r", shown)
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))
        self.assertEqual(self.shown(), "")  # from the cache


class CacheTest(BuildCase):
    def test_nothing_is_compiled_twice(self) -> None:
        self.build([_GENERATED])
        first = (self.out / "libuk_tiles.a").read_bytes()
        self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])
        self.build([_GENERATED])
        self.assertEqual(self.compiled(), [])
        self.assertEqual((self.out / "libuk_tiles.a").read_bytes(), first)
        self.build([*_THREE, _GENERATED], "--emit", "obj")
        self.assertEqual(len(self.compiled()), 2)

    def test_another_compiler_is_another_entry(self) -> None:
        self.build([_GENERATED])
        self.compiled()
        self.cc.write_text(self.cc.read_text().replace("--version|-dumpmachine) ;;", "--version) echo other;;"))
        self.build([_GENERATED])
        self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])

    def test_an_edited_script_that_calls_the_compiler_is_another_one(self) -> None:
        """Its contents count, by whatever name, and not its time."""
        self.build([_GENERATED])
        self.compiled()
        link = self.directory / "link"
        link.symlink_to(self.cc)
        self.build([_GENERATED], "--cc", str(link))
        self.compiled()
        plain, time_ns = self.cc.read_text(), self.cc.stat().st_mtime_ns
        # As long as before, with a time that says nothing either.
        self.cc.write_text(plain.replace("sleep 1;", "sleep 2;"))
        os.utime(self.cc, ns=(time_ns, time_ns))
        for more in ([], ["--cc", str(link)]):
            self.build([_GENERATED], *more)
            self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])
        self.cc.write_text(plain)
        self.build([_GENERATED])
        self.assertEqual(self.compiled(), [])

    def test_a_replaced_compiler_is_another_one(self) -> None:
        """One that is large, by its time."""
        with open(self.cc, "a") as file:
            file.write("#" * 100_000)
        self.build([_GENERATED])
        self.compiled()
        self.build([_GENERATED])
        self.assertEqual(self.compiled(), [])
        os.utime(self.cc, ns=(0, 1))
        self.build([_GENERATED])
        self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])

    def test_a_failed_build_goes_on_where_it_stopped(self) -> None:
        (self.directory / "broken").write_text("2x5x1")
        self.assert_refused(r"cc failed on uk_\w+_2x5x1_\w+.cc: tile.cc:1:1: error: broken",
                            *self.arguments(_THREE, "--jobs", "1"))
        self.assertFalse(self.out.exists())
        done = set(self.compiled()) - {"uk_mmt4d_tile_f32f32f32_2x5x1_x86_64_sse2.cc"}
        self.assertTrue(done)
        (self.directory / "broken").unlink()
        self.build(_THREE)
        self.assertEqual(set(self.compiled()) & done, set())

    def test_what_is_damaged_is_made_again(self) -> None:
        """By a crash of the machine, say, which may leave an empty file, a part of one, or zeros."""
        for kind, suffix in (("archive", ".o"), ("cpp", ".cc")):
            self.build([_GENERATED], "--emit", kind)
            first = self.outputs()
            made, = self.cache.rglob(f"uk_*{suffix}")
            whole = made.read_bytes()
            for damaged in (b"", whole[:40], whole[:-1], whole[:-9] + bytes(9)):
                made.write_bytes(damaged)
                self.build([_GENERATED], "--emit", kind)
                self.assertEqual(self.outputs(), first)
                self.assertEqual(made.read_bytes(), whole)

    def test_what_a_compiler_wrote_is_checked(self) -> None:
        """By its exit status all went well."""
        good = self.cc.read_text()
        for kind, what, wrong in (
                ("archive", "64-bit ELF object of machine code", ("junk", "", r"\177ELF\002\001", "BC")),
                ("obj", "64-bit ELF object of machine code", ("junk",)),
                ("bitcode", "LLVM bitcode", ("junk", "", "BC", r"\177ELF\002\001")),
                ("inline-bitcode", "LLVM bitcode", ("junk", r"\377"))):
            for bytes_of_it in wrong:
                self.cc.write_text("#!/bin/sh\n[ $# = 1 ] && { echo clang version 1; exit; }\n"
                                   "while [ $# != 0 ]; do [ $1 = -o ] && made=$2; shift; done\n"
                                   f"printf '{bytes_of_it}' > $made\n")
                with self.subTest(kind, wrote=bytes_of_it):
                    expected = "LLVM IR" if bytes_of_it == r"\377" else f"whole {what}"
                    self.assert_refused(rf"cc wrote no {expected} for {_GENERATED_SYMBOL}.cc",
                                        *self.arguments([_GENERATED], "--emit", kind))
                    self.assertEqual(list(self.cache.rglob("uk_*")), [])
        self.cc.write_text(good)
        self.build([_GENERATED])

    def test_an_entry_that_no_compiler_wrote_is_made_again(self) -> None:
        kinds = [("archive", ".o", [])]
        if shutil.which("clang++"):
            kinds.append(("bitcode", ".bc", ["--cc", "clang++"]))
        for kind, suffix, more in kinds:
            self.build([_GENERATED], "--emit", kind, *more)
            first = self.outputs()
            made, = self.cache.rglob(f"uk_*{suffix}")
            for wrong in (b"junk", b"", made.read_bytes()[:40] if suffix == ".o" else b"BC"):
                made.write_bytes(wrong)
                Path(f"{made}.sha256").write_text(hashlib.sha256(wrong).hexdigest())
                self.build([_GENERATED], "--emit", kind, *more)
                self.assertEqual(self.outputs(), first)

    def test_what_killed_builds_left_goes_after_a_day(self) -> None:
        old, young = self.cache / ".uk-compiling-old", self.cache / ".uk-compiling-young"
        for directory in (old, young):
            directory.mkdir(parents=True)
            (directory / "tile.o").touch()
        other = self.cache / ".uk-compiling-file"
        other.touch()
        for path in (old, other):
            os.utime(path, (0, time.time() - 25 * 60 * 60))
        self.build([_GENERATED])
        self.assertEqual((old.exists(), young.exists(), other.exists()), (False, True, True))

    def test_directories_of_others_in_the_cache_stay(self) -> None:
        other = self.cache / ".partial-thesis"
        other.mkdir(parents=True)
        os.utime(other, (0, time.time() - 25 * 60 * 60))
        self.build([_GENERATED])
        self.assertTrue(other.exists())

    def test_what_a_killed_build_wrote_goes_with_the_next(self) -> None:
        """It has written some of its files, and no index that names them."""
        self.build(_THREE[:1], "--emit", "obj")
        killed = self.out / ".uk-writing-killed"
        killed.mkdir()
        written = "uk_mmt4d_tile_f32f32f32_2x5x1_x86_64_sse2.o"
        (killed / "names").write_text(f"{written}\nmine.o\n")
        for name in (written, "mine.o"):
            (self.out / name).touch()
        self.build(_THREE[:1], "--emit", "obj")
        self.assertEqual(self.names(), ["index.json", "mine.o", "uk_mmt4d_tile_f32f32f32_1x5x1_x86_64_sse2.o"])

    def test_what_is_no_file_in_the_cache(self) -> None:
        self.build([_GENERATED])
        first = self.outputs()
        made, = self.cache.rglob("uk_*.o")
        hash_file = Path(f"{made}.sha256")
        for entry in (made, hash_file):
            entry.unlink()
            entry.symlink_to(entry.name)
            self.build([_GENERATED])
            self.assertEqual(self.outputs(), first)
            self.assertFalse(entry.is_symlink())
            entry.unlink()
            entry.mkdir()
            self.assert_refused(f"{entry}: Is a directory", *self.arguments([_GENERATED]))
            entry.rmdir()
        shutil.rmtree(made.parent)
        made.parent.touch()
        self.assert_refused(f"{made.parent}: a file is where a directory should be", *self.arguments([_GENERATED]))
        made.parent.unlink()
        made.parent.symlink_to(made.parent.name)
        self.assert_refused(f"{made.parent}: (a link that leads nowhere is |Too many levels of symbolic links)",
                            *self.arguments([_GENERATED]))
        made.parent.unlink()
        self.build([_GENERATED])
        self.assertEqual(self.outputs(), first)

    def test_an_interrupted_build_goes_on_where_it_stopped(self) -> None:
        (self.directory / "slow").touch()
        # More than are begun before the last signal comes, to a busy machine too.
        lines = [f"mmt4d f32f32f32 {m0}x5x1 sse2" for m0 in range(1, 13)]
        command = generator_command(*self.arguments(lines, "--jobs", "1"))
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
            with subprocess.Popen(command, cwd=library.ROOT, stderr=subprocess.PIPE,
                                  preexec_fn=_take_signals) as running:
                while not (self.directory / "started").exists():
                    self.assertIsNone(running.poll())
                    time.sleep(0.01)
                running.send_signal(number)
                for again in (signal.SIGINT, number):  # for those who do not want to wait
                    time.sleep(0.1)
                    running.send_signal(again)
                _, errors = running.communicate(timeout=60)
            self.assertEqual((running.returncode, errors), (code, b""))
            self.assertEqual(self.outputs(), {})
            self.assert_no_temporaries()
            (self.directory / "started").unlink()
        (self.directory / "slow").unlink()
        before = self.compiled()
        self.assertGreaterEqual(len(before), 3)
        self.build(lines)
        self.assertEqual(len(before) + len(self.compiled()), len(lines))


class ErrorTest(BuildCase):
    def test_wrong_manifests(self) -> None:
        self.out.mkdir(parents=True)
        (self.out / "index.json").write_text("kept")
        for line, message in (
                ("mmt4d s8s8s16 1x1x1 avx2_fma", "unknown type 's8s8s16'"),
                ("mmt4d s8s8s32 65x1x1 avx2_fma", "M0 = 65 is out of range"),
                ("mmt4d s8s4s32 4x8x3 avx2_fma", "K0 = 3 splits a byte"),
                ("mmt4d s8s8s32 1x1x1 avx3", "unknown level 'avx3'"),
                ("pack x32 5x65 avx2_fma", "tile1 = 65 is out of range"),
                ("mmt4d s8s8s32 1x1x1", "is not a request"),
                ("mmt4d s8s8s32 1x1 avx2_fma", "'1x1' is not a shape of mmt4d"),
                ("pack x32 1x1x1 avx2_fma", "'1x1x1' is not a shape of pack"),
                ("matmul s8s8s32 1x1x1 avx2_fma", "unknown op 'matmul'"),
                ("mmt4d s8s8s32 1x1x1 avx2_fma t", "'t' is not an option of mmt4d"),
                ("pack x32 8x1 f32acc avx2_fma", "'f32acc' is not an option of pack"),
                ('{"op": "mmt4d"', "not JSON"),
                ('{"op": "mmt4d"}', "has no text 'type'"),
                ('{"op": "mmt4d", "type": 1}', "'type' must be text, such as \"s8s8s32\""),
                ('{"op": "mmt4d", "type": "s8s8s32", "shape": [9, 48, 3]}', "'shape' must be text, such as \"9x48x3\""),
                ('{"op": null}', "'op' must be text, such as"),
                ('{"op": "mmt4d", "type": "s8s8s32", "shape": "1x1x1", "level": "avx2_fma", "t": 1}',
                 "'t' is neither true nor false"),
                ('{"op": "mmt4d", "type": "s8s8s32", "shape": "1x1x1", "level": "avx2_fma", "x": false}',
                 "no member 'x'"),
                ('{"op": "mmt4d", "op": "pack"}', "has a member twice"),
                ('{"op":' * 20_000, "not JSON"),
                (r'{"op": "mmt4d", "type": "s8\ns8", "shape": "1x1x1", "level": "avx2_fma"}',
                 r"'s8\\ns8' is neither a type nor a level"),
                (r'{"op": "mmt4d", "type": "\ud800", "shape": "1x1x1", "level": "avx2_fma"}',
                 r"'\\ud800' is neither a type nor a level"),
                (r'{"op": "mmt4d", "type": "s8s8s32", "shape": "1x1x1\n", "level": "avx2_fma"}',
                 r"'1x1x1\\n' is not a shape of mmt4d"),
                ("mmt4d s8s8s32 1x1x1 sse2\fmmt4d s8s8s32 2x1x1 sse2", "is not a request")):
            with self.subTest(line):
                self.assert_refused(f"manifest.txt:2: .*{message}",
                                    *self.arguments([_GENERATED, line]))
        self.assertEqual(self.compiled(), [])

    def test_long_words_and_lines_are_shortened(self) -> None:
        long = "a" * 100_000
        fields = {"op": "mmt4d", "type": "s8s8s32", "shape": "1x1x1", "level": "avx2_fma"}
        for line in (long, f"{long} s8s8s32 1x1x1 avx2_fma", f"mmt4d {long} 1x1x1 avx2_fma",
                     f"mmt4d s8s8s32 {long} avx2_fma", f"mmt4d s8s8s32 1x1x1 {long}",
                     f"mmt4d s8s8s32 1x1x1 avx2_fma {long}", f"pack {long} 1x1 avx2_fma",
                     json.dumps({**fields, long: 1}), json.dumps({**fields, "type": long}),
                     json.dumps({**fields, "shape": long})):
            with self.subTest(line[:20]):
                self.assert_refused(rf"manifest.txt:1: [^\n]*a\.\.\.[^\n]{{0,150}}", *self.arguments([line]))
                self.assertLess(len(run_generator(*self.arguments([line])).stderr), 400)

    def test_wrong_command_lines(self) -> None:
        good = self.arguments([_GENERATED])
        nothing = str(self.directory / "nothing")
        for arguments, message in (
                ([*good, "--cc", nothing], f"compiler '{nothing}' not found"),
                ([*good, "--cc", f"'{nothing}"], f"compiler ''{nothing}' not found"),
                ([*good, "--cc", " "], "compiler ' ' not found"),
                ([*good, "--cc", f"{nothing} x"], f"compiler '{nothing} x' not found: there is no program '{nothing}'"),
                ([*good, "--cc", "false c++"], r"'false c\+\+ --version' failed: it is no compiler"),
                ([*good, "--cc", "false"], "it is no compiler"),
                ([*good, "--cc", "true"], r"/true wrote nothing for uk_\w+.cc: it is no compiler"),
                ([*good, "--emit", "bitcode", "--cc", "g++"], "bitcode needs clang"),
                ([*good, "--arch", "arm_64"], "unknown level 'sse2'; there are neon"),
                ([*good, "--manifest", nothing], f"{nothing}: No such file"),
                *(([*command, option, ""], f"argument {option}: '' names nothing") for command, options in (
                    (good, ("--out", "--cc", "--cache", "--manifest")),
                    (["link", "a.o", "--level", "sse2", "--out", nothing], ("--out", "--cc", "--cache", "--nm")),
                    (["library", "--out", nothing], ("--out", "--manifest")),
                    (["explain"], ("--manifest",)),
                    (["coverage"], ("--check", "--update"))) for option in options),
                ([*good, "--manifest", "no\nfile"], r"no\\nfile: No such file"),
                ([*good, "--cc", "no\ncc"], r"compiler 'no\\ncc' not found"),
                (["tile", "s8s8s32", "1x1x4", "sse2", "x\ny"], r"unrecognized arguments: x\\ny"),
                ([*good, "--jobs", "0"], "'0' is not a number of jobs"),
                ([*good, "--emit", "exe"], "invalid choice: 'exe'"),
                (["tile", "s8s8s16", "1x1x1", "avx2_fma"], "unknown type"),
                (["tile", "s8s8s32", "1x1", "avx2_fma"], "'1x1' is not a shape"),
                (["tile", "s8s8s32", "32x32x4", "amx_int8"], "hand-written, as all tiles of amx_int8 are"),
                ([], "arguments are required: command")):
            with self.subTest(arguments[-2:]):
                self.assert_refused(message, *arguments)

    def test_a_compiler_for_another_architecture(self) -> None:
        """Is refused before anything is compiled."""
        manifest = self.directory / "neon.txt"
        manifest.write_text("mmt4d f32f32f32 3x5x2 neon\n")
        for kind in ("archive", "obj"):
            self.assert_refused(r"/g\+\+ compiles for x86_64-[\w-]+, not arm_64; --cc names another",
                                *self.arguments([]), "--manifest", str(manifest), "--arch", "arm_64",
                                "--cc", "g++", "--emit", kind)
        self.assertFalse(self.cache.exists())

    def test_the_compiler_of_the_environment(self) -> None:
        """Is for this machine's code, and --cc goes before it."""
        names = {("x86_64", "archive"): self.cc, ("x86_64", "obj"): self.cc, ("x86_64", "bitcode"): "clang++",
                 ("x86_64", "inline-bitcode"): "clang++", ("arm_64", "archive"): "aarch64-linux-gnu-g++",
                 ("arm_64", "bitcode"): "clang++"}
        with mock.patch.dict(os.environ, {"CXX": str(self.cc)}):
            self.assertEqual({key: default_compiler(*key) for key in names},
                             {key: str(name) for key, name in names.items()})
            plain = self.arguments([_GENERATED])
            at = plain.index("--cc")
            for arguments in (plain[:at] + plain[at + 2:], [*plain, "--cc", COMPILER]):
                ran = run_generator(*arguments)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"] * ("--cc" not in arguments))
                shutil.rmtree(self.cache)
        with mock.patch.dict(os.environ, {"CXX": ""}):
            self.assertEqual(default_compiler("x86_64", "obj"), "c++")

    def test_a_compiler_with_arguments(self) -> None:
        """A program may be among them, whose path is that of where the generator runs. The arguments count in
        the cache."""
        launcher, log = self.directory / "launch er", self.directory / "launched"
        launcher.write_text(f'#!/bin/sh\necho ran >> {shlex.quote(str(log))}\nexec "$@"\n')
        launcher.chmod(0o755)
        plain = self.arguments([_GENERATED])
        at = plain.index("--cc")
        wrapped = f"{shlex.quote(str(launcher))} {os.path.relpath(self.cc, library.ROOT)}"
        for name, compiled in ((wrapped, True), (wrapped, False), (f"{wrapped} -g0", True),
                               (f"{wrapped} '-DTWO WORDS'", True), (str(launcher) + " x", None)):
            for arguments, cxx in (([*plain, "--cc", name], "none"), (plain[:at] + plain[at + 2:], name)):
                with self.subTest(name, cxx=cxx), mock.patch.dict(os.environ, {"CXX": cxx}):
                    if compiled is None:
                        self.assert_refused(f"compiler '{name}' not found: there is no program '{name[:-5]}'; ",
                                            *arguments)
                        continue
                    ran = run_generator(*arguments)
                    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                    self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"] * (compiled and cxx == "none"))
                    self.assertTrue(log.exists())
        self.cc.write_text(self.cc.read_text() + "# edited\n")
        self.build([_GENERATED], "--cc", wrapped)
        self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])

    def test_a_compiler_whose_path_has_a_space(self) -> None:
        spaced = self.directory / "c c"
        self.cc.rename(spaced)
        self.build([_GENERATED], "--cc", str(spaced))
        self.assertEqual(self.compiled(), [f"{_GENERATED_SYMBOL}.cc"])

    def test_no_home_for_the_cache(self) -> None:
        arguments = self.arguments([_GENERATED])
        at = arguments.index("--cache")
        command = [sys.executable, "-c", "import pathlib, sys\n"
                   "def no_home(): raise RuntimeError\n"
                   "pathlib.Path.home = no_home\n"
                   "from generator.cli import main\n"
                   "sys.exit(main(sys.argv[1:]))", *arguments[:at], *arguments[at + 2:]]
        environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
        ran = subprocess.run(command, cwd=library.ROOT, env=environment, text=True, capture_output=True)
        self.assertEqual((ran.returncode, ran.stderr), (
            2, "generator: there is no home directory for a cache; --cache names a place\n"))

    def test_objects_for_link_time_optimisation(self) -> None:
        if Compiler.find(COMPILER).id != "GNU":
            self.skipTest("no GCC")
        self.assert_refused("wrote no whole 64-bit ELF object of machine code",
                            *self.arguments([_GENERATED], "--cc", f"{self.cc} -flto"))

    def test_a_script_that_reads_its_input(self) -> None:
        script = self.directory / "reads"
        script.write_text(f"#!/bin/sh\ncat > /dev/null\nexec {self.cc} \"$@\"\n")
        script.chmod(0o755)
        with subprocess.Popen(generator_command(*self.arguments([_GENERATED], "--cc", str(script))),
                              cwd=library.ROOT, stdin=subprocess.PIPE) as running:
            self.assertEqual(running.wait(timeout=60), 0)  # though its own input has no end yet

    def test_a_cache_that_cannot_be_made_or_written(self) -> None:
        arguments = self.arguments([_GENERATED])
        at = arguments.index("--cache")
        for cache, named in (("/proc/none/cache", "/proc/none"), ("/proc", "/proc")):
            self.assert_refused(f"{named}: No such file or directory; --cache names another place",
                                *arguments[:at], *arguments[at + 2:], "--cache", cache)

    def test_who_reads_the_output_stops(self) -> None:
        command = generator_command("tile", "f32f32f32", "64x64x1", "avx2_fma")
        with subprocess.Popen(command, cwd=library.ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as running:
            running.stdout.close()
            self.assertEqual(running.stderr.read(), b"")
        self.assertEqual(running.returncode, 141)

    def test_a_signal_while_modules_are_imported(self) -> None:
        manifest = self.arguments([_GENERATED])[2]
        for module in ("generator.signals", "generator.cli", "argparse", "generator.build", "generator.plan"):
            for number in (signal.SIGINT, signal.SIGTERM)[:1 + (module != "generator.signals")]:
                with self.subTest(module, number=number):
                    command = [sys.executable, "-c", _SIGNALLED, str(int(number)), module,
                               "explain", "--manifest", manifest]
                    ran = subprocess.run(command, cwd=library.ROOT, text=True, capture_output=True,
                                         preexec_fn=_take_signals)
                    self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (128 + number, "", ""))

    def test_standard_files_that_are_closed(self) -> None:
        def run(closed: str, *arguments: str) -> tuple[int, str, str]:
            ran = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *generator_command(*arguments)],
                                 cwd=library.ROOT, text=True, capture_output=True)
            return ran.returncode, ran.stdout, ran.stderr

        build = self.arguments([_GENERATED])
        explain = ["explain", *build[1:3]]
        for closed in (">&-", "<&-", "2>&-", "<&- >&- 2>&-"):
            self.assertEqual(run(closed, *build), (0, "", ""))
            shutil.rmtree(self.cache)
            shutil.rmtree(self.out)
        lost = "generator: writing a file: Bad file descriptor\n"
        self.assertEqual(run(">&-", *explain), (2, "", lost))
        self.assertEqual(run(">/dev/full", *explain),
                         (2, "", "generator: writing a file: No space left on device\n"))
        self.assertEqual(run("2>&-", *explain, "nosuch.txt"), (2, "", ""))
        self.assertEqual(run("<&-", *explain)[::2], (0, ""))

    def test_an_old_python_says_so(self) -> None:
        main_file = library.ROOT / "generator" / "__main__.py"
        for path in (main_file, main_file.with_name("__init__.py")):
            ast.parse(path.read_text(), feature_version=(3, 6))
        ran = subprocess.run([sys.executable, "-c", "import runpy, sys; sys.version_info = (3, 6, 9)\n"
                              "runpy.run_module('generator', run_name='__main__')"],
                             cwd=library.ROOT, text=True, capture_output=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr),
                         (2, "", "generator: needs Python 3.11, and this is 3.6\n"))

    def test_an_output_that_cannot_be_replaced(self) -> None:
        self.build([_GENERATED])
        first = (self.out / "libuk_tiles.a").read_bytes()
        (self.out / "index.json").unlink()
        (self.out / "index.json").mkdir()
        ran = run_generator(*self.arguments(_THREE))
        self.assertEqual((ran.returncode, ran.stderr), (
            2, f"generator: {self.out / 'index.json'}: a directory is where a file should be\n"))
        self.assertEqual((self.out / "libuk_tiles.a").read_bytes(), first)

    def test_no_space_for_the_output(self) -> None:
        self.build([_GENERATED])
        shutil.rmtree(self.out)
        command = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh",
                   *generator_command(*self.arguments([_GENERATED]))]
        ran = subprocess.run(command, cwd=library.ROOT, text=True, capture_output=True)
        self.assertEqual((ran.returncode, ran.stderr),
                         (2, "generator: writing a file: File too large\n"))
        self.assertEqual(self.outputs(), {})
        self.assert_no_temporaries()

    def test_unwritable_output(self) -> None:
        self.out.parent.write_text("a file where a directory should be")
        ran = run_generator(*self.arguments([_GENERATED]))
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stderr, f"generator: {self.out.parent}: a file is where a directory should be\n")

    def test_what_is_in_the_way_of_a_directory(self) -> None:
        file, link = self.directory / "file", self.directory / "link"
        file.touch()
        link.symlink_to("nowhere")
        for option in ("--out", "--cache"):
            for place, what in ((file, "a file"), (link, "a link that leads nowhere")):
                self.assert_refused(f"{place}: {what} is where a directory should be",
                                    *self.arguments([_GENERATED]), option, str(place))

    def test_a_directory_that_cannot_be_written(self) -> None:
        """Is named, and not what was to be made there. In /proc no one makes a file, root neither."""
        for option in ("--out", "--cache"):
            ran = run_generator(*self.arguments([_GENERATED]), option, "/proc")
            self.assertEqual(ran.returncode, 2)
            self.assertRegex(ran.stderr, r"^generator: /proc: [^\n]*\n$")


if __name__ == "__main__":
    main(other_arch("x86_64"))
