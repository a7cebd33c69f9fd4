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
        section = section[:section.index("\n## ")]
        commands = "".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
        # The Python that runs this test is the one known to have Jinja2.
        script = f'set -eu\npython3() {{ "{sys.executable}" "$@"; }}\n{commands}'
        with tempfile.TemporaryDirectory() as directory:
            # The root of the tree, but for what the commands leave there.
            tree = Path(directory) / "tree"
            tree.mkdir()
            for entry in ROOT.iterdir():
                if entry.name not in ("build", "tiles", "tiles.txt"):
                    (tree / entry.name).symlink_to(entry)
            environment = {**os.environ, "XDG_CACHE_HOME": directory}
            done = subprocess.run(["sh", "-c", script], cwd=tree, env=environment,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            index = json.loads((tree / "tiles" / "index.json").read_text())
            self.assertTrue((tree / "tiles" / "libuk_tiles.a").exists())
            rows, = (tree / "build" / "mine" / "generated").glob("*/tiles.inc")
            self.assertIn("(f32, f32, f32, 9, 48, 3, x86_64, avx2_fma,", rows.read_text())
        origins = [request["origin"] for request in index["requests"]]
        self.assertEqual(origins, ["generated", "generated", "generated", "hand"])
        self.assertIn("UK_DEFINE_STRIDED_TILE(uk_mmt4d_tile_s8s4s32_11x32x8_", done.stdout)
        self.assertRegex(done.stdout, r"\n\d+x\d+x4 uk_mmt4d_tile_s8s8s32_\w+_avx512_vnni \w+\n")


if __name__ == "__main__":
    unittest.main()
