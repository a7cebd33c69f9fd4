"""The files that the documents name or show are in the tree, and the README shows every picture."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [path for path in ROOT.rglob("*.md")
             if not {"build", "out"} & set(path.relative_to(ROOT).parts)]
PICTURES = ROOT / "bench" / "pictures"

# `path/file.ext`, and the target of a link or picture that is no URL.
_NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:cc|cmake|h|inc|j2|json|md|py|sh|svg))`")
_LINKED = re.compile(r"\]\((?!\w+:)([^)#\s]+)[^)]*\)")
_SHOWN = re.compile(r"!\[[^]]+\]\(([^)]+)\)")  # with a text for those who do not see it


class References(unittest.TestCase):
    def test_are_files_of_the_tree(self) -> None:
        self.assertGreaterEqual(len(DOCUMENTS), 5)
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            for name in {*_NAMED.findall(text), *_LINKED.findall(text)}:
                if not name.startswith("build/"):
                    there = (document.parent / name).exists() or (ROOT / name).exists()
                    self.assertTrue(there, f"{document.relative_to(ROOT)} names {name}")

    def test_pictures_are_shown(self) -> None:
        shown = set(_SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8")))
        there = {path.relative_to(ROOT).as_posix() for path in PICTURES.glob("*.svg")}
        self.assertEqual(shown, there)
        self.assertTrue(there)


if __name__ == "__main__":
    unittest.main()
