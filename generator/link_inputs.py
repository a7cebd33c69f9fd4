"""The symbols that object files, archives and LLVM bitcode leave undefined."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from generator.model import RequestError

_LINE = re.compile(r"(?P<place>.*): (?P<symbol>\S+) (?P<kind>\S) \S+ \S+$")


def find_llvm_nm() -> str:
    """The newest: bitcode is read by its own version and later ones."""
    found = {}
    for directory in os.get_exec_path():
        for path in Path(directory).glob("llvm-nm-*"):
            if match := re.fullmatch(r"llvm-nm-(\d+)", path.name):
                found.setdefault(int(match[1]), str(path))
    tool = found[max(found)] if found else shutil.which("llvm-nm")
    if not tool:
        raise RequestError("'llvm-nm' not found (Debian: llvm-19); --nm names another")
    return tool


def read_undefined(paths: list[str], tool: str) -> dict[str, str]:
    """Symbols that no input defines, and where each is called first."""
    with tempfile.NamedTemporaryFile("w", prefix="link-inputs-", suffix=".txt") as names:
        # There may be more than fit a command line.
        names.writelines('"{}"\n'.format(p.replace("\\", "\\\\").replace('"', '\\"')) for p in paths)
        names.flush()
        command = [tool, "--extern-only", "--print-file-name", "--format=posix", f"@{names.name}"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
        except OSError as error:
            raise RequestError(f"{tool}: {error.strerror}") from None
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line), "".join(lines[:1]))
        raise RequestError(re.sub(r"^\S+: (error: )?", "", first) or f"{tool} failed")
    undefined: dict[str, str] = {}
    defined = set()
    for line in ran.stdout.splitlines():
        if match := _LINE.match(line):
            if match["kind"] == "U":
                undefined.setdefault(match["symbol"], match["place"])
            elif match["kind"] not in "wv":
                defined.add(match["symbol"])
    return {symbol: place for symbol, place in undefined.items() if symbol not in defined}
