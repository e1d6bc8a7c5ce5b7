#!/usr/bin/env python3
"""The package as it is installed: it agrees with the header, has its libraries with it, and passes
its type checker and linter. Called with the path of the program, in its build folder."""

import os
import re
import subprocess
import sys
import typing
import unittest
from importlib import metadata

import gradwire
from gradwire import errors, native, options

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PACKAGE = os.path.dirname(gradwire.__file__)
CONFIG = os.path.join(ROOT, "python/pyproject.toml")


def fields(structure):
    names = {name for name, _ in native.ffi.typeof(f"struct gradwire_{structure}").fields}
    return {name.removesuffix("_") for name in names}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


class HeaderTest(unittest.TestCase):
    def test_errors__have_a_class_each(self):
        codes = set(native.words("error").values()) - {0}
        self.assertEqual(set(errors.CLASSES), codes)
        self.assertEqual(len(errors.Error.__subclasses__()), len(codes))
        for kind in errors.CLASSES.values():
            self.assertIs(getattr(gradwire, kind.__name__), kind)
        self.assertIs(type(errors.error_of(-1000, 2, "new")), errors.Error)

    def test_options__are_known_to_type_checkers(self):
        of_call = fields("call_options") - {"size", "worth_context"}
        self.assertEqual(set(options.CallOptions.__annotations__), of_call)
        self.assertEqual(set(options.JobOptions.__annotations__), fields("options") - {"size"})
        for enumeration in ("op", "via", "importance"):
            words = typing.get_args(getattr(options, enumeration.capitalize()))
            self.assertEqual(words, tuple(native.words(enumeration)))

    def test_calls__have_a_method_each(self):
        with open(os.path.join(PACKAGE, "gradwire.h"), encoding="utf-8") as file:
            names = re.findall(r"\bgradwire_(\w+)_with\(", file.read())
        self.assertGreater(len(set(names)), 5)
        for name in set(names) - {"NAME"}:
            self.assertEqual(getattr(gradwire.Job, name).__name__, name)
            self.assertIn("Call", getattr(gradwire.Job, f"start_{name}").__annotations__["return"])


class WheelTest(unittest.TestCase):
    def test_libraries__are_with_it(self):
        needed, paths = set(), set()
        for name in ("libgradwire.so", "libsodium.so.23"):
            dynamic = run("readelf", "--dynamic", os.path.join(PACKAGE, name))
            needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
            paths |= set(re.findall(r"\((?:RUN|R)PATH\).*\[(.*)\]", dynamic))
        system = {"libc.so.6", "libpthread.so.0"}
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
