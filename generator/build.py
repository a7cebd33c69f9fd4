"""Generates, compiles, caches and archives tiles."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Callable, Iterator

from generator import library
from generator.copy_tile import CopyTile, emit_copies
from generator.inline_ir import for_inlining
from generator.library import AnyTile, HandRow
from generator.model import RequestError, Tile
from generator.objects import is_compiled, read_object, write_archive
from generator.requests import Answer, Asked, Request

ARCHIVE = "libuk_tiles.a"
INDEX = "index.json"
SUFFIX = {"cpp": ".cc", "obj": ".o", "archive": ".o", "bitcode": ".bc", "inline-bitcode": ".bc"}


def is_bitcode(kind: str) -> bool:
    return SUFFIX[kind] == ".bc"


# ---------------------------------------------------------------- source

def load_emit() -> ModuleType:
    """generator.emit, whose Jinja2 takes longer than all else where everything is cached."""
    try:
        from generator import emit
    except ImportError as error:
        raise RequestError(f"the generator needs Jinja2 (Debian: python3-jinja2): {error}") from None
    return emit


# The hand-written file with its rows left out, and then the one row.
_HAND_SOURCE = """\
// {symbol}, hand-written.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/tile.h"
#pragma push_macro("{define}")
#undef {define}
#define {define} UK_IGNORE_ROW
#include "arch/{tile.arch}/{tile.isa}/{op}.cc"
#pragma pop_macro("{define}")
{define}({columns})
"""


def source(answer: Answer) -> str:
    how = answer.how
    if isinstance(how, HandRow):
        return _HAND_SOURCE.format(
            symbol=how.tile.symbol, tile=how.tile, columns=", ".join(how.columns),
            op="mmt4d" if isinstance(how.tile, Tile) else how.tile.op,
            define=how.macro.replace("UK_", "UK_DEFINE_"))
    if isinstance(answer.tile, CopyTile):
        return emit_copies([answer.tile])
    from generator.plan import make_plan
    return load_emit().emit([make_plan(answer.tile, how)])


@cache
def sources_hash(arch: str) -> bytes:
    """Of everything that decides what a tile's source is and means."""
    root = library.ROOT
    files = [*(p for p in (root / "generator").rglob("*") if p.suffix in (".py", ".j2", ".h", ".cc")),
             *(root / "arch").glob("*.h"),
             *(p for p in (root / "arch" / arch).rglob("*") if p.suffix in (".h", ".cc", ".inc")),
             *(p for p in (root / "ukernel").iterdir() if p.suffix in (".h", ".inc"))]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


# ---------------------------------------------------------------- compiler

_TRIPLES = {"x86_64": "x86_64-linux-gnu", "arm_64": "aarch64-linux-gnu"}


def _is_for(machine: str, arch: str) -> bool:
    """`machine` may have more behind the architecture, as triples do."""
    return machine.partition("-")[0] == _TRIPLES[arch].partition("-")[0]


def default_compiler(arch: str, kind: str) -> str:
    """$CXX is the user's for programs of this machine, and may be a GCC, which writes no bitcode."""
    if is_bitcode(kind):
        return "clang++"
    if _is_for(os.uname().machine, arch):
        return os.environ.get("CXX") or "c++"
    return f"{_TRIPLES[arch]}-g++"


def _flags(arch: str, level: str, compiler_id: str) -> list[str]:
    return ["-std=c++17", "-O3", *library.compiler_flags(arch, level, compiler_id)]


_SCRIPT_BYTES = 64 << 10  # as large as scripts that call a compiler become


def _identity(path: str) -> str:
    """What changes with the program. A script's contents, as it may be checked out anew by every job that
    shares a cache; of a compiler itself what is found without reading it."""
    found = os.stat(path)
    if found.st_size > _SCRIPT_BYTES:
        return f"{found.st_size} {found.st_mtime_ns}"
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _words(name: str) -> list[str]:
    try:
        return shlex.split(name)
    except ValueError:  # an open quote
        return []


