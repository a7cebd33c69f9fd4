"""The command line: python3 -m generator."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from pathlib import Path
from typing import NoReturn

from generator import library, signals
from generator.build import (INDEX, SUFFIX, Options, build, default_compiler, load_emit, source,
                             symbols_of_library)
from generator.isas import primitives
from generator.library import HandRow
from generator.model import ARCHS, RequestError, Tile
from generator.requests import (Answer, Asked, Request, find_answer, make_request, parse_line,
                                read_manifests)
from generator.select import choose_primitive

EXIT_ERROR = 2


def _one_line(message: str) -> str:
    """Names of files and compilers may have several."""
    return message.replace("\n", "\\n")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, without the usage."""
        self.exit(EXIT_ERROR, f"{self.prog}: {_one_line(message)}; --help lists the options\n")


def _input(text: str) -> str:
    """No option of the tool that reads it."""
    return f"./{text}" if text.startswith("-") else text


def _jobs(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{library.quoted(text)} is not a number of jobs")
    return int(text)


def _default_jobs() -> int:
    """Where Python knows of no affinity, there is none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _default_cache() -> Path:
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise RequestError("there is no home directory for a cache; --cache names a place") from None
    return Path(home) / "ukernel-tiles"


def _parser(command: str) -> argparse.ArgumentParser:
    parser = _Parser(prog="generator", description="Tile functions on request.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    arch = {"default": "x86_64", "choices": ARCHS}
    manifest = {"nargs": "+", "action": "extend", "required": True, "type": library.named, "metavar": "FILE",
                "help": "requests, one a line: 'mmt4d s8s8s32 12x32x4 avx512_vnni [f32acc]', "
                        "'pack x32 8x1 [t] avx2_fma', '# comment', or JSON objects, alone on a line, with the members "
                        "op, type, shape, level, f32acc, t"}

    tile = _add_described(commands, "tile", "print the C++ source of an mmt4d tile; build --emit cpp writes those of "
                                            "pack and unpack tiles, too")
    tile.add_argument("type", help="s8s4s32")
    tile.add_argument("shape", help="M0xN0xK0")
    tile.add_argument("level", help="avx512_vnni")
    tile.add_argument("--f32acc", action="store_true",
                      help="accumulate a 16-bit output in f32 and round once")
    tile.add_argument("--arch", **arch)
    tile.set_defaults(run=_tile)

    make = commands.add_parser("build", help="build the tiles that manifests ask for")
    make.add_argument("--manifest", **manifest)
    make.add_argument("--arch", **arch)
    make.add_argument("--out", required=True, type=library.named_path, metavar="DIR",
                      help=f"gets the tiles and {INDEX}")
    _add_compiler_arguments(make)
    make.add_argument("--emit", choices=list(SUFFIX), default="archive", dest="kind",
                      help="what to write for the tiles; archive by default. A compiler calls the "
                           "functions of bitcode, and inlines those of inline-bitcode into callers of "
                           f"the same target. Sources (cpp) need no compiler: {INDEX} has the flags of the one "
                           "that --cc names, or of GCC")
    beside = make.add_mutually_exclusive_group()
    beside.add_argument("--self-contained", action="store_true",
                        help="build also what the library has by hand")
    beside.add_argument("--without-grid", action="store_true",
                        help="leave out also what the library's own build generates: for programs that "
                             "link all of that library, and would have these tiles twice")
    _add_table_argument(make, "--without-grid")
    make.set_defaults(run=_build)

    link = commands.add_parser(
        "link", help="build an archive of the functions that compiled modules call: linalg.mmt4d on "
                     "memrefs, as MLIR lowers it to calls, pack and unpack, tile functions")
    link.add_argument("inputs", nargs="+", type=_input, metavar="INPUT",
                      help="object files, static archives, LLVM bitcode; of MLIR text (.mlir) the tiles "
                           "that linalg.mmt4d, pack and unpack ask for")
    link.add_argument("--level", required=True, action="append",
                      help="what the CPUs that will run it have: avx512_vnni; once more, or behind a +, for a "
                           "level beside")
    link.add_argument("--arch", **arch)
    link.add_argument("--out", required=True, type=library.named_path, metavar="DIR",
                      help=f"gets libuk_link.a and {INDEX}")
    _add_compiler_arguments(link)
    link.add_argument("--nm", type=library.named, metavar="NM", help="llvm-nm; by default the newest on the PATH")
    link.add_argument("--beside-library", action="store_true",
                      help="leave out the tiles of the library's own build: for programs that link all of "
                           "that library, and would have these tiles twice")
    _add_table_argument(link, "--beside-library")
    link.set_defaults(run=_link)

    sources = commands.add_parser(
        "library", help="write the sources that the library's own build compiles beside the "
                        "hand-written ones: the grid of generator/tiles.py, and these requests")
    sources.add_argument("--manifest", action="append", default=[], type=library.named, metavar="FILE",
                         help="requests, one a line")
    sources.add_argument("--tile", action="append", default=[], metavar="REQUEST",
                         help="a request, as in a manifest")
    sources.add_argument("--arch", **arch)
    sources.add_argument("--out", required=True, type=library.named_path, metavar="DIR",
                         help="gets them, and loses what an earlier run wrote there; other files are kept")
    sources.set_defaults(run=_library)

    explain = _add_described(commands, "explain", "say what each request gets, and why; the exit code is 0 where "
                                                  "requests are refused, too")
    explain.add_argument("--manifest", **manifest)
    explain.add_argument("--arch", **arch)
    explain.add_argument("--table", type=library.named_path, metavar="FILE",
                         help="tiles.json of the library, where its build was given other tiles")
    explain.set_defaults(run=_explain)

    if command not in ("build", "link"):  # a cached one has no time to import what it does not use
        from generator.coverage import add_coverage_parser
        from generator.query import add_query_parser
        from generator.tiles_json import add_table_parser
        add_query_parser(commands, arch)
        add_coverage_parser(commands, arch)
        add_table_parser(commands)
    return parser


def _add_described(commands: argparse._SubParsersAction, name: str, says: str) -> argparse.ArgumentParser:
    """A command whose own help says the same as the list of commands."""
    return commands.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")


def _add_compiler_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=_jobs, default=_default_jobs(), metavar="N",
                        help="compilers at a time; as many as CPUs by default")
    parser.add_argument("--cc", type=library.named, metavar="CC",
                        help="compiler, also with arguments: 'ccache clang++'; by default $CXX or c++, for the "
                             "other architecture its GCC, aarch64-linux-gnu-g++, and for bitcode clang++")
    parser.add_argument("--cache", type=library.named_path, metavar="DIR",
                        help="what was built is kept here; by default ~/.cache/ukernel-tiles")


def _add_table_argument(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument("--table", type=library.named_path, metavar="FILE",
                        help=f"with {option}: tiles.json of that library, where its build was given other tiles")
    parser.set_defaults(option_of_table=option)


def _options(arguments: argparse.Namespace, kind: str, self_contained: bool, without_grid: bool
             ) -> Options:
    if arguments.table and not without_grid:
        raise RequestError(f"--table says what {arguments.option_of_table} leaves out, and that is not asked for")
    cc = arguments.cc or (None if kind == "cpp" else default_compiler(arguments.arch, kind))
    return Options(arguments.arch, arguments.out.absolute(),
                   (arguments.cache or _default_cache()).absolute(), arguments.jobs, cc, kind,
                   self_contained, without_grid, arguments.table)


def _answers(asked: dict[Request, Asked], arch: str) -> dict[Request, Answer]:
    answers = {}
    for request, where in asked.items():
        try:
            answers[request] = find_answer(request.tile(arch))
        except RequestError as error:
            raise RequestError(f"{where.place}: {error}") from None
    return answers


def _tile(arguments: argparse.Namespace) -> None:
    request = make_request("mmt4d", arguments.type, arguments.shape, arguments.level,
                           ["f32acc"] * arguments.f32acc)
    answer = find_answer(request.tile(arguments.arch))
    if answer.note:
        print(answer.note, file=sys.stderr)
    if isinstance(answer.how, HandRow):
        tile = answer.tile
        assert isinstance(tile, Tile)
        if not primitives(tile.arch)[tile.isa]:
            raise RequestError(f"{tile.symbol} is in the library, hand-written, as all tiles of {tile.isa} are: "
                               f"see arch/{tile.arch}/{tile.isa}")
        print(f"{tile.symbol} is in the library, hand-written; this is the generated one", file=sys.stderr)
        answer = Answer(answer.asked, tile, choose_primitive(tile))
    print(source(answer), end="")


def _build(arguments: argparse.Namespace) -> None:
    signals.unwind()
    asked = read_manifests(arguments.manifest)
    answers = _answers(asked, arguments.arch)
    build(_options(arguments, arguments.kind, arguments.self_contained, arguments.without_grid), asked,
          answers)


def _link(arguments: argparse.Namespace) -> int:
    signals.unwind()
    from generator.link import run_link  # the other commands have no use for it
    beside = arguments.beside_library
    return run_link(arguments, _options(arguments, "archive", not beside, beside))


def _library(arguments: argparse.Namespace) -> None:
    extra = []
    for text in arguments.tile:
        try:
            request = parse_line(text)
            if not request:
                raise RequestError("it is not a request")
            extra.append(find_answer(request.tile(arguments.arch)))
        except RequestError as error:
            raise RequestError(f"{library.quoted(text)}: {error}") from None
    asked = read_manifests(arguments.manifest)
    extra += _answers(asked, arguments.arch).values()
    load_emit()  # says so where Jinja2 is missing
    from generator.library_build import write_library_sources
    write_library_sources(arguments.arch, [answer.tile for answer in extra], arguments.out.absolute())
    for answer in extra:
        if answer.note:
            print(f"{answer.asked.symbol}: {answer.note}", file=sys.stderr)


def _explanation(request: Request, asked: Asked, arch: str, of_library: set[str]) -> str:
    try:
        answer = find_answer(request.tile(arch))
    except RequestError as error:
        more = f" and {asked.count - 1} more" if asked.count > 1 else ""
        return f"refused    {request.text}: {error} ({asked.place}{more})"
    notes = [answer.note] if answer.note else []
    if answer.origin == "generated":
        is_there = answer.tile.symbol in of_library
        notes.append("in the library" if is_there else "not in the library: build makes it")
        if isinstance(answer.tile, Tile):
            from generator.plan import make_plan
            notes.append(make_plan(answer.tile, answer.how).describe())
    return f"{answer.origin:10} {request.text}: {'; '.join([answer.tile.symbol, *notes])}"


def _explain(arguments: argparse.Namespace) -> None:
    of_library = symbols_of_library(arguments.arch, arguments.table)
    for request, asked in read_manifests(arguments.manifest).items():
        print(_explanation(request, asked, arguments.arch, of_library))


def _flush_output() -> None:
    """As far as it can be written: Python would complain of the rest at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: list[str]) -> int:
    sys.stdout.reconfigure(errors="surrogateescape")  # names of files are any bytes
    try:
        arguments = _parser("".join(argv[:1])).parse_args(argv)
        status = arguments.run(arguments) or 0
        sys.stdout.flush()
        return status
    except RequestError as error:
        print(_one_line(f"generator: {error}"), file=sys.stderr)
        return EXIT_ERROR
    except BrokenPipeError:  # who reads the output has seen enough
        _flush_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        _flush_output()
        # Of two files the second is the one to write; the other is a temporary.
        names = (name for name in (error.filename2, error.filename) if name is not None)
        name = next(names, "writing a file") or "''"
        print(_one_line(f"generator: {name}: {error.strerror}"), file=sys.stderr)
        return EXIT_ERROR
