"""Object files, archives and LLVM bitcode: the symbols that they leave undefined."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import BinaryIO, Iterator

from generator.build import ask
from generator.model import RequestError
from generator.objects import BITCODE_MAGICS

_LINE = re.compile(r"(?P<place>.*): (?P<symbol>.*) (?P<kind>\S) \S+ \S+$")

_LLVM_NM = re.compile(r"llvm-nm-(\d+)")

_ELF = b"\x7fELF"
_ELF_64_LITTLE = _ELF + b"\2\1"
_ELF_RELOCATABLE = b"\1\0"  # of types of files, which programs and shared objects have others of
_ELF_MACHINES = {"x86_64": b"\x3e\0", "arm_64": b"\xb7\0"}
_ARCHIVE, _THIN_ARCHIVE = b"!<arch>\n", b"!<thin>\n"


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # as for a shell, which looks for a program elsewhere
        return []


def find_llvm_nm() -> str:
    """The newest: bitcode is read by its own version and later ones."""
    found = {}
    for directory in os.get_exec_path():
        for name in _names_in(directory):
            if match := _LLVM_NM.fullmatch(name):
                found.setdefault(int(match[1]), os.path.join(directory, name))
    tool = found[max(found)] if found else shutil.which("llvm-nm")
    if not tool:
        raise RequestError("'llvm-nm' not found (Debian: llvm-19); --nm names another")
    return tool


# ---------------------------------------------------------------- architecture

def _members(file: BinaryIO) -> Iterator[bytes]:
    """The first bytes of each member of an archive, from the first member on."""
    while len(header := file.read(60)) == 60:
        size, start = int(header[48:58]), file.tell()
        yield file.read(min(size, 20))
        file.seek(start + size + size % 2)


def find_mismatches(paths: list[str], arch: str) -> list[str]:
    """A line for each input with code for another architecture, or that nothing can be linked to any more. What
    bitcode is for is not asked, nor what a thin archive names."""
    lines = []
    for path in paths:
        with open(path, "rb") as file:
            head = file.read(20)
            if head.startswith(_ARCHIVE):
                file.seek(len(_ARCHIVE))
                objects = [member for member in _members(file) if member.startswith(_ELF)]
            else:
                objects = [] if head.startswith((_THIN_ARCHIVE, *BITCODE_MAGICS)) else [head]
        if any(not o.startswith(_ELF_64_LITTLE) or o[18:20] != _ELF_MACHINES[arch] for o in objects):
            lines.append(f"{path}: it is not 64-bit ELF for {arch}")
        elif any(o[16:18] != _ELF_RELOCATABLE for o in objects):
            lines.append(f"{path}: it is no object file, but a program or a shared object")
    return lines


# ---------------------------------------------------------------- symbols

def _run_nm(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return ask([tool, *arguments])
    except OSError as error:
        raise RequestError(f"{tool}: {error.strerror}") from None


def check_llvm_nm(tool: str) -> None:
    """Others read no bitcode."""
    if "LLVM" not in _run_nm(tool, "--version").stdout:
        raise RequestError(f"{tool} is not llvm-nm; --nm names another")


def _list_symbols(paths: list[str], tool: str) -> subprocess.CompletedProcess[str]:
    with tempfile.NamedTemporaryFile(prefix="link-inputs-", suffix=".txt") as names:
        # There may be more than fit a command line.
        for path in map(os.fsencode, paths):
            names.write(b'"%b"\n' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"'))
        names.flush()
        return _run_nm(tool, "--extern-only", "--print-file-name", "--format=posix", f"@{names.name}")


def _complaint(paths: list[str], tool: str, ran: subprocess.CompletedProcess[str]) -> str:
    """A line with the input that cannot be read."""
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line), "".join(lines[:1]))
    reason = re.sub(r"^\S+: (error: )?", "", first) or f"{tool} failed"
    if ran.returncode < 0:
        reason = f"{tool} crashes on it, by signal {-ran.returncode}"
    elif any(path in reason for path in paths):
        return reason
    if len(paths) == 1:
        return f"{paths[0]}: {reason}"
    alone = ((path, _list_symbols([path], tool)) for path in paths)
    return next((_complaint([path], tool, ran) for path, ran in alone if ran.returncode), reason)


def read_undefined(paths: list[str], tool: str) -> dict[str, str]:
    """Symbols that no input defines, and where each is called first."""
    ran = _list_symbols(paths, tool)
    if ran.returncode:
        raise RequestError(_complaint(paths, tool, ran))
    undefined: dict[str, str] = {}
    defined = set()
    for line in filter(None, ran.stdout.split("\n")):
        match = _LINE.match(line)
        if not match:
            raise RequestError(f"{tool} printed '{line}', which cannot be read")
        if match["symbol"] == "__gnu_lto_slim":
            raise RequestError(f"{match['place']}: GCC's -flto left no code in it, only what GCC itself "
                               "reads; -ffat-lto-objects keeps the code")
        if match["kind"] == "U":
            undefined.setdefault(match["symbol"], match["place"])
        elif match["kind"] not in "wv":
            defined.add(match["symbol"])
    return {symbol: place for symbol, place in undefined.items() if symbol not in defined}
