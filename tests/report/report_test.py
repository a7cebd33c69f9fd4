"""The report of made-up measurements: complete, well-formed, self-contained, or refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

from bench.report import __main__ as report
from bench.report import measure, palette
from bench.report.chart import scale_of_decades, scale_of_powers, short

SVG = "{http://www.w3.org/2000/svg}"
FMA = "vfmadd231ps ymm"


# ---------------------------------------------------------------- made-up measurements

def symbol(shape: str, level: str = "avx2_fma") -> str:
    return f"uk_mmt4d_tile_f32f32f32_{shape}_x86_64_{level}"


def in_l1(shape: str, gops: float, percent: float) -> dict[str, Any]:
    return {"name": f"{symbol(shape)}/L1/manual_time", "GOP/s": gops, "peak%": percent, "label": f"of {FMA}"}


# 6x16 is hand-written, 14x32 generated.
TILES = [in_l1("6x16x1", 80, 100), in_l1("14x32x1", 60, 75), in_l1("1x8x1", 8, 10)]
FROM_MEMORY = [{"name": f"{symbol('1x64x1')}/mem/manual_time", "GOP/s": 4.5, "read%": 90.0,
                "bytes_per_second": 9e9}]
ROOFS = [{"name": "peak/f32f32f32/avx2_fma/manual_time", "GOP/s": 80.0, "label": FMA},
         {"name": "read/L1/manual_time", "GB/s": 160.0}, {"name": "read/L2/manual_time", "GB/s": 80.0},
         {"name": "read/mem/manual_time", "GB/s": 10.0}]


def with_quartiles(**figures: float) -> dict[str, float]:
    """The median of nine pairs each, certain to half a percent."""
    return {"pairs": 9, **figures, **{name + end: value * factor for name, value in figures.items()
                                      for end, factor in (("_q1", 0.995), ("_q3", 1.005))}}


_OP = {**with_quartiles(**{"peak%": 50.0, "openblas": 1.25, "naive": 2.0}), "GFLOP/s": 40.0,
       "label": f"6x16x1 avx2_fma, of {FMA}", "openblas_GFLOP/s": 32.0, "naive_GFLOP/s": 20.0}
OPS = [{"name": "f32/128x4096x4096/packed/threads:1/iterations:1/manual_time", **_OP},
       {"name": "f32/16x4096x4096/packed/cold/threads:1/manual_time", **_OP,
        **with_quartiles(**{"read%": 70.0}), "bound%": 70.0},
       {"name": "f32/128x4096x4096/kn/threads:2/manual_time", **_OP, "scaling": 0.97}]
COPIES = [{"name": f"{op}/x{width}/{tile}/{order}/{size}/iterations:1/manual_time",
           "bytes_per_second": 2e10, "memcpy%": 113.0}
          for op in ("pack", "unpack") for width, tile in ((8, "16x4"), (32, "8x1"))
          for order in ("n", "io") for size in ("256KiB", "256MiB")]
CODE = {"requests": [{"symbol": symbol("6x16x1"), "code_bytes": 800},
                     {"symbol": symbol("14x32x1"), "code_bytes": 4000}]}
TIME = {"requests": 1000, "tiles": 50, "cores": 2, "from_nothing_s": 6.1, "cached_s": 0.29,
        "archive_bytes": 186368, "code_bytes_per_tile": 1981.0}

ALL: dict[str, Any] = {
    "tiles-avx2_fma-L1": {"benchmarks": TILES}, "tiles-avx2_fma-mem": {"benchmarks": FROM_MEMORY},
    "roofs": {"benchmarks": ROOFS}, "ops-f32-1": {"benchmarks": OPS[:2]},
    "ops-f32-2": {"benchmarks": OPS[2:]}, "copies": {"benchmarks": COPIES}, "code": CODE, "time": TIME}


def content(name: str, data: Any) -> dict[str, Any]:
    return {"command": f"measure --{name} 'a<b'", "cpu": "A CPU & more", "compiler": "cc 1",
            "version": "1.0 (abc)", "date": "2026-01-02 03:04 UTC", "seconds": 5, "data": data}


class Case(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def write(self, measurements: dict[str, Any]) -> None:
        for name, data in measurements.items():
            (self.directory / f"{name}.json").write_text(json.dumps(content(name, data)))

    def run_report(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and what it said on stderr."""
        with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
            code = report.main(["--out", str(self.directory), *arguments])
        return code, said.getvalue()

    def page(self, measurements: dict[str, Any]) -> str:
        self.write(measurements)
        self.assertEqual(self.run_report("--no-measure"), (0, ""))
        return (self.directory / "index.html").read_text(encoding="utf-8")

    def refused(self, *arguments: str) -> str:
        """The one line, of a run that leaves the page and everything else as it was."""
        before = {path: path.read_bytes() for path in self.directory.rglob("*") if path.is_file()}
        code, said = self.run_report(*(arguments or ("--no-measure",)))
        self.assertEqual((code, said.count("\n")), (1, 1), said)
        after = {path: path.read_bytes() for path in self.directory.rglob("*") if path.is_file()}
        self.assertEqual(after, before)
        return said


