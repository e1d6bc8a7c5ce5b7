#!/usr/bin/env python3
"""The package agrees with the header: errors, options and calls."""

import os
import re
import typing
import unittest

import gradwire
from gradwire import errors, native, options

PACKAGE = os.path.dirname(gradwire.__file__)


def fields(structure):
    names = {name for name, _ in native.ffi.typeof(f"struct gradwire_{structure}").fields}
    return {name.removesuffix("_") for name in names}


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


if __name__ == "__main__":
    unittest.main()