def ask(command: list[str], directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a tool says. A script may read its standard input, which is for others."""
    return subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace")


@dataclass(frozen=True)
class Compiler:
    command: tuple[str, ...]  # the program, and arguments in front of all others
    version: str  # all that --version prints
    identity: tuple[str, ...]  # of the files: --version of a script that adds options is that of the compiler

    @staticmethod
    def find(name: str) -> Compiler:
        words = [name] if shutil.which(name) else _words(name)
        # Of the words behind the first some may be programs, as of 'ccache clang++'.
        paths = [shutil.which(word) for word in words]
        if not words or not paths[0]:
            first = f": there is no program '{words[0]}'" if len(words) > 1 else ""
            raise RequestError(f"compiler '{name}' not found{first}; --cc names another")
        command = [os.path.abspath(paths[0]),
                   *(os.path.abspath(path) if path and "/" in word else word
                     for word, path in zip(words[1:], paths[1:]))]  # it runs elsewhere
        asked = ask([*command, "--version"])
        if asked.returncode:
            raise RequestError(f"'{name} --version' failed: it is no compiler")
        return Compiler(tuple(command), asked.stdout, tuple(map(_identity, filter(None, paths))))

    @property
    def name(self) -> str:
        return " ".join(self.command)

    @cached_property
    def id(self) -> str:
        return "Clang" if "clang version" in self.version else "GNU"

    def target_flags(self, arch: str) -> list[str]:
        """GCC compiles for one architecture, Clang for any."""
        target = re.search(r"^Target: (\S+)", self.version, re.MULTILINE)
        if self.id != "Clang" or not target or _is_for(target[1], arch):
            return []
        # Freestanding: tiles need no header of the target's C library, which may not be here.
        return [f"--target={_TRIPLES[arch]}", "-ffreestanding"]

    def check_target(self, arch: str) -> None:
        """What a GCC for another architecture says of the flags is hard to understand."""
        if self.id == "Clang":
            return
        asked = ask([*self.command, "-dumpmachine"])
        machine = asked.stdout.strip()
        if not asked.returncode and re.fullmatch(r"\w+(-\w+)+", machine) and not _is_for(machine, arch):
            raise RequestError(f"{self.name} compiles for {machine}, not {arch}; --cc names another")

    @cache
    def flags(self, arch: str, level: str, kind: str) -> list[str]:
        return [*self.target_flags(arch), *_flags(arch, level, self.id),
                *(["-emit-llvm"] if is_bitcode(kind) else [])]

    def run(self, what: str, directory: Path, arguments: list[str]) -> None:
        """With -o among the arguments."""
        ran = ask([*self.command, *arguments], directory)
        if ran.returncode:
            lines = ran.stderr.splitlines()
            first = next((line for line in lines if "error" in line), "".join(lines[:1]))
            raise RequestError(f"{self.name} failed on {what}: {first or f'exit {ran.returncode}'}")
        if not (directory / arguments[arguments.index("-o") + 1]).exists():
            raise RequestError(f"{self.name} wrote nothing for {what}: it is no compiler")


# ---------------------------------------------------------------- progress

class Progress:
    """A line on the terminal for work that takes longer than a second."""

    SECONDS = 1.0  # from one text to the next

    def __init__(self, total: int) -> None:
        self.total = total
        self.shown = False

    def show(self, done: int) -> None:
        if sys.stderr.isatty():
            self.shown = True
            print(f"\r{done} of {self.total} files", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- build

@dataclass(frozen=True)
class Options:
    arch: str
    out: Path
    cache: Path
    jobs: int
    cc: str | None  # None: sources for whichever compiler
    kind: str  # a key of SUFFIX
    self_contained: bool
    without_grid: bool
    table: Path | None = None  # of the library whose tiles are left out, unless it is the default build's


@dataclass(frozen=True)
class Unit:
    """A source file and what it becomes: <name>.o. With the generator's sources, which have to be the
    same, the name tells the contents."""

    name: str
    level: str  # whose compiler flags it gets
    source: Callable[[], str]
    has_intrinsics: bool = True
    flags: tuple[str, ...] = ()  # behind those of the level


def tile_unit(answer: Answer) -> Unit:
    return Unit(answer.tile.symbol, answer.tile.isa, partial(source, answer))


# A precompiled header takes as long as two or three tiles save with it.
_PRECOMPILE_FROM = 4


# Directories of files that are not finished, in a cache and in an output.
_COMPILING, _WRITING = ".uk-compiling-", ".uk-writing-"
_NAMES = "names"  # in one of an output: those of the files that leave it for there
_LEFT_AFTER = 24 * 60 * 60  # seconds
_ANOTHER_CACHE = "; --cache names another place"


def _remove_left_behind(cache: Path) -> None:
    """What builds that were killed had begun; no compilation takes so long."""
    for path in cache.glob(f"{_COMPILING}*"):
        try:
            if path.stat().st_mtime < time.time() - _LEFT_AFTER:
                shutil.rmtree(path)
        except OSError:  # another build removes it, or it is none of ours
            pass


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # the path, or one above it
        what = "a link that leads nowhere" if os.path.islink(error.filename) else "a file"
        raise RequestError(f"{error.filename}: {what} is where a directory should be") from None


@contextmanager
def _unfinished(directory: Path, prefix: str, advice: str = "") -> Iterator[Path]:
    """For files on their way into the directory, and in it, as what is beside it may be another file system,
    or not ours to write."""
    try:
        made = tempfile.TemporaryDirectory(dir=directory, prefix=prefix)
    except OSError as error:
        raise RequestError(f"{directory}: {error.strerror}{advice}") from None  # a name that who runs this knows
    with made as name:
        yield Path(name)


def _header(level: str) -> str:
    return f"{level}.h"


def _hash_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _hash_of(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).hexdigest().encode()


class Build:
    """Puts what is missing into the cache. An entry is <cache>/<key>/<symbol>.o, where the key stands
    for all that the tiles of a level have in common, and beside it the hash of its contents: what a
    crash of the machine or a full disk left of one is made again, and so is whatever else is in its place."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.compiler = Compiler.find(options.cc) if options.cc else None
        self._compiles = options.kind != "cpp"  # of sources a compiler has flags alone
        if is_bitcode(options.kind) and self.compiler.id != "Clang":
            raise RequestError(f"bitcode needs clang, and '{options.cc}' is not; --cc names another")

    @cache
    def _key(self, level: str) -> str:
        digest = hashlib.sha256(sources_hash(self.options.arch))
        digest.update(b"obj" if self.options.kind == "archive" else self.options.kind.encode())
        if self._compiles:
            compiler = self.compiler
            flags = compiler.flags(self.options.arch, level, self.options.kind)
            digest.update(repr((compiler.command, compiler.version, compiler.identity, flags)).encode())
        return digest.hexdigest()[:32]

    @cache
    def cached(self, unit: Unit) -> Path:
        return self.options.cache / self._key(unit.level) / (unit.name + SUFFIX[self.options.kind])

    def _is_made(self, unit: Unit) -> bool:
        made = self.cached(unit)
        try:
            return _hash_file(made).read_bytes() == _hash_of(made) and is_compiled(made)
        except OSError:  # it is not there, or no file
            return False

    def make(self, units: list[Unit]) -> None:
        missing = [unit for unit in units if not self._is_made(unit)]
        if not missing:
            return
        if self._compiles:
            self.compiler.check_target(self.options.arch)
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
        try:
            _make_directory(self.options.cache)
        except OSError as error:
            raise RequestError(f"{error.filename}: {error.strerror}{_ANOTHER_CACHE}") from None
        _remove_left_behind(self.options.cache)
        progress = Progress(len(missing))
        with _unfinished(self.options.cache, _COMPILING, _ANOTHER_CACHE) as scratch:
            pool = ThreadPoolExecutor(self.options.jobs)
            try:
                headers = {level: pool.submit(self._precompile, scratch, level).result
                           for level in self._levels_to_precompile(missing)}
                # Those that wait for no header go first.
                missing.sort(key=lambda unit: unit.has_intrinsics)
                made = [pool.submit(self._make_one, scratch, unit, headers.get(unit.level))
                        for unit in missing]
                pending = set(made)
                while pending:
                    done, pending = wait(pending, progress.SECONDS, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    if pending:
                        progress.show(len(made) - len(pending))
            finally:
                pool.shutdown(cancel_futures=True)
                progress.close()

    def _levels_to_precompile(self, missing: list[Unit]) -> list[str]:
        if not self._compiles:
            return []
        of_level = [unit.level for unit in missing if unit.has_intrinsics]
        return sorted({level for level in of_level if of_level.count(level) >= _PRECOMPILE_FROM})

    def _precompile(self, scratch: Path, level: str) -> None:
        """Most of a tile's compile time is <immintrin.h>. GCC and Clang both look for <header>.gch
        where -include names <header>."""
        header = scratch / _header(level)
        header.write_text(f'#include "arch/{self.options.arch}/mmt4d_tile.h"\n')
        self._compile(scratch, level, header.name, f"{header.name}.gch", ["-x", "c++-header"], "obj")

    def _make_one(self, scratch: Path, unit: Unit, wait_for_header: Callable[[], None] | None) -> None:
        cached = self.cached(unit)
        text = scratch / f"{unit.name}.cc"
        text.write_text(unit.source(), encoding="utf-8")
        made = text
        if self._compiles:
            made = scratch / cached.name
            extra = list(unit.flags)
            if unit.has_intrinsics and wait_for_header:
                wait_for_header()  # its compiler was started before that of any unit
                extra += ["-include", _header(unit.level)]
            if self.options.kind == "inline-bitcode":
                self._compile_for_inlining(scratch, unit.level, text, made.name, extra)
            else:
                self._compile(scratch, unit.level, text.name, made.name, ["-c", *extra],
                              self.options.kind)
            if not is_compiled(made):
                what = "LLVM bitcode" if is_bitcode(self.options.kind) else "64-bit ELF object of machine code"
                raise RequestError(f"{self.compiler.name} wrote no whole {what} for {text.name}")
        _make_directory(cached.parent)
        hash_file = _hash_file(made)
        hash_file.write_bytes(_hash_of(made))
        os.replace(made, cached)
        os.replace(hash_file, _hash_file(cached))

    def _compile_for_inlining(self, scratch: Path, level: str, text: Path, made: str,
                              extra: list[str]) -> None:
        ir = text.with_suffix(".ll")
        self._compile(scratch, level, text.name, ir.name, ["-S", *extra], "bitcode")
        try:
            ir.write_text(for_inlining(ir.read_text(encoding="utf-8")), encoding="utf-8")
        except UnicodeDecodeError:
            raise RequestError(f"{self.compiler.name} wrote no LLVM IR for {text.name}") from None
        self.compiler.run(ir.name, scratch, ["-emit-llvm", "-Xclang", "-disable-llvm-passes",
                                             *self.compiler.target_flags(self.options.arch),
                                             "-c", ir.name, "-o", made])

    def _compile(self, scratch: Path, level: str, text: str, made: str, extra: list[str],
                 kind: str) -> None:
        # Bare names, so that no path of this machine gets into the object.
        flags = self.compiler.flags(self.options.arch, level, kind)
        self.compiler.run(text, scratch, [*flags, f"-I{library.ROOT}", *extra, text, "-o", made])


# ---------------------------------------------------------------- what is written

def layout(t: AnyTile) -> dict:
    """The operands as they lie in memory, innermost dimension last."""
    if isinstance(t, Tile):
        return {"lhs": {"type": t.type.lhs, "shape": ["k1", t.m0, t.k0]},
                "rhs": {"type": t.type.rhs, "shape": ["k1", t.n0, t.k0]},
                "out": {"type": t.type.out, "shape": [t.m0, t.n0]}}
    matrix = [t.tile1, t.tile0] if t.transposed else [t.tile0, t.tile1]
    return {"tile": {"type": t.width, "shape": [t.tile0, t.tile1]},
            "matrix": {"type": t.width, "shape": matrix}}


def make_index(options: Options, compiler: Compiler | None, asked: dict[Request, Asked],
               answers: dict[Request, Answer], files: dict[str, Path], archive: str) -> dict:
    code_bytes = {symbol: read_object(path).code_bytes if path.suffix == ".o" else None
                  for symbol, path in files.items()}
    rows = []
    for request, answer in answers.items():
        symbol = answer.tile.symbol
        file = None  # it is in the library
        if symbol in files:
            file = archive if options.kind == "archive" else files[symbol].name
        level = answer.tile.isa
        features = library.levels(options.arch)[level].features
        flags = (compiler.flags(options.arch, level, options.kind) if compiler else
                 _flags(options.arch, level, "GNU"))
        rows.append({
            "request": request.text, "count": asked[request].count,
            "requested_symbol": answer.asked.symbol, "symbol": symbol, "note": answer.note,
            "origin": answer.origin, "file": file, "features": sorted(features),
            "numerics": answer.how.numerics, "layout": layout(answer.tile),
            "flags": flags, "code_bytes": code_bytes.get(symbol)})
    return {"arch": options.arch, "emit": options.kind,
            "archive": archive if options.kind == "archive" else None,
            "compiler": compiler and compiler.version.partition("\n")[0], "requests": rows}


def _index_text(index: dict) -> str:
    """JSON with a line per row of its lists."""
    members = [f"{json.dumps(name)}: " + (json.dumps(value) if not isinstance(value, list) else
                                          "[\n" + ",\n".join(map(json.dumps, value)) + "\n]")
               for name, value in index.items()]
    return f"{{{', '.join(members)}}}\n"


# An index that is not ours must not have anything deleted but what we could have written.
_OWN_FILE = re.compile(r"(lib)?uk_\w+\.(a|bc|cc|o)", re.ASCII)


def _old_files(out: Path) -> set[str]:
    """What an earlier build left in `out`, by its index."""
    try:
        index = json.loads((out / INDEX).read_text())
        names = [index.get("archive"), *(row["file"] for row in index["requests"])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()
    return {name for name in names if isinstance(name, str) and _OWN_FILE.fullmatch(name)}


def _names_in(left: Path) -> set[str]:
    """Of a build that was killed while it wrote: what may be in its output already, and in no index."""
    try:
        names = (left / _NAMES).read_text().splitlines()
    except (OSError, ValueError):  # it was not that far
        return set()
    return {name for name in names if _OWN_FILE.fullmatch(name)}


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Two builds with one output: the second replaces all of what the first wrote."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def symbols_of_library(arch: str, table: Path | None) -> set[str]:
    """Of what the library's own build generates, and with a table also of what is there by hand."""
    if table:
        from generator.tiles_json import read_rows
        rows = read_rows(table, arch)
    else:
        from generator.tiles import generated_rows
        rows = generated_rows(arch)
    return {row.tile.symbol for row in rows}


def tiles_to_make(options: Options, answers: dict[Request, Answer]) -> dict[str, Answer]:
    """By symbol, what the output is to have."""
    wanted = {a.tile.symbol: a for a in sorted(answers.values(), key=lambda a: a.tile.symbol)
              if options.self_contained or a.origin == "generated"}
    if options.without_grid:
        for symbol in symbols_of_library(options.arch, options.table):
            wanted.pop(symbol, None)
    return wanted


def write_output(options: Options, files: list[Path], index: dict, archive: str) -> None:
    """The files, or an archive of them, and the index."""
    out = options.out
    _make_directory(out.parent)  # names the file that is in its way
    _make_directory(out)
    with _one_at_a_time(out), _unfinished(out, _WRITING) as ready:
        killed = [path for path in out.glob(f"{_WRITING}*") if path != ready]
        if options.kind == "archive":
            write_archive(ready / archive, files)
        else:
            for path in files:
                shutil.copyfile(path, ready / path.name)
        names = [path.name for path in ready.iterdir()]
        (ready / INDEX).write_text(_index_text(index))
        (ready / _NAMES).write_text("\n".join(names))
        stale = _old_files(out).union(*map(_names_in, killed)) - set(names)
        for name in [*names, INDEX, *stale]:  # before the first is replaced
            if (out / name).is_dir():
                raise RequestError(f"{out / name}: a directory is where a file should be")
        for name in [*names, INDEX]:  # the index last: what it names is there
            os.replace(ready / name, out / name)
        for name in stale:
            (out / name).unlink(missing_ok=True)
        for path in killed:
            shutil.rmtree(path, ignore_errors=True)


def build(options: Options, asked: dict[Request, Asked], answers: dict[Request, Answer]) -> dict:
    """Writes the output directory and returns the index."""
    units = {symbol: tile_unit(a) for symbol, a in tiles_to_make(options, answers).items()}
    work = Build(options)
    work.make(list(units.values()))
    files = {symbol: work.cached(unit) for symbol, unit in units.items()}
    index = make_index(options, work.compiler, asked, answers, files, ARCHIVE)
    write_output(options, list(files.values()), index, ARCHIVE)
    return index
