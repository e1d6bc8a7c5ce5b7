#!/usr/bin/env python3
"""The package as pip installs it: it has its libraries with it, and passes its type checker and
linter. Called with the path of the program, in its build folder."""

import os
import re
import subprocess
import sys
import unittest
from importlib import metadata

import gradwire

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PACKAGE = os.path.dirname(gradwire.__file__)
CONFIG = os.path.join(ROOT, "python/pyproject.toml")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


class WheelTest(unittest.TestCase):
    def test_libraries__are_with_it(self):
        needed, paths = set(), set()
        for name in ("libgradwire.so", "libsodium.so.23"):
            dynamic = run("readelf", "--dynamic", os.path.join(PACKAGE, name))
            needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
            paths |= set(re.findall(r"\((?:RUN|R)PATH\).*\[(.*)\]", dynamic))
        system = {"libc.so.6", "libm.so.6", "libpthread.so.0"}
        needed = {name for name in needed if not name.startswith("ld-linux")}
        self.assertEqual(needed - system, {"libsodium.so.23"})
        self.assertEqual(paths, {"$ORIGIN"})
        with open("/proc/self/maps", encoding="utf-8") as file:
            loaded = set(re.findall(r"/\S*/lib(?:gradwire|sodium)\S*", file.read()))
        self.assertEqual({os.path.dirname(path) for path in loaded}, {PACKAGE})
        self.assertEqual(len(loaded), 2)

    def test_version__is_that_of_the_program(self):
        self.assertEqual(run(PROGRAM, "version"), f"gradwire {gradwire.__version__}\n")
        self.assertEqual(metadata.version("gradwire"), gradwire.__version__)

    def test_wheel__is_for_any_interpreter(self):
        wheel = metadata.distribution("gradwire").read_text("WHEEL")
        self.assertRegex(wheel, r"(?m)^Tag: py3-none-linux_")
        self.assertTrue(os.path.exists(os.path.join(PACKAGE, "py.typed")))


class StyleTest(unittest.TestCase):
    def tool(self, *words):
        os.chdir(ROOT)
        cache = os.path.join(os.path.dirname(os.path.abspath(PROGRAM)), "python", words[0])
        run(sys.executable, "-m", *words, "--cache-dir", cache)

    def test_types__are_strict(self):
        for paths in (["python/gradwire"], ["examples/average.py"]):  # as it is here, as installed
            self.tool("mypy", "--config-file", CONFIG, "--strict", *paths)

    def test_style__is_the_project_s(self):
        paths = ("python", "tests/python", "tests/torch", "examples")
        self.tool("ruff", "check", "--config", CONFIG, *paths)
        self.tool("ruff", "format", "--check", "--config", CONFIG, *paths)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
