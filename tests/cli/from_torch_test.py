#!/usr/bin/env python3
"""The script that writes the table of a torch module: what it says when it cannot, and that its
tables are those of the project. It runs with a stand-in for PyTorch (torch_shapes.py), and where
PyTorch 2 itself is installed also with that. Called with the path of the program."""
import json
import os
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "from_torch.py")
STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_shapes.py")
try:
    import torch

    HAS_TORCH = not torch.__version__.startswith("1.")
except ImportError:
    HAS_TORCH = False

# AlexNet, as in models/alexnet.csv; and what a table cannot see by its parameters alone.
MODULES = """\
import torch
from torch import nn

def alexnet():
    def block(i, o, k, s, p): return [nn.Conv2d(i, o, k, s, p), nn.ReLU()]
    pool = nn.MaxPool2d(3, 2)
    return nn.Sequential(
        *block(3, 64, 11, 4, 2), pool, *block(64, 192, 5, 1, 2), pool, *block(192, 384, 3, 1, 1),
        *block(384, 256, 3, 1, 1), *block(256, 256, 3, 1, 1), pool, nn.Flatten(),
        nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(3, 3)
        self.embed = nn.Embedding(100, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.out = nn.Linear(8, 100, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.out(self.frozen(self.norm(self.attention(x, x, x)[0])))
"""


class FromTorchTest(CommandCase):
    def write_table(self, *words, status=0):
        env = os.environ | {"PYTHONPATH": self.folder, "PYTHONDONTWRITEBYTECODE": "1"}
        return self.call(sys.executable, SCRIPT, *words, status=status, env=env)

    def model(self, name):
        return json.loads(self.call(PROGRAM, "model", name, "--json").stdout)

    def tables(self, module, shape):
        """The table as the program reads it, and the notes, with each torch that there is."""
        self.file("own_modules.py", MODULES)
        if HAS_TORCH:
            yield self.table(module, shape)
        with open(STAND_IN, encoding="utf-8") as file:
            self.file("torch.py", file.read())
        yield self.table(module, shape)

    def table(self, module, shape):
        done = self.write_table(f"own_modules:{module}", "--input", shape)
        return self.model(self.file(f"{module}.csv", done.stdout)), done.stderr

    def test_without_torch__it_says_so(self):
        self.file("torch.py", "raise ImportError('No module named torch')")
        done = self.write_table("torchvision.models:resnet50", "--input", "3,224,224", status=2)
        self.assertEqual(done.stderr, "from_torch: needs PyTorch: No module named torch\n")
        self.assertEqual(done.stdout, "")

    def test_old_torch__is_named(self):
        self.file("torch.py", "__version__ = '1.13.1'\n")
        self.file("mine.py", "net = object\n")
        done = self.write_table("mine:net", "--input", "3,224,224", status=2)
        self.assertEqual(done.stderr, "from_torch: needs PyTorch 2 or later, and this is 1.13.1\n")

    def test_arguments__are_checked(self):
        for shape in ("3,x", "0,2", "", "int:3"):
            done = self.write_table("a:b", "--input", shape, status=2)
            self.assertIn("expected a shape as 3,224,224 or long:64", done.stderr)
        self.file("torch.py", "")
        done = self.write_table("resnet50", "--input", "3", status=2)
        self.assertIn("resnet50: expected MODULE:NAME", done.stderr)
        done = self.write_table("no_such_module:it", "--input", "3", status=2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("no_such_module:it: No module named", done.stderr)

    def test_errors_of_users_code__are_one_line(self):
        self.file("torch.py", "")
        self.file("broken.py", "raise RuntimeError('no weights\\nat all')")
        self.file("own.py", "class Keyless:\n    def train(self, on): raise KeyError('bert')\n"
                            "class Silent:\n    def train(self, on): raise ValueError()\n"
                            "def late(): raise OSError('gone')\n")  # fmt: skip
        for module, words in [
            ("broken:it", "broken:it: no weights"),
            ("own:late", "own:late: OSError: gone"),
            ("own:Keyless", "own:Keyless does not run with this input: KeyError: 'bert'"),
            ("own:Silent", "own:Silent does not run with this input: ValueError"),
        ]:
            done = self.write_table(module, "--input", "3", status=2)
            self.assertEqual((done.stdout, done.stderr), ("", f"from_torch: {words}\n"))
        self.file("torch.py", "raise RuntimeError('made for another machine')")
        done = self.write_table("own:late", "--input", "3", status=2)
        self.assertEqual(done.stderr, "from_torch: needs PyTorch: made for another machine\n")

    def test_alexnet__is_the_projects_table(self):
        known = self.model("alexnet")
        for model, notes in self.tables("alexnet", "3,224,224"):
            for row, expected in zip(model["table"], known["table"], strict=True):
                self.assertEqual(row | {"layer": ""}, expected | {"layer": ""})
            self.assertEqual(notes, "")

    def test_shared_and_unused_parameters__count_once_and_never(self):
        expected = [
            ("embed", "embed", 800, 0, 0),
            ("attention.in", "fc", 192, 24, 3 * 10 * 64),
            ("attention.attn", "attn", 0, 0, 2 * 10 * 10 * 8),
            ("attention.out", "fc", 64, 8, 10 * 64),
            ("norm", "ln", 8, 8, 0),
            ("frozen", "fc", 0, 0, 10 * 64),
            ("out", "fc", 0, 0, 10 * 800),
        ]
        for model, notes in self.tables("Tied", "long:10"):
            rows = [(r["layer"], r["kind"], r["weights"], r["biases"], r["macs"]) for r in model["table"]]
            self.assertEqual(rows, expected)
            self.assertEqual(
                notes, "from_torch: not reached, left out: unused.weight, unused.bias\n"
            )


if __name__ == "__main__":
    unittest.main()
