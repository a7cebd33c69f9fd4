"""bench/copy_table.py on results that are made up: the table, and what it refuses."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "copy_table.py"
CELLS = {"pack/x32/16x1/n": (40, 60, 50), "pack/x8/8x4/io": (30,), "unpack/x32/8x16/n": (80,)}


def run(name: str, percent: object, **more: object) -> dict[str, object]:
    return {"name": f"{name}/256KiB/iterations:1/manual_time", "run_type": "iteration", "memcpy%": percent,
            **more}


CONTEXT = {"cpu": "a CPU", "date": "2026-01-02T03:04:05+00:00"}
RESULTS = {"context": CONTEXT, "benchmarks": [run(name, percent) for name, percents in CELLS.items()
                                              for percent in percents]}


class CopyTableTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.result = Path(directory.name) / "copies.json"
        self.page = Path(directory.name) / "README.md"
        self.page.write_text("before\n<!-- copies -->\nold\n<!-- /copies -->\nafter\n")

    def run_on(self, text: str, *others: str) -> subprocess.CompletedProcess[str]:
        self.result.write_text(text)
        return self.run_script(str(self.result), *others, "--update", str(self.page))

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)

    def refused(self, ran: subprocess.CompletedProcess[str], why: str) -> None:
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran.stderr)
        self.assertRegex(ran.stderr, f"^copy_table.py: .*{why}")
        self.assertIn("\nold\n", self.page.read_text())

    def test_table(self) -> None:
        ran = self.run_on(json.dumps(RESULTS))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertTrue(ran.stdout.startswith("Percent of memcpy's speed (a CPU, 2026-01-02):\n"), ran.stdout)
        self.assertIn("| 256KiB | pack | 2 | 55 | 0 | 40 | x8 8x4 io 30, x32 16x1 n 50 |\n", ran.stdout)
        self.assertIn("| 256KiB | unpack | 1 | 55 | 1 | 80 | x32 8x16 n 80 |\n", ran.stdout)
        page = self.page.read_text()
        self.assertTrue(page.startswith("before\n") and page.endswith("after\n"))
        self.assertIn(ran.stdout.strip(), page)

    def test_every_cell_is_there_narrow_tiles_beside_wide_ones(self) -> None:
        percents = {"256KiB": 54.9, "4MiB": 70, "256MiB": 12}
        tiles = ("16x1", "32x2", "8x2", "1x1", "4x1")
        benchmarks = [{"name": f"{op}/{width}/{tile}/{order}/{size}", "memcpy%": percent}
                      for op in ("unpack", "pack") for width in ("x32", "x8") for order in ("io", "n")
                      for tile in tiles for size, percent in percents.items()]
        ran = self.run_on(json.dumps({**RESULTS, "benchmarks": benchmarks[:-2]}))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        figures = "**55**/70/**12**"
        row = f"1x1 {figures}, 4x1 {figures}, 16x1 {figures} | 8x2 {figures}, 32x2 {figures} |"
        expected = ["| op | width | order | tile1 = 1 | tile1 = 2 |", "| --- | --- | --- | --- | --- |",
                    *(f"| {op} | {width} | {order} | {row}" for op in ("pack", "unpack")
                      for width in ("x8", "x32") for order in ("n", "io"))]
        expected[2] = expected[2].replace(f"4x1 {figures}", "4x1 **55**/–/–")
        _, _, table = ran.stdout.partition("Cell by cell: ")
        self.assertEqual([line for line in table.splitlines() if line.startswith("|")], expected)

    def test_what_is_no_json(self) -> None:
        for text in ("", "{", json.dumps(RESULTS)[:-20], "[" * 100000 + "]" * 100000):
            self.refused(self.run_on(text), "copies.json: not a result of bench_copies")

    def test_what_is_no_output_of_a_benchmark(self) -> None:
        for content in ([], 1, {}, {**RESULTS, "benchmarks": 1}, {**RESULTS, "benchmarks": [1]},
                        {**RESULTS, "benchmarks": [{"run_type": "iteration", "memcpy%": 1}]}):
            self.refused(self.run_on(json.dumps(content)), "not a result of bench_copies")
        for left_out in CONTEXT:
            context = {key: value for key, value in CONTEXT.items() if key != left_out}
            self.refused(self.run_on(json.dumps({**RESULTS, "context": context})), f"it has no '{left_out}'")

    def test_runs(self) -> None:
        def refused(entry: dict[str, object], why: str) -> None:
            self.refused(self.run_on(json.dumps({**RESULTS, "benchmarks": [entry]})), why)

        for name in ("copy/x32/16x1/n", "pack/16x1/n", "pack/x32/16x1/n/1GiB"):
            refused(run(name, 1), "is no name of bench_copies")
        for percent in (None, "1", 0, -1, math.nan, math.inf, 10**400):
            refused(run("pack/x32/16x1/n", percent), "pack/x32/16x1/n/256KiB: 'memcpy%' is no number above 0")
        refused(run("pack/x32/16x1/n", 1, error_occurred=True, error_message="no such tile"), "no such tile")

    def test_no_results(self) -> None:
        self.refused(self.run_on(json.dumps({**RESULTS, "benchmarks": []})), "no cell of bench_copies")

    def test_results_of_several_files(self) -> None:
        second = self.result.with_name("second.json")
        second.write_text(json.dumps({**RESULTS, "context": {**CONTEXT, "cpu": "another"}}))
        self.refused(self.run_on(json.dumps(RESULTS), str(second)), "the files differ in cpu: a CPU; another")
        for context, dates in (({**CONTEXT, "date": "2026-01-04T00:00:00"}, "2026-01-02 to 2026-01-04"),
                               (CONTEXT, "2026-01-02")):
            second.write_text(json.dumps({"context": context, "benchmarks": [run("pack/x8/8x4/io", 50)]}))
            ran = self.run_on(json.dumps(RESULTS), str(second))
            self.assertIn(f"(a CPU, {dates}):", ran.stdout)
            self.assertIn("x8 8x4 io 40, ", ran.stdout)

    def test_aggregates_of_repetitions_do_not_count(self) -> None:
        mean = {**run("pack/x8/8x4/io", 90), "name": "pack/x8/8x4/io/256KiB/iterations:1/manual_time_mean",
                "run_type": "aggregate"}
        ran = self.run_on(json.dumps({**RESULTS, "benchmarks": [*RESULTS["benchmarks"], mean]}))
        self.assertIn("x8 8x4 io 30, ", ran.stdout)

    def test_files(self) -> None:
        self.refused(self.run_script(str(self.result)), "No such file .*copies.json")
        self.result.write_text(json.dumps(RESULTS))
        absent = str(self.page) + ".absent"
        self.refused(self.run_script(str(self.result), "--update", absent), "No such file .*absent")
        other = self.page.with_name("other.md")
        other.write_text("none\n")
        self.refused(self.run_script(str(self.result), "--update", str(other)), "wants the lines")


if __name__ == "__main__":
    unittest.main()
