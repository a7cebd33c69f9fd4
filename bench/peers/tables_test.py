"""bench/peers.py on results that are made up: what it computes, what it marks and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = {"cpu": "a CPU", "peers": "one 1, two 2", "date": "2026-01-02T03:04:05+00:00"}


def quartiles(**medians: float) -> dict[str, float]:
    """5 % off on either side: of 16 pairs, the median is certain to 1.57 * 0.1 / 4 = 3.9 %."""
    return {f"{name}{end}": value * factor for name, value in medians.items()
            for end, factor in (("_q1", 0.95), ("", 1), ("_q3", 1.05))}


def cell(name: str, milliseconds: float = 1, **figures: float) -> dict[str, object]:
    return {"name": f"{name}/iterations:1/manual_time", "real_time": milliseconds, "threads": 1,
            "GFLOP/s": 50, "cells_of_kind": 13, "pairs": 16, **quartiles(**{"peak%": 95, "pack": 1.25}), **figures}


def against(one: float, two: float) -> dict[str, float]:
    return {**quartiles(one=one, two=two, naive=0.5),
            "one_GFLOP/s": 50 / one, "two_GFLOP/s": 50 / two, "naive_GFLOP/s": 100}


class TablesTest(unittest.TestCase):
    def run_on(self, *cells: dict[str, object]) -> subprocess.CompletedProcess[str]:
        return self.run_on_files({"context": CONTEXT, "benchmarks": cells})

    def run_on_files(self, *contents: object) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as directory:
            paths = [Path(directory) / f"result{i}.json" for i in range(len(contents))]
            for path, content in zip(paths, contents):
                path.write_text(json.dumps(content))
            return subprocess.run([sys.executable, ROOT / "bench/peers.py", *paths],
                                  capture_output=True, text=True)

    def assert_refused(self, ran: subprocess.CompletedProcess[str], reason: str) -> None:
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
        self.assertIn(reason, ran.stderr)

    def test_mean_and_worst_are_against_the_best_peer_of_each_cell(self) -> None:
        ran = self.run_on(cell("f32/1x2x3/packed/threads:1", **against(4, 8)),
                          cell("f32/4x5x6/packed/threads:1", **against(2, 0.25)))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| f32 | operands packed | 1 | 2 of 13 | 1.00 | 0.25 at 4x5x6 (two) | 4x5x6 0.25 |",
                      ran.stdout)

    def test_what_misses_its_bar_is_bold(self) -> None:
        peak = quartiles(**{"peak%": 90})
        ran = self.run_on(cell("f32/128x5x6/packed/threads:1", **against(0.95, 1), **peak),
                          cell("f32/16x5x6/packed/threads:1", **against(1, 1), **peak))
        self.assertIn("| 128x5x6 | 50.0 | **90.0** | 0.50 | **0.95** |", ran.stdout)
        self.assertIn("| 16x5x6 | 50.0 | 90.0 | 0.50 | 1.00 |", ran.stdout)

    def test_packing_pays_when_what_calls_save_exceeds_it(self) -> None:
        # 15 ms to pack, 1.25 times what a call with it takes, then 2 ms a call where the peer needs 6.
        ran = self.run_on(cell("f32/4x5x6/rows/threads:1", 2, **against(1, 1)),
                          cell("f32/4x5x6/nk/threads:1", 12, **against(0.5, 0.6)))
        self.assertIn("| weights N x K | 15.00 | 2.00 | 6.00 (one) | 4 |", ran.stdout)

    def test_packing_never_pays_against_a_peer_that_is_faster_without(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/rows/threads:1", 2, **against(1, 1)),
                          cell("f32/4x5x6/nk/threads:1", 12, **against(0.1, 0.6)))
        self.assertIn("| 1.20 (one) | never |", ran.stdout)

    def test_a_figure_above_what_the_machine_can_do_fails(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **against(1, 1), **{"peak%": 101.5}))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("f32 4x5x6 operands packed, threads: 1: peak% 101.5", ran.stderr)

    def test_a_failed_cell_is_refused(self) -> None:
        ran = self.run_on({"name": "f32/4x5x6/packed/threads:1", "error_occurred": True,
                           "error_message": "one is wrong"})
        self.assertEqual(ran.returncode, 2)
        self.assertIn("one is wrong", ran.stderr)

    def assert_missing(self, ran: subprocess.CompletedProcess[str], *lines: str) -> None:
        """The list at the end, and what the head says of it."""
        self.assertEqual(ran.returncode, 0, ran.stderr)
        head, *_ = ran.stdout.splitlines()
        _, _, listed = ran.stdout.partition("by more than 5 %:\n\n")
        self.assertEqual(listed.splitlines()[:-1], [f"- {line}" for line in lines])
        self.assertRegex(head, f" {len(lines)} of \\d+ cells were disturbed: see the end.$")

    def test_a_cell_whose_ratio_is_disturbed_counts_in_no_mean(self) -> None:
        wild = {**against(0.5, 1), "one_q1": 0.45, "one_q3": 0.6}  # 1.57 * 0.3 / 4
        ran = self.run_on(cell("f32/1x2x3/packed/threads:1", **against(2, 2)),
                          cell("f32/4x5x6/packed/threads:1", **wild))
        self.assertIn("| f32 | operands packed | 1 | 1 of 13 | 2.00 |", ran.stdout)
        self.assertIn("| f32 | 4x5x6 | 50.0 | 95.0 | 0.50 | ? | one 100.0 |\n", ran.stdout)
        self.assert_missing(ran, "f32 4x5x6 operands packed, threads: 1: geometric means (one, 11.8 %)")

    def test_a_cell_whose_percent_of_the_peak_is_disturbed_is_in_no_table_of_peaks(self) -> None:
        wild = {**quartiles(**{"peak%": 95}), "peak%_q1": 70}  # 1.57 * 0.313 / 4
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **against(1, 1), **wild))
        self.assertIn("| f32 | operands packed | 1 | 1 of 13 | 1.00 |", ran.stdout)
        self.assertNotIn("One thread", ran.stdout)
        self.assert_missing(ran, "f32 4x5x6 operands packed, threads: 1: peaks (peak%, 12.3 %)")

    def test_weights_from_memory_are_judged_by_what_they_are_percents_of(self) -> None:
        name = "f32/4x5x6/packed/cold/threads:1"
        good = {**against(1, 1), **quartiles(**{"read%": 90}), "bound%": 95}
        ran = self.run_on(cell(name, **{**good, "one_q3": 9, "two_q3": 9}))
        self.assertIn("| f32 | 4x5x6 | 50.0 | 90.0 | 95.0 | 95.0 | ? (one) |", ran.stdout)
        for figure in ("peak%", "read%"):
            ran = self.run_on(cell(name, **{**good, f"{figure}_q3": 200}))
            self.assertIn("| f32 | operands packed, cold | 1 | 1 of 13 |", ran.stdout)
            self.assertNotIn("Weights from memory;", ran.stdout)
            self.assertIn(f"cold, threads: 1: weights from memory ({figure}, ", ran.stdout)

    def test_two_threads_are_judged_by_their_gain(self) -> None:
        name = "f32/128x5x6/packed/threads:2"
        good = {**against(1, 1), **quartiles(gain=1.8), "peak_gain": 2, "scaling": 0.9}
        ran = self.run_on(cell(name, **{**good, "one_q3": 9}))
        self.assertIn("| f32 | 128x5x6 | 1.80 | 2.00 | **0.90** |", ran.stdout)
        self.assertNotIn("geometric mean of", ran.stdout)
        ran = self.run_on(cell(name, **{**good, "peak%_q3": 200}))  # what the peak gains comes of it
        self.assertIn("| f32 | 128x5x6 | 1.80 | ? | ? |", ran.stdout)
        ran = self.run_on(cell(name, **{**good, "gain_q1": 0.9, "one_q3": 1.5}))
        self.assertNotIn("Two threads;", ran.stdout)
        self.assert_missing(ran, "f32 128x5x6 operands packed, threads: 2: geometric means (one, 21.6 %), "
                                 "two threads (gain, 21.6 %)")

    def test_packing_is_judged_by_itself_both_calls_and_the_peer(self) -> None:
        packed, unpacked = "f32/4x5x6/rows/threads:1", "f32/4x5x6/nk/threads:1"
        wild = {"peak%_q3": 200}
        for more in (({}, {"one_q3": 0.9}), ({}, {"pack_q3": 9}), ({}, wild), (wild, {})):
            ran = self.run_on(cell(packed, 2, **{**against(1, 1), **more[0]}),
                              cell(unpacked, 12, **{**against(0.5, 0.6), **more[1]}))
            self.assertNotIn("worth packing", ran.stdout)
            self.assertIn("f32 4x5x6 weights N x K, threads: 1: ", ran.stdout)
            self.assertRegex(ran.stdout, r"packing \((one|pack|peak%|peak% of weights packed), \d")
        ran = self.run_on(cell(packed, 2, **{**against(1, 1), "one_q3": 9}), cell(unpacked, 12, **against(0.5, 0.6)))
        self.assertIn("| 15.00 | 2.00 | 6.00 (one) | 4 |", ran.stdout)

    def test_what_no_table_judges_is_not_missing(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/rows/threads:1", **against(1, 1), **{"peak%_q3": 200}),
                          cell("f16/4x5x6/rows/threads:1", **{"peak%_q3": 200}))
        self.assertEqual((ran.returncode, "disturbed" in ran.stdout), (0, False), ran.stdout)

    def test_more_pairs_make_a_median_certain(self) -> None:
        wild = {**against(0.5, 1), "one_q1": 0.45, "one_q3": 0.6}
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **{**wild, "pairs": 100}))
        self.assertIn("1 of 13", ran.stdout)

    def test_of_cells_measured_twice_the_most_certain_counts(self) -> None:
        name = "f32/4x5x6/packed/threads:1"
        certain = cell(name, **against(2, 2))
        wild = cell(name, **{**against(1, 1), "one_q3": 1.2})
        for cells in ((certain, wild), (wild, certain)):
            self.assertIn("2.00 at 4x5x6", self.run_on(*cells).stdout)

    def test_aggregates_of_repetitions_are_no_cells(self) -> None:
        name = "f32/4x5x6/packed/threads:1"
        once = cell(name, **against(2, 2))
        # Google Benchmark computes each of all counters.
        deviations = {**cell(name, **against(0.01, 0.01)), "name": f"{once['name']}_stddev",
                      "run_type": "aggregate", "aggregate_name": "stddev"}
        errors = {key: 0.0 if isinstance(value, float) else value for key, value in deviations.items()}
        ran = self.run_on(once, deviations, errors)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout, self.run_on(once).stdout)
        self.assert_refused(self.run_on(deviations), "no cell of bench_ops")

    def test_names_count_as_a_whole(self) -> None:
        good = cell("f32/4x5x6/packed/threads:1", **against(1, 1))
        for name in ("f32/4x5x6/packed/threads:1_mean", "f32/4x5x6/packed/threads:1/manual_time_mean",
                     "f32/4x5x6/packed/threads:1/iterations:1/manual_time/more", "a/f32/4x5x6/packed/threads:1"):
            self.assert_refused(self.run_on(good, {**good, "name": name}), f"{name} is no name of bench_ops")

    def test_only_what_bars_are_about_disturbs_a_cell(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **{**against(0.5, 1), "two_q3": 3}))
        self.assertIn("1 of 13", ran.stdout)
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **{**against(0.5, 1), "naive_q3": 3}))
        self.assertIn("1 of 13", ran.stdout)
        self.assertIn("| f32 | 4x5x6 | 50.0 | 95.0 | ? | **0.50** |", ran.stdout)

    def test_a_run_of_disturbed_cells_alone_has_no_table(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **{**against(1, 1), "one_q1": 0.1, "peak%_q1": 9}))
        self.assertEqual((ran.returncode, ran.stdout.count("| --- |")), (0, 0), ran.stderr)

    def test_files_of_different_machines_are_refused(self) -> None:
        cells = [cell("f32/4x5x6/packed/threads:1", **against(1, 1))]
        first = {"context": CONTEXT, "benchmarks": cells}
        for name in ("cpu", "peers"):
            other = {"context": {**CONTEXT, name: "another"}, "benchmarks": cells}
            self.assert_refused(self.run_on_files(first, other), "differ in cpu or peers: a")
        later = {"context": {**CONTEXT, "date": "2026-01-04T00:00:00"}, "benchmarks": cells}
        self.assertIn("a CPU, 2026-01-02 to 2026-01-04; against", self.run_on_files(later, first).stdout)

    def test_a_malformed_result_is_refused_in_one_line(self) -> None:
        name = "f32/4x5x6/packed/threads:1"
        good = cell(name, **against(1, 1))
        for left_out in ("real_time", "GFLOP/s", "peak%", "peak%_q3", "one", "two_q1", "cells_of_kind",
                         "pairs"):
            bad = {key: value for key, value in good.items() if key != left_out}
            self.assert_refused(self.run_on(bad), f"{name}: '{left_out}' is no number above 0")
        for value in (0, -1, "1", None, float("nan"), float("inf"), 10**400):
            self.assert_refused(self.run_on({**good, "one": value}), f"{name}: 'one' is no number")
        for cold_or_two, lacks in (("cold/threads:1", "read%"), ("threads:2", "gain")):
            self.assert_refused(self.run_on({**good, "name": f"f32/4x5x6/packed/{cold_or_two}"}), lacks)
        for left_out in CONTEXT:
            context = {key: value for key, value in CONTEXT.items() if key != left_out}
            self.assert_refused(self.run_on_files({"context": context, "benchmarks": [good]}), left_out)
        for what, value, reason in (("cpu", 7, "text"), ("cpu", "", "text"), ("date", "", "text"),
                                    ("date", "today", "date")):
            context = {**CONTEXT, what: value}
            self.assert_refused(self.run_on_files({"context": context, "benchmarks": [good]}),
                                f"'{what}' is no {reason}")
        for content in ([], None, {"context": None}, {"context": CONTEXT, "benchmarks": [7]}):
            self.assert_refused(self.run_on_files(content), "not a result of bench_ops")

    def test_counters_that_no_table_shows_are_not_read(self) -> None:
        ran = self.run_on(cell("f32/4x5x6/packed/threads:1", **against(1, 1), more=10**400))
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_what_is_nested_too_deep_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as deep:
            deep.write("[" * 100000 + "]" * 100000)
            deep.flush()
            ran = subprocess.run([sys.executable, ROOT / "bench/peers.py", deep.name],
                                 capture_output=True, text=True)
        self.assert_refused(ran, "not a result of bench_ops: nested too deep")

    def test_what_is_no_result_is_refused_in_one_line(self) -> None:
        ran = self.run_on()
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)


if __name__ == "__main__":
    unittest.main()
