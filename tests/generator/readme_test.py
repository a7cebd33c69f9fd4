"""Runs the commands of the README's section "Missing a tile?" as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Readme(unittest.TestCase):
    def test_missing_a_tile(self) -> None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        section = text[text.index("## Missing a tile?"):]
        block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
        assert block
        # The Python that runs this test is the one known to have Jinja2.
        script = f'set -eu\npython3() {{ "{sys.executable}" "$@"; }}\n{block[1]}'
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": directory}
            done = subprocess.run(["sh", "-c", script], cwd=directory, env=environment,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            index = json.loads((Path(directory) / "tiles" / "index.json").read_text())
            self.assertTrue((Path(directory) / "tiles" / "libuk_tiles.a").exists())
        origins = [request["origin"] for request in index["requests"]]
        self.assertEqual(origins, ["generated", "generated", "hand"])
        self.assertIn('extern "C" void uk_mmt4d_tile_s8s4s32_12x32x8', done.stdout)


if __name__ == "__main__":
    unittest.main()
