"""Measures what has not been measured yet, and writes a report of it: one HTML file.

python3 -m bench.report [BUILD_DIR] [--only NAME ...] [--again] [--no-measure] [--pictures DIR] [--out DIR]

BUILD_DIR is a release build, build/release by default. What each benchmark measured is kept beside
the page, and used until the benchmark is built anew. NAME is one of roofs, tiles, ops, copies, code,
time, or a part of one: tiles-avx2_fma, ops-f32-1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build" / "release",
                        metavar="BUILD_DIR")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", metavar="NAME", help="measure nothing else")
    which.add_argument("--no-measure", action="store_true", help="report what there is")
    parser.add_argument("--again", action="store_true", help="measure what there is as well")
    parser.add_argument("--pictures", type=Path, metavar="DIR",
                        help="also write those that stand alone, as SVG")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "report", metavar="DIR",
                        help="build/report by default")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> None:
    from bench.report.data import read
    from bench.report.measure import measure
    from bench.report.page import page, pictures
    from generator.library import replace_file
    if not options.no_measure:
        measure(options.build.resolve(), options.out.resolve(), options.only, options.again)
    measured = read(options.out)
    files = {options.out / "index.html": page(measured)}
    if options.pictures:
        files |= {options.pictures / name: text for name, text in pictures(measured).items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        print(path)


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    sys.path.insert(0, str(ROOT))
    from bench.report.data import ReportError
    from generator.model import RequestError
    try:
        _run(options)
    except ImportError as error:
        print(f"report: Jinja2 is needed (Debian: python3-jinja2): {error}", file=sys.stderr)
        return 1
    except (ReportError, RequestError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
