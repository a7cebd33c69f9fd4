"""The report: what was measured, as one page that needs nothing else. See python3 -m bench.report -h."""
