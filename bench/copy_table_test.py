"""bench/copy_table.py on results that are made up: the table, and what it refuses."""

from __future__ import annotations

import json
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


RESULTS = {"benchmarks": [run(name, percent) for name, percents in CELLS.items() for percent in percents]}


class CopyTableTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.result = Path(directory.name) / "copies.json"
        self.page = Path(directory.name) / "README.md"
        self.page.write_text("before\n<!-- copies -->\nold\n<!-- /copies -->\nafter\n")

    def run_on(self, text: str) -> subprocess.CompletedProcess[str]:
        self.result.write_text(text)
        return self.run_script(str(self.result), "--update", str(self.page))

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)

    def refused(self, ran: subprocess.CompletedProcess[str], why: str) -> None:
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr.count("\n")), (1, "", 1), ran.stderr)
        self.assertRegex(ran.stderr, f"^copy_table.py: .*{why}")
        self.assertIn("\nold\n", self.page.read_text())

    def test_table(self) -> None:
        ran = self.run_on(json.dumps(RESULTS))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("| 256KiB | pack | 2 | 55 | 0 | 40 | x8 8x4 io 30, x32 16x1 n 50 |\n", ran.stdout)
        self.assertIn("| 256KiB | unpack | 1 | 55 | 1 | 80 | x32 8x16 n 80 |\n", ran.stdout)
        page = self.page.read_text()
        self.assertTrue(page.startswith("before\n") and page.endswith("after\n"))
        self.assertIn(ran.stdout.strip(), page)

    def test_what_is_no_json(self) -> None:
        for text in ("", "{", json.dumps(RESULTS)[:-20]):
            self.refused(self.run_on(text), "copies.json: not JSON")

    def test_what_is_no_output_of_a_benchmark(self) -> None:
        for content in ([], 1, {}, {"benchmarks": 1}, {"benchmarks": [1]}, {"benchmarks": [run("a", None)]},
                        {"benchmarks": [{"run_type": "iteration", "memcpy%": 1}]}):
            self.refused(self.run_on(json.dumps(content)), "not the output of a benchmark")

    def test_names(self) -> None:
        for name in ("copy/x32/16x1/n", "pack/16x1/n", "pack/x32/16x1/n/1GiB"):
            self.refused(self.run_on(json.dumps({"benchmarks": [run(name, 1)]})), "is no name of bench_copies")

    def test_no_results(self) -> None:
        self.refused(self.run_on(json.dumps({"benchmarks": []})), "no results")

    def test_files(self) -> None:
        self.refused(self.run_script(str(self.result)), "copies.json: No such file")
        self.result.write_text(json.dumps(RESULTS))
        absent = str(self.page) + ".absent"
        self.refused(self.run_script(str(self.result), "--update", absent), "absent: No such file")
        other = self.page.with_name("other.md")
        other.write_text("none\n")
        self.refused(self.run_script(str(self.result), "--update", str(other)), "wants the lines")


if __name__ == "__main__":
    unittest.main()