def drawings(page: str) -> dict[str, ElementTree.Element]:
    """Those with a name, by it."""
    found = {}
    for text in re.findall(r"<svg xmlns=.*?</svg>", page, re.DOTALL):
        svg = ElementTree.fromstring(text)
        found[svg.attrib["aria-labelledby"].split("-title")[0]] = svg
    return found


def tooltips(svg: ElementTree.Element, class_name: str) -> list[str]:
    return [part.findtext(f"{SVG}title", "") for part in svg.iter()
            if class_name in part.attrib.get("class", "").split()]


# ---------------------------------------------------------------- the page

_VOID = {"meta", "circle", "path", "rect", "line"}


class _Checker(HTMLParser):
    """Refuses what is not closed, ids that are there twice, and references to other files."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag not in _VOID or "/" not in (self.get_starttag_text() or "/")[-2:]:
            if tag != "meta":
                self.open.append(tag)
        if tag in ("script", "link", "img", "iframe", "object", "image", "use"):
            self.references.append(tag)
        self.ids += [named["id"]] if named.get("id") else []
        self.references += [value or "" for name, value in attributes
                            if name in ("src", "href", "xlink:href", "srcset", "data")]

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


class PageTest(Case):
    def check(self, page: str) -> None:
        checker = _Checker()
        checker.feed(page)
        checker.close()
        self.assertEqual(checker.open, [])
        self.assertEqual(len(checker.ids), len(set(checker.ids)))
        inside = [reference[1:] for reference in checker.references if reference.startswith("#")]
        self.assertEqual(len(inside), len(checker.references), checker.references)
        self.assertLessEqual(set(inside), set(checker.ids))
        self.assertNotRegex(page, r"@import|url\(|@font-face")
        self.assertLessEqual(set(re.findall(r"https?://[^\"' <]*", page)), {"http://www.w3.org/2000/svg"})

    def test_well_formed_and_self_contained(self) -> None:
        page = self.page(ALL)
        self.check(page)
        self.assertNotIn("not measured", page)
        self.assertIn("A CPU &amp; more", page)
        self.assertIn("measure --copies &#39;a&lt;b&#39;", page)

    def test_drawings_are_told_to_those_who_do_not_see_them(self) -> None:
        for name, svg in drawings(self.page(ALL)).items():
            self.assertEqual(svg.attrib["role"], "img")
            self.assertEqual([svg[0].tag, svg[1].tag], [f"{SVG}title", f"{SVG}desc"])
            self.assertEqual(svg.attrib["aria-labelledby"],
                             f"{svg[0].attrib['id']} {svg[1].attrib['id']}", name)
            self.assertTrue(svg[0].text and svg[1].text, name)

    def test_nothing_is_drawn_outside(self) -> None:
        for name, svg in drawings(self.page(ALL)).items():
            _, _, width, height = map(float, svg.attrib["viewBox"].split())
            for part in svg.iter():
                for of, limit in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height)):
                    if of in part.attrib:
                        self.assertTrue(0 <= float(part.attrib[of]) <= limit, (name, part.attrib))

    def test_every_point_is_there(self) -> None:
        page = self.page(ALL)
        roofline = drawings(page)["roof-f32f32f32-avx2_fma"]
        self.assertEqual(sorted(tooltips(roofline, "hand")), [
            "1×8×1, hand-written, from L1: 8.0 Gop/s, 10 % of peak",
            "6×16×1, hand-written, from L1: 80.0 Gop/s, 100 % of peak"])
        self.assertEqual(sorted(tooltips(roofline, "generated")), [
            "14×32×1, generated, from L1: 60.0 Gop/s, 75 % of peak",
            "1×64×1, generated, from memory: 4.5 Gop/s, 90 % of read bandwidth"])
        self.assertEqual(len(tooltips(roofline, "op")), 2)
        circles = [circle.attrib["class"] for circle in roofline.iter(f"{SVG}circle")]
        self.assertEqual(sorted(circles), ["tile generated", "tile hand", "tile hand"])

    def test_the_best_of_repetitions(self) -> None:
        """The peak is the best one too: that of the third is 90."""
        repetitions = [in_l1("6x16x1", 40, 50), in_l1("6x16x1", 45, 100), in_l1("6x16x1", 72, 80),
                       {"name": TILES[0]["name"], "error_occurred": True, "error_message": "above"},
                       {**in_l1("6x16x1", 99, 99), "name": "6x16x1_mean", "run_type": "aggregate"}]
        roofline = drawings(self.page({"tiles-avx2_fma-L1": {"benchmarks": repetitions}}))
        self.assertEqual(tooltips(roofline["roof-f32f32f32-avx2_fma"], "hand"),
                         ["6×16×1, hand-written, from L1: 72.0 Gop/s, 80 % of peak"])

    def test_a_tile_at_its_peak_lies_on_the_roof(self) -> None:
        roofline = drawings(self.page(ALL))["roof-f32f32f32-avx2_fma"]
        roof, = (line for line in roofline.iter(f"{SVG}line") if line.attrib["class"] == "roof peak")
        highest = min(float(circle.attrib["cy"]) for circle in roofline.iter(f"{SVG}circle"))
        self.assertEqual(float(roof.attrib["y1"]), highest)

    def test_heat_map(self) -> None:
        heat = drawings(self.page(ALL))["heat-f32f32f32-avx2_fma"]
        cells = {part.attrib["class"]: part.findtext(f"{SVG}title") for part in heat.iter(f"{SVG}rect")}
        self.assertEqual(cells["h8"], "f32f32f32 6×16×1 avx2_fma, hand-written: 80.0 Gop/s")
        self.assertEqual(cells["h5"], "f32f32f32 14×32×1 avx2_fma, generated: 60.0 Gop/s")
        written = [text.text for text in heat.iter(f"{SVG}text") if re.match(r"t\d ", text.attrib["class"])]
        self.assertEqual(sorted(written), ["10", "100", "75"])
        self.assertEqual(len([part for part in heat.iter(f"{SVG}path")]), 2)  # the corners

    def test_bars_and_table_of_operations(self) -> None:
        page = self.page(ALL)
        bars = drawings(page)["ops-f32f32f32"]
        self.assertEqual(tooltips(bars, "own"), ["ukernel: 40.0 Gop/s"] * 2)
        self.assertEqual(tooltips(bars, "other"), ["openblas: 32.0 Gop/s", "naive: 20.0 Gop/s"] * 2)
        widths = {part.findtext(f"{SVG}title"): float(part.attrib["width"])
                  for part in bars.iter(f"{SVG}rect")}
        self.assertAlmostEqual(widths["ukernel: 40.0 Gop/s"] / widths["naive: 20.0 Gop/s"], 2, places=2)
        for text in ("f32f32f32: all 3 measurements", "128×4096×4096, 2 threads", "0.97", "1.25"):
            self.assertIn(text, page)

    def test_hot_and_cold_operations_stand_apart(self) -> None:
        ratio = with_quartiles(openblas=4.0)
        page = self.page({"ops-f32-1": {"benchmarks": [OPS[0], {**OPS[1], **ratio}]}})
        rows = [re.findall(r"<t[dh][^>]*>([^<]*)<", row) for row in re.findall(r"<tr>.*?</tr>", page)]
        self.assertIn(["f32f32f32", "operands packed", "1", "1", "1.25", "1.25", "128×4096×4096", "openblas"], rows)
        self.assertIn(["f32f32f32", "operands packed, cold", "1", "1", "4.00", "4.00", "16×4096×4096", "openblas"],
                      rows)

    def test_disturbed_operations_are_named_and_left_out(self) -> None:
        for figure in ("peak%", "openblas"):
            disturbed = {**OPS[0], f"{figure}_q3": OPS[0][figure] * 1.2}
            page = self.page({**ALL, "ops-f32-1": {"benchmarks": [disturbed, OPS[1]]}})
            self.assertEqual(tooltips(drawings(page)["ops-f32f32f32"], "own"), ["ukernel: 40.0 Gop/s"])
            self.assertIn("f32f32f32 128×4096×4096, operands packed.</p>", page)
            self.assertIn("f32f32f32: all 2 measurements", page)
            # Among those packed and hot it was the only one.
            self.assertEqual('<td>operands packed</td><td class="n">1</td>' in page, figure == "peak%")
        # The naive loop is no library that anything is held against.
        beside = {**OPS[0], "naive_q3": 4.0}
        page = self.page({**ALL, "ops-f32-1": {"benchmarks": [beside, OPS[1]]}})
        self.assertIn("f32f32f32: all 3 measurements", page)
        self.assertNotIn("Left out", page)

    def test_copies_above_memcpy_are_no_error(self) -> None:
        found = drawings(self.page(ALL))
        self.assertEqual(len([name for name in found if name.startswith("copies-")]), 4)
        self.assertEqual(len(tooltips(found["copies-pack-256KiB"], "h8")), 4)

    def test_what_is_missing_is_left_out_and_says_so(self) -> None:
        for left_out in ("tiles", "ops", "copies", "code", "time"):
            for old in self.directory.iterdir():
                old.unlink()
            page = self.page({name: data for name, data in ALL.items() if not name.startswith(left_out)})
            self.check(page)
            self.assertEqual(re.findall(r"cmake/dev.sh report --only (\w+)", page), [left_out])

    def test_nothing_measured_at_all(self) -> None:
        page = self.page({})
        self.check(page)
        self.assertEqual(page.count("not measured"), 6)
        self.assertIn("□ generated", page)  # the coverage needs no measurement

    def test_pictures_stand_alone(self) -> None:
        self.write(ALL)
        pictures = self.directory / "pictures"
        self.assertEqual(self.run_report("--no-measure", "--pictures", str(pictures))[0], 0)
        self.assertEqual(sorted(path.name for path in pictures.iterdir()), ["ops.svg", "tiles.svg"])
        for path in pictures.iterdir():
            svg = ElementTree.fromstring(path.read_text(encoding="utf-8"))
            self.assertIn("prefers-color-scheme", svg.findtext(f"{SVG}style", ""))
            self.assertEqual(svg.find(f"{SVG}rect").attrib["class"], "paper")  # type: ignore[union-attr]
            self.assertIn("A CPU & more", " ".join(svg.itertext()))


# ---------------------------------------------------------------- what is refused

class RefusalTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.page(ALL)

    def test_above_what_is_possible(self) -> None:
        for name, benchmark, told in (
                ("tiles-avx2_fma-L1", in_l1("6x16x1", 80, 101.3), f"101.3 % of the peak of {FMA}"),
                ("tiles-avx2_fma-mem", {**FROM_MEMORY[0], "read%": 102.0}, "102.0 % of the read bandwidth"),
                ("ops-f32-1", {**OPS[0], "peak%": 108.0}, f"108.0 % of the peak of {FMA}"),
                ("ops-f32-1", {**OPS[1], "read%": 101.5}, "101.5 % of the read bandwidth")):
            self.write({**ALL, name: {"benchmarks": [*ALL[name]["benchmarks"], benchmark]}})
            self.assertEqual(self.refused(), f"report: {name}.json: {benchmark['name']} is at {told}\n")
        self.write({**ALL, "tiles-avx2_fma-L1": {"benchmarks": [in_l1("1x8x1", 74, 92.5)]}})
        self.assertEqual(self.refused(),
                         f"report: {symbol('1x8x1')} from L1 is at 104.1 % of the read bandwidth\n")
        self.write({**ALL, "tiles-avx2_fma-L1": {"benchmarks": [in_l1("6x16x1", 80, 100.9)]}})
        self.assertEqual(self.run_report("--no-measure")[0], 0)

    def test_what_the_benchmark_itself_calls_wrong(self) -> None:
        wrong = {"name": "f32/1x1x1/packed/threads:1", "error_occurred": True, "error_message": "it is wrong"}
        self.write({"ops-f32-1": {"benchmarks": [wrong]}})
        self.assertEqual(self.refused(), "report: ops-f32-1.json: f32/1x1x1/packed/threads:1: it is wrong\n")

    def test_damaged_files(self) -> None:
        whole = json.dumps(content("roofs", ALL["roofs"]))
        for text in ("", whole[:len(whole) // 2], "[]", "{}", "null", '{"data": []}', "\x00\xff",
                     "[" * 100000 + "]" * 100000):
            (self.directory / "roofs.json").write_text(text)
            self.assertRegex(self.refused(), r"^report: roofs\.json: .*--only roofs --again makes it anew\n$")

    def test_wrong_contents(self) -> None:
        for name, data, told in (
                ("roofs", {}, "has no list 'benchmarks'"),
                ("roofs", {"benchmarks": [7]}, "has no list 'benchmarks'"),
                ("roofs", {"benchmarks": [{"GB/s": 1}]}, "has no text 'name'"),
                ("roofs", {"benchmarks": [{"name": "read/L9", "GB/s": 1}]}, "neither a peak nor a bandwidth"),
                ("roofs", {"benchmarks": [{"name": "read/L1", "GB/s": "1"}]}, "has no number 'GB/s'"),
                ("roofs", {"benchmarks": [{"name": "read/L1", "GB/s": math.nan}]}, "has no number 'GB/s'"),
                ("roofs", {"benchmarks": [{"name": "read/L1", "GB/s": 10**400}]}, "has no number 'GB/s'"),
                ("roofs", {"benchmarks": [{"name": "read/L1", "GB/s": 0}]}, "has a 'GB/s' of 0"),
                ("tiles-x-L1", {"benchmarks": [{**TILES[0], "name": "uk_/L1"}]}, "not the symbol of"),
                ("tiles-x-L1", {"benchmarks": [{**TILES[0], "name": "pack/x8"}]}, "is not understood"),
                ("tiles-x-L1", {"benchmarks": [{**TILES[0], "label": "?"}]}, "is not understood"),
                ("ops-f32-1", {"benchmarks": [{**OPS[0], "name": "f31/1x1x1/nk/threads:1"}]}, "'f31'"),
                ("ops-f32-1", {"benchmarks": [{k: v for k, v in OPS[0].items() if k != "naive"}]}, "'naive'"),
                ("ops-f32-1", {"benchmarks": [{**OPS[0], "name": "f32/1x1x0/nk/threads:1"}]},
                 "is not understood"),
                ("tiles-x-L1", {"benchmarks": [{**TILES[0], "name": f"{symbol('6x16x1', 'avx9')}/L1"}]},
                 "unknown level 'avx9'"),
                ("code", {"requests": [{"symbol": symbol("6x16x1", "avx9"), "code_bytes": 1}]}, "'avx9'"),
                ("copies", {"benchmarks": [{"name": "pack/x8/1x1/n/1KiB"}]}, "'bytes_per_second'"),
                ("code", {"requests": [{"symbol": symbol("6x16x1"), "code_bytes": None}]}, "'code_bytes'"),
                ("time", {}, "has no number 'requests'")):
            self.write({**ALL, name: data})
            said = self.refused()
            self.assertIn(told, said)
            self.assertIn(f"{name}.json", said)
            (self.directory / f"{name}.json").unlink()

    def test_an_empty_command(self) -> None:
        for command in ("", " "):
            empty = {**content("roofs", ALL["roofs"]), "command": command}
            (self.directory / "roofs.json").write_text(json.dumps(empty))
            self.assertEqual(self.refused(), "report: roofs.json has an empty 'command'\n")

    def test_a_file_of_nobody(self) -> None:
        self.write({"speeds": {}})
        self.assertIn("speeds.json", self.refused())

    def test_a_wrong_command_line(self) -> None:
        for arguments in (("--fast",), ("--only", "ops", "--no-measure"), ("a", "b")):
            with self.assertRaises(SystemExit) as raised, contextlib.redirect_stderr(io.StringIO()):
                report.main(list(arguments))
            self.assertEqual(raised.exception.code, 2)


# ---------------------------------------------------------------- measuring

# Counts its runs, and writes what it is told: a benchmark of Google's that takes no time.
_BENCHMARK = """#!/bin/sh
echo "$*" >> {runs}
for word; do case $word in --benchmark_out=*) cp {json} "${{word#*=}}" ;; esac; done
{then}
"""


class MeasureTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.build = self.directory / "build"
        self.build.mkdir()
        compiler = self.script("cc", "#!/bin/sh\necho cc 9.9\necho more\n")
        (self.build / "CMakeCache.txt").write_text(
            f"CMAKE_CXX_COMPILER:FILEPATH={compiler}\nCMAKE_PROJECT_VERSION:STATIC=7.8.9\n")
        self.out = self.directory / "out"
        self.runs = self.directory / "runs"
        self.runs.touch()

    def script(self, name: str, text: str) -> Path:
        path = self.build / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def benchmark(self, benchmarks: list[dict[str, Any]], then: str = "") -> None:
        written = self.build / "written.json"
        written.write_text(json.dumps({"benchmarks": benchmarks}))
        program = self.script("bench", _BENCHMARK.format(runs=self.runs, json=written, then=then))
        old = program.stat().st_mtime - 100
        os.utime(program, (old, old))
        source = measure.Source("roofs", (str(program), "--benchmark_filter=all"), "--benchmark_out=", "",
                                (program,), 0.5)
        patched = mock.patch.object(measure, "sources", return_value=[source])
        patched.start()
        self.addCleanup(patched.stop)

    def measured(self, *arguments: str) -> tuple[int, str]:
        with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
            code = report.main([str(self.build), "--out", str(self.out), *arguments])
        return code, said.getvalue()

    def test_measured_once_until_the_program_is_newer(self) -> None:
        self.benchmark(ROOFS)
        for arguments, runs in (((), 1), ((), 1), (("--again",), 2), (("--only", "roofs", "--again"), 3),
                                (("--only", "roofs"), 3)):
            self.assertEqual(self.measured(*arguments)[0], 0)
            self.assertEqual(len(self.runs.read_text().splitlines()), runs, arguments)
        (self.build / "bench").touch()
        later = (self.out / "roofs.json").stat().st_mtime + 10
        os.utime(self.build / "bench", (later, later))
        self.measured()
        self.assertEqual(len(self.runs.read_text().splitlines()), 4)
        kept = json.loads((self.out / "roofs.json").read_text())
        self.assertEqual(kept["compiler"], "cc 9.9")
        self.assertTrue(kept["version"].startswith("7.8.9 ("))
        self.assertEqual(kept["data"]["benchmarks"], ROOFS)

    def test_an_impossible_figure_is_measured_again(self) -> None:
        bad = {"name": "read/L1/manual_time", "error_occurred": True, "error_message": "102 % of the peak"}
        good = self.build / "good.json"
        good.write_text(json.dumps({"benchmarks": [ROOFS[1]]}))
        # What the second run writes: the one that was bad, good.
        self.benchmark([ROOFS[0], bad], f"cp {good} {self.build}/written.json; exit 3")
        self.assertEqual(self.measured()[0], 0)
        filters = re.findall(r"--benchmark_filter=(\S+)", self.runs.read_text())
        self.assertEqual(filters, ["all", "^(read/L1/manual_time)$"])
        self.assertEqual(json.loads((self.out / "roofs.json").read_text())["data"]["benchmarks"], ROOFS[:2])

    def test_an_impossible_figure_that_stays_fails(self) -> None:
        self.benchmark([{**ROOFS[1], "error_occurred": True, "error_message": "102 % of it"}], "exit 3")
        code, said = self.measured()
        self.assertEqual(code, 1)
        self.assertEqual(said.splitlines()[-1], "report: roofs.json: read/L1/manual_time: 102 % of it")
        self.assertFalse((self.out / "index.html").exists())

    def test_a_level_that_the_cpu_lacks_is_left_out(self) -> None:
        self.benchmark(ROOFS, "exit 77")
        code, said = self.measured()
        self.assertEqual((code, "skipped" in said), (0, True))
        self.assertFalse((self.out / "roofs.json").exists())

    def test_what_fails_is_named_and_leaves_nothing(self) -> None:
        self.benchmark(ROOFS, "echo first >&2; echo the reason >&2; exit 1")
        code, said = self.measured()
        self.assertEqual((code, said.splitlines()[-1]), (1, "report: roofs: the reason"))
        self.assertEqual([path.name for path in self.out.iterdir()], ["grid.txt"])

    def test_code_depends_on_all_that_the_generator_compiles(self) -> None:
        generated, = (source for source in measure.sources(self.build, self.build / "grid")
                      if source.name == "code")
        for folder, hand_written in (("generator/memref", "mmt4d.cc"), ("arch", "*/*/*.cc")):
            kernels = list((measure._ROOT / folder).glob(hand_written))
            self.assertTrue(kernels)
            self.assertLessEqual(set(kernels), set(generated.made_of))

    def test_what_cannot_be_written_is_known_before_the_measurement(self) -> None:
        no_block = self.directory / "no_block.md"
        no_block.touch()
        for option, path in (("--json", "/nonexistent/x"), ("--json", str(self.directory)),
                             ("--update", "/nonexistent/x"), ("--update", str(no_block))):
            ran = subprocess.run([sys.executable, measure._ROOT / "bench/generator_time.py", option, path],
                                 capture_output=True, text=True, timeout=20)
            self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
            self.assertIn(path, ran.stderr)

    def test_unknown_names_and_no_build(self) -> None:
        self.benchmark(ROOFS)
        self.assertEqual(self.measured("--only", "roof"),
                         (1, "report: nothing is called 'roof'; this build has roofs\n"))
        (self.build / "CMakeCache.txt").unlink()
        self.assertIn("is no build", self.measured()[1])
        self.assertFalse(self.out.exists())


# ---------------------------------------------------------------- colours, scales

class PaletteTest(unittest.TestCase):
    def test_contrast_by_known_values(self) -> None:
        self.assertAlmostEqual(palette.contrast("#ffffff", "#000000"), 21)
        self.assertAlmostEqual(palette.contrast("#777777", "#ffffff"), 4.48, places=2)

    def test_text_can_be_read(self) -> None:
        for scheme in (palette.LIGHT, palette.DARK):
            for ground in (scheme.paper, scheme.card):
                for ink in (scheme.ink, scheme.muted, scheme.accent):
                    self.assertGreaterEqual(palette.contrast(ink, ground), 4.5, (ink, ground))
            self.assertEqual(len(scheme.ramp), len(palette.STEPS))
            for fill, ink in scheme.ramp:
                self.assertGreaterEqual(palette.contrast(ink, fill), 4.5, (ink, fill))

    def test_the_ramp_is_one_of_lightness(self) -> None:
        for scheme in (palette.LIGHT, palette.DARK):
            from_paper = [palette.contrast(fill, scheme.paper) for fill, _ in scheme.ramp]
            self.assertEqual(from_paper, sorted(from_paper))

    def test_steps(self) -> None:
        self.assertEqual([palette.step_of(percent) for percent in (0, 19.9, 20, 79.9, 80, 95, 120)],
                         [0, 0, 1, 5, 6, 8, 8])


class ScaleTest(unittest.TestCase):
    def test_powers(self) -> None:
        scale = scale_of_powers([0.3, 17], 4, 10, 110)
        self.assertEqual(scale.ticks, (0.25, 1, 4, 16, 64))
        self.assertEqual([scale(tick) for tick in scale.ticks], [10, 35, 60, 85, 110])
        self.assertEqual(scale_of_powers([4], 4, 0, 1).ticks, (4, 16))

    def test_decades(self) -> None:
        scale = scale_of_decades([3, 154], 100, 0)
        self.assertEqual(scale.ticks, (2, 5, 10, 20, 50, 100, 200))
        self.assertEqual((scale(2), scale(200), scale(20)), (100, 0, 50))
        self.assertEqual(scale_of_decades([0.3, 1500], 0, 1).ticks, (1, 10, 100, 1000))

    def test_labels(self) -> None:
        self.assertEqual([short(value) for value in (0.25, 1 / 16, 0.5, 16, 1000, 4096)],
                         ["1/4", "1/16", "0.5", "16", "1000", "4k"])


if __name__ == "__main__":
    unittest.main()
