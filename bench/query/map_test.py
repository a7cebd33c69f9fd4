"""bench/query/map.py on results that are made up: what it computes, what it marks and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = {"cpu": "a CPU", "date": "2026-01-02T03:04:05+00:00"}
NAME = "avx9/f32f32f32/4x256x256/free"


def rival(shape: str, ratio: float, spread: float = 0.01) -> dict[str, float]:
    """Of 16 pairs: the median is certain to 1.57 * 2 * spread / 4, 0.8 % as a rule."""
    return {shape: ratio, f"{shape}_q1": ratio * (1 - spread), f"{shape}_q3": ratio * (1 + spread)}


def cell(name: str, shape: str, **figures: object) -> dict[str, object]:
    return {"name": f"{name}/iterations:1/manual_time", "real_time": 1, "GFLOP/s": 50, "pairs": 16,
            "shapes": 9, "label": f"{shape} avx9", **figures}


class QueryMapTest(unittest.TestCase):
    def run_on(self, *cells: dict[str, object]) -> subprocess.CompletedProcess[str]:
        return self.run_on_files({"context": CONTEXT, "benchmarks": cells})

    def run_on_files(self, *contents: object, update: str | None = None, block: str | None = None
                     ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as directory:
            paths = [Path(directory) / f"result{i}.json" for i in range(len(contents))]
            for path, content in zip(paths, contents):
                path.write_text(json.dumps(content))
            options = []
            if update is not None:
                self.document = Path(directory) / "document.md"
                self.document.write_text(update)
                options = ["--update", self.document, *(["--block", block] if block else [])]
            ran = subprocess.run([sys.executable, ROOT / "bench/query/map.py", *paths, *options],
                                 capture_output=True, text=True)
            self.updated = self.document.read_text() if update is not None else None
            return ran

    def assert_refused(self, ran: subprocess.CompletedProcess[str], reason: str) -> None:
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
        self.assertIn(reason, ran.stderr)

    def test_the_fastest_shape_counts_and_is_named_where_the_query_loses(self) -> None:
        ran = self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 0.9), **rival("8x16x1", 0.8),
                               **rival("8x32x1", 2)))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| avx9 | f32f32f32 | free | 256 x 256 | 4x32x1 **80** 8x16x1 |", ran.stdout)

    def test_a_query_that_is_a_little_behind_does_not_lose(self) -> None:
        self.assertIn("| 4x32x1 96 |", self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 0.96))).stdout)
        # 5.5 % behind, give or take 0.8.
        self.assertIn("| 4x32x1 94 |", self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 0.945))).stdout)

    def test_a_query_that_is_fastest_has_100_percent(self) -> None:
        self.assertIn("| 4x32x1 100 |", self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 1.2))).stdout)
        self.assertIn("| 4x32x1 100 |", self.run_on(cell(NAME, "4x32x1")).stdout)

    def test_mean_and_worst_of_a_type_and_level(self) -> None:
        ran = self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 0.5)),
                          cell("avx9/f32f32f32/64x4096x4096/free/cold", "4x32x1", **rival("4x16x1", 0.98)),
                          cell("avx9/f32f32f32/64x4096x4096/packed/cold", "4x32x1"))
        self.assertIn("| avx9 | f32f32f32 | free | 2 of 2 | 70.0 | 50 at 4x256x256 | 1 |", ran.stdout)
        self.assertIn("| avx9 | f32f32f32 | packed | 1 of 1 | 100.0 | 100 at 64x4096x4096 | 0 |", ran.stdout)

    def test_a_disturbed_cell_has_no_figure_and_is_in_no_mean(self) -> None:
        wild = rival("4x16x1", 0.97, 0.1)  # certain to 7.9 %
        ran = self.run_on(cell(NAME, "4x32x1", **wild), cell("avx9/f32f32f32/8x256x256/free", "8x32x1"))
        self.assertIn("| 4x32x1 ? | 8x32x1 100 |", ran.stdout)
        self.assertIn("| avx9 | f32f32f32 | free | 1 of 2 | 100.0 |", ran.stdout)

    def test_a_few_pairs_tell_nothing(self) -> None:
        for pairs, text in ((4, "4x32x1 ?"), (5, "4x32x1 **60** 4x16x1")):
            ran = self.run_on(cell(NAME, "4x32x1", **{**rival("4x16x1", 0.6, 0), "pairs": pairs}))
            self.assertIn(f"| {text} |", ran.stdout)

    def test_a_loss_that_no_disturbance_explains_stays_one(self) -> None:
        ran = self.run_on(cell(NAME, "4x32x1", **rival("4x16x1", 0.6, 0.1)))
        self.assertIn("| 4x32x1 **60** 4x16x1 |", ran.stdout)

    def test_of_cells_measured_twice_the_most_certain_counts(self) -> None:
        certain = cell(NAME, "4x32x1", **rival("4x16x1", 0.7))
        wild = cell(NAME, "4x32x1", **rival("4x16x1", 0.9, 0.1))
        for cells in ((certain, wild), (wild, certain)):
            self.assertIn("**70**", self.run_on(*cells).stdout)

    def test_aggregates_of_repetitions_are_no_cells(self) -> None:
        once = cell(NAME, "4x32x1", **rival("4x16x1", 0.7))
        means = {**cell(NAME, "4x32x1", **rival("4x16x1", 0.3, 0)), "name": f"{once['name']}_mean",
                 "run_type": "aggregate", "aggregate_name": "mean"}
        ran = self.run_on(once, means)
        self.assertEqual((ran.returncode, ran.stdout), (0, self.run_on(once).stdout), ran.stderr)

    def test_names_count_as_a_whole(self) -> None:
        for name in (f"{NAME}_mean", f"{NAME}/manual_time_mean", f"{NAME}/colder", f"{NAME}/cold/16"):
            self.assert_refused(self.run_on({**cell(NAME, "4x32x1"), "name": name}),
                                f"{name} is no name of bench_query")

    def test_tables_are_put_into_a_document(self) -> None:
        result = {"context": CONTEXT, "benchmarks": [cell(NAME, "4x32x1")]}
        ran = self.run_on_files(result, update="a\n<!-- query -->\nold\n<!-- /query -->\nb\n")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(str(self.updated), r"(?s)^a\n<!-- query -->\na CPU, 2026-01-02\. .*\|\n"
                                            r"<!-- /query -->\nb\n$")
        self.run_on_files(result, update="<!-- query -->\n<!-- /query -->\n<!-- b -->\n<!-- /b -->\n", block="b")
        self.assertRegex(str(self.updated), r"^<!-- query -->\n<!-- /query -->\n<!-- b -->\na CPU")
        self.assert_refused(self.run_on_files(result, update="nothing\n"), "wants the lines")

    def test_files_of_different_machines_are_refused(self) -> None:
        first = {"context": CONTEXT, "benchmarks": [cell(NAME, "4x32x1")]}
        self.assert_refused(self.run_on_files(first, {**first, "context": {**CONTEXT, "cpu": "another"}}),
                            "differ in cpu: a CPU; another")
        later = {**first, "context": {**CONTEXT, "date": "2026-01-04T00:00:00"}}
        self.assertIn("a CPU, 2026-01-02 to 2026-01-04. ", self.run_on_files(later, first).stdout)

    def test_a_failed_cell_is_refused(self) -> None:
        ran = self.run_on({"name": NAME, "error_occurred": True, "error_message": "no tile at all"})
        self.assert_refused(ran, "no tile at all")

    def test_a_malformed_result_is_refused_in_one_line(self) -> None:
        good = cell(NAME, "4x32x1", **rival("4x16x1", 1))
        for left_out in ("pairs", "4x16x1_q1", "4x16x1_q3"):
            bad = {key: value for key, value in good.items() if key != left_out}
            self.assert_refused(self.run_on(bad), f"{NAME}: '{left_out}' is no number above 0")
        for value in (0, -1, "1", None, float("nan"), float("inf"), 10**400):
            self.assert_refused(self.run_on({**good, "4x16x1": value}), f"{NAME}: '4x16x1' is no number")
        self.assert_refused(self.run_on({**good, "label": "tall"}), f"{NAME}: the label 'tall' is no shape")
        for content in ([], None, {"context": None}, {"context": CONTEXT, "benchmarks": [7]}):
            self.assert_refused(self.run_on_files(content), "not a result of bench_query")

    def test_what_is_no_result_is_refused_in_one_line(self) -> None:
        self.assert_refused(self.run_on(), "no cell of bench_query")


if __name__ == "__main__":
    unittest.main()
