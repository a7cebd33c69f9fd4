"""How the programs of this directory are lowered with LLVM 19's tools: as calls of the library, or by
MLIR alone. The passes are in the order in which they run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from generator import library

HERE = Path(__file__).resolve().parent

TOOLS = ("mlir-opt-19", "mlir-translate-19", "opt-19", "llc-19")


def _schedule(name: str) -> str:
    """A sequence of schedules.mlir."""
    return f"--transform-interpreter=entry-point={name}"


_BUFFERIZE = (
    # Tensors become memrefs; an op writes into its outs operand where nothing else needs that.
    _schedule("bufferize"),
    # Every memref.alloc gets its memref.dealloc.
    "--buffer-deallocation-pipeline",
    # A result that bufferization put where it belongs is not copied onto itself.
    "--canonicalize",
)

_TO_LLVM = (
    # bf16 is widened and narrowed by integer operations: the function that LLVM would call for it is
    # in no library of GCC 12.
    "--arith-expand=include-bf16",
    # Vectors of several dimensions are loaded and stored row by row. In loops, which this would make
    # otherwise, they need memory that is allocated again at every step.
    "--convert-vector-to-scf=full-unroll",
    # Subviews become offsets and strides, as affine expressions, and those arithmetic.
    "--expand-strided-metadata",
    "--lower-affine",
    # Loops become branches.
    "--convert-scf-to-cf",
    # Each dialect to LLVM's own. memref needs no order, but func before it makes the descriptors.
    "--convert-vector-to-llvm",
    "--convert-func-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-arith-to-llvm",
    "--convert-cf-to-llvm",
    # The casts between the types of before and after, of which none may remain.
    "--reconcile-unrealized-casts",
)

LIBRARY_CALLS = (
    # tensor.pack and tensor.unpack become calls of functions around the library's ...
    _schedule("call_packs"),
    # ... and those are put in their place: bufferization does not look into functions.
    "--inline",
    *_BUFFERIZE,
    # linalg.fill and linalg.generic become loops. What is left of linalg is mmt4d ...
    _schedule("loops_but_mmt4d"),
    # ... which becomes calls of linalg_mmt4d_view...
    "--convert-linalg-to-std",
    *_TO_LLVM,
)

MLIR_ALONE = (
    # tensor.pack and tensor.unpack become pads, transposes and slices.
    _schedule("lower_packs"),
    # mmt4d becomes loops around one step of one tile, in vectors.
    _schedule("vectorize_mmt4d"),
    *_BUFFERIZE,
    # The accumulators stay in registers; the steps become fused multiply-adds.
    _schedule("lower_contractions"),
    # What else there is of linalg.
    "--convert-linalg-to-loops",
    # The functions around the library's are not called.
    "--symbol-dce",
    *_TO_LLVM,
)


class LoweringError(Exception):
    """A tool failed; its first line."""


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if not shutil.which(tool)]


def run_tool(*command: str | Path) -> str:
    """What it printed. Paths are absolute: it runs in the root of the source tree."""
    ran = subprocess.run([str(word) for word in command], cwd=library.ROOT, capture_output=True,
                         text=True)
    if ran.returncode:
        first = next((line for line in ran.stderr.splitlines() if "error" in line), ran.stderr[:200])
        raise LoweringError(f"{command[0]}: {first or f'exit {ran.returncode}'}")
    return ran.stdout


@dataclass(frozen=True)
class Target:
    """An x86-64 CPU of one of the library's levels."""

    level: str

    @property
    def options(self) -> list[str]:
        flags = library.compiler_flags("x86_64", self.level, "Clang")
        features = ",".join(f"+{flag[2:]}" for flag in flags if flag.startswith("-m"))
        return ["-mtriple=x86_64-linux-gnu", "-mcpu=x86-64", f"-mattr={features}"]


def compile_commands(source: Path, passes: tuple[str, ...], target: Target, made: Path
                     ) -> list[list[str | Path]]:
    """Make an object file of a .mlir file, with what comes between beside it."""
    lowered, ir, optimized = (made.with_suffix(suffix) for suffix in (".llvm.mlir", ".ll", ".bc"))
    return [
        ["mlir-opt-19", source, "-o", lowered,
         f"--transform-preload-library=transform-library-paths={HERE / 'schedules.mlir'}", *passes],
        ["mlir-translate-19", "--mlir-to-llvmir", lowered, "-o", ir],
        ["opt-19", "-O3", *target.options, ir, "-o", optimized],
        # MLIR makes mulf and addf of some products. Contracted they are the chain of fused
        # multiply-adds that the others are, and that the library computes.
        ["llc-19", "-O3", *target.options, "-fp-contract=fast", "-relocation-model=pic",
         "-filetype=obj", optimized, "-o", made]]


def compile_mlir(source: Path, passes: tuple[str, ...], target: Target, made: Path) -> None:
    for command in compile_commands(source, passes, target, made):
        run_tool(*command)
