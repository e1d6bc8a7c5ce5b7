#!/usr/bin/env python3
"""Writes the table of a torch.nn.Module, for `gradwire model` and the workload `training`.

    python3 models/from_torch.py torchvision.models:resnet50 --input 3,224,224 > resnet50.csv
    python3 models/from_torch.py my_models:Translator --input long:64 --input long:64 > mine.csv

The module is made by calling what is named, without arguments, and runs once, with a batch of one.
Layers are in the order in which that run reaches them; what it does not reach has no gradients and
is left out, and named on standard error. A tensor that several layers share belongs to the first.
Multiply-accumulates are those of convolutions, linear layers and attention; others count none.
"""
import argparse
import csv
import importlib
import os
import sys

HEADER = ["layer", "kind", "weights", "biases", "macs"]


def parse_input(text):
    """'3,224,224' or 'long:64': the type and shape of one sample."""
    kind, _, shape = text.rpartition(":")
    try:
        shape = [int(part) for part in shape.split(",")]
    except ValueError:
        shape = []
    if kind not in ("", "float", "long") or not shape or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"expected a shape as 3,224,224 or long:64, not {text}")
    return kind or "float", shape


def fail(message):
    print(f"from_torch: {message}", file=sys.stderr)
    sys.exit(2)


def words_of(error):
    """What an error says, in one line; also of those that say a key, or nothing."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if lines and isinstance(error, (ImportError, AttributeError, TypeError, RuntimeError, ValueError)):
        return lines[0]
    return f"{kind}: {lines[0]}" if lines else kind


def make_model(name):
    """The module that `package.module:name` makes."""
    package, colon, attribute = name.partition(":")
    if not colon:
        fail(f"{name}: expected MODULE:NAME, as torchvision.models:resnet50")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(package), attribute)()
    except Exception as error:  # whatever a user's code does
        fail(f"{name}: {words_of(error)}")


class Recorder:
    """Rows of the table, in the order in which a forward pass reaches the layers."""

    def __init__(self, torch, model):
        self.torch = torch
        self.rows = []
        self.counted = set()  # ids of parameters that have a row
        self.reached = set()
        self.path = []  # names of the modules that run
        self.attention_depth = 0  # attention inside is counted by the module's own row
        for name, module in model.named_modules():
            module.register_forward_pre_hook(self.before(name), with_kwargs=True)
            module.register_forward_hook(self.after(name), with_kwargs=True)
        functional = torch.nn.functional
        self.attend = functional.scaled_dot_product_attention
        functional.scaled_dot_product_attention = self.count_attention

    def add(self, name, kind, tensors, macs):
        """One row, or several if there are more tensors than one of weights and one of biases."""
        fresh = {}
        for label, tensor in tensors:
            if tensor.requires_grad and id(tensor) not in self.counted:
                self.counted.add(id(tensor))
                fresh[label] = tensor.numel()
        biases = [size for label, size in fresh.items() if "bias" in label]
        weights = [size for label, size in fresh.items() if "bias" not in label]
        for i in range(max(len(weights), len(biases), 1)):
            row = [f"{name}.{i}" if i else name, kind, 0, 0, 0 if i else macs]
            row[2:4] = [sizes[i] if i < len(sizes) else 0 for sizes in (weights, biases)]
            if any(row[2:]):
                self.rows.append(row)

    def before(self, name):
        def hook(module, args, kwargs):
            self.path.append(name)
            if isinstance(module, self.torch.nn.MultiheadAttention):
                self.attention_depth += 1
                self.add_attention(name, module, args, kwargs)
            elif name not in self.reached:
                tensors = list(module.named_parameters(recurse=False))
                self.add(name or "model", self.kind_of(module), tensors, 0)
            self.reached.add(name)

        return hook

    def after(self, name):
        def hook(module, args, kwargs, output):
            self.path.pop()
            if isinstance(module, self.torch.nn.MultiheadAttention):
                self.attention_depth -= 1
            macs = self.macs_of(module, args, output)
            rows = [row for row in self.rows if row[0] == name]
            if macs and rows:
                rows[0][4] += macs
            elif macs:  # its parameters belong to another layer
                self.rows.append([name, self.kind_of(module), 0, 0, macs])

        return hook

    def kind_of(self, module):
        nn = self.torch.nn
        for kind, types in (
            ("conv", nn.modules.conv._ConvNd),
            ("fc", nn.Linear),
            ("bn", nn.modules.batchnorm._BatchNorm),
            ("ln", (nn.LayerNorm, nn.GroupNorm)),
            ("embed", (nn.Embedding, nn.EmbeddingBag)),
        ):
            if isinstance(module, types):
                return kind
        return type(module).__name__.lower()

    def macs_of(self, module, args, output):
        nn = self.torch.nn
        if isinstance(module, nn.modules.conv._ConvTransposeNd):
            return args[0].numel() * (module.weight.numel() // module.in_channels)
        if isinstance(module, nn.modules.conv._ConvNd):
            return output.numel() * (module.weight.numel() // module.out_channels)
        if isinstance(module, nn.Linear):
            return output.numel() * module.in_features
        return 0

    def add_attention(self, name, module, args, kwargs):
        """The products of nn.MultiheadAttention, whose parts do not run as modules."""
        query, key = (args + (kwargs.get("query"), kwargs.get("key")))[:2]
        axis = 1 if module.batch_first and query.dim() == 3 else 0
        steps, sources, width = query.shape[axis], key.shape[axis], module.embed_dim
        own = [(label, tensor) for label, tensor in module.named_parameters(recurse=False)]
        into = steps * width * width + sources * width * ((module.kdim or width) + (module.vdim or width))
        self.add(f"{name}.in", "fc", own, into)
        self.add(f"{name}.attn", "attn", [], 2 * steps * sources * width)
        self.add(f"{name}.out", "fc", list(module.out_proj.named_parameters()), steps * width * width)
        self.reached.add(f"{name}.out_proj")

    def count_attention(self, query, key, *args, **kwargs):
        if not self.attention_depth:
            macs = 2 * query.numel() * key.shape[-2]
            name = f"{self.path[-1] or 'model'}.attn"
            self.rows.append([name, "attn", 0, 0, macs])
        return self.attend(query, key, *args, **kwargs)


def table_of(torch, model, inputs, train):
    """The rows of a model, and the names of what its run did not reach."""
    model.train(train)
    recorder = Recorder(torch, model)
    samples = [
        torch.zeros(1, *shape, dtype=torch.long) if kind == "long" else torch.zeros(1, *shape)
        for kind, shape in inputs
    ]
    # With gradients: without, some modules take a shortcut past their parts.
    model(*samples)
    missed = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in recorder.counted]
    return recorder.rows, missed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", metavar="MODULE:NAME", help="a class or function that makes the module")
    parser.add_argument(
        "--input", action="append", type=parse_input, required=True, metavar="SHAPE",
        help="of one sample, as 3,224,224, or long:64 for numbers of tokens; again for each argument",
    )  # fmt: skip
    parser.add_argument(
        "--train", action="store_true",
        help="run as in training, which reaches auxiliary heads; batch normalisations need more than "
        "one value per channel",
    )  # fmt: skip
    args = parser.parse_args()
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # one that is there may not load
        fail(f"needs PyTorch: {words_of(error)}")
    model = make_model(args.module)
    if getattr(torch, "__version__", "2").startswith("1."):
        fail(f"needs PyTorch 2 or later, and this is {torch.__version__}")
    try:
        rows, missed = table_of(torch, model, args.input, args.train)
    except Exception as error:  # whatever a user's code does
        fail(f"{args.module} does not run with this input: {words_of(error)}")
    if missed:
        print(f"from_torch: not reached, left out: {', '.join(missed)}", file=sys.stderr)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows)


if __name__ == "__main__":
    main()
