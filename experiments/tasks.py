"""What the experiments train: small networks of the families that DLCP's Table 1 names, and a
transformer, each on two data sets that come with Debian or with Python.

digits    1,797 images of handwritten digits, 8 x 8 (python3-sklearn), enlarged to 16 x 16
fashion   28 x 28 images of clothes (dataset-fashion-mnist), reduced to 16 x 16; 2,400 of 60,000
topics    the text of Python's own help, by characters (pydoc_data)
library   source text of Python's standard library, by characters

Images are learnt by SGD with momentum, text by Adam. Of text the score is the negative loss, in
bits per character.
"""
import functools
import gzip
import math
import os
import sys
import sysconfig
from pathlib import Path

try:
    import torch
    from gradwire.profile import find_task
    from gradwire.training import Task
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"{Path(sys.argv[0]).name}: {error}: docs/convergence.md says what Python is needed",
          file=sys.stderr)
    sys.exit(2)

FASHION = Path("/usr/share/datasets/fashion-mnist")
SEQUENCE = 32  # characters that a network sees
CHARACTERS = 128
SIDE = 16  # of an image
CLASSES = 10


class MissingData(Exception):
    """A data set is not installed."""


@functools.cache
def digits():
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingData("digits: apt-get install python3-sklearn") from None
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    images = functional.interpolate(images, size=(SIDE, SIDE))
    labels = torch.tensor(found.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return divide(images[order], labels[order], test=360)


def read_idx(name, header):
    path = FASHION / f"{name}-ubyte.gz"
    if not path.is_file():
        raise MissingData("fashion: apt-get install dataset-fashion-mnist")
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


@functools.cache
def fashion():
    count, test = 2400, 800
    images = read_idx("train-images-idx3", 16).view(-1, 1, 28, 28)[: count + test].float() / 128 - 1
    labels = read_idx("train-labels-idx1", 8)[: count + test].long()
    images = functional.pad(functional.avg_pool2d(images, 2), (1, 1, 1, 1), value=-1)
    return divide(images, labels, test)


def divide(inputs, labels, test):
    return inputs[:-test], labels[:-test], inputs[-test:], labels[-test:]


def text_task(text, count=4000, test=400):
    """Pieces of a text, drawn at random; each character's label is the next one."""
    codes = torch.tensor(list(text.encode("ascii", "replace")))
    drawn = torch.Generator().manual_seed(0)
    border = len(codes) * 9 // 10  # what is tested comes from behind it
    begins = torch.randint(border - SEQUENCE, (count,), generator=drawn)
    others = torch.randint(border, len(codes) - SEQUENCE - 1, (test,), generator=drawn)
    pieces = torch.stack([codes[at : at + SEQUENCE + 1] for at in (*begins, *others)])
    return divide(pieces[:, :-1], pieces[:, 1:], test)


@functools.cache
def topics():
    from pydoc_data.topics import topics as texts

    return text_task("".join(texts[name] for name in sorted(texts)))


@functools.cache
def library():
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = sorted(os.listdir(folder))
    texts = [(folder / name).read_text("utf-8") for name in names if name.endswith(".py")]
    return text_task("".join(texts)[:1_000_000])


def convolutions(*widths, norm=False):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
        if norm:
            layers.insert(-1, nn.BatchNorm2d(outputs))
    return layers


def dense(*widths):
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return layers[:-1]


def alexnet():
    """Five convolutions, here with batch normalisation, and three dense layers."""
    layers = []
    for widths in [(1, 16), (16, 32), (32, 48, 32, 32)]:
        layers += [*convolutions(*widths, norm=True), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, *dense(32 * 2 * 2, 128, 128, CLASSES))


def vgg():
    """Pairs of convolutions with batch normalisation, three dense layers."""
    layers = []
    for inputs, outputs in [(1, 16), (16, 32), (32, 64)]:
        layers += [*convolutions(inputs, outputs, outputs, norm=True), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, *dense(64 * 2 * 2, 128, 128, CLASSES))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(2)])
        is_same = inputs == outputs and stride == 1
        self.aside = nn.Identity() if is_same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, values):
        inside = functional.relu(self.norms[0](self.first(values)))
        return functional.relu(self.norms[1](self.second(inside)) + self.aside(values))


def resnet(width=16, blocks=(2, 2, 2)):
    """Basic blocks in three stages, as of ResNet-18."""
    layers, inputs = convolutions(1, width, norm=True), width
    for stage, count in enumerate(blocks):
        outputs = width << stage
        for block in range(count):
            layers.append(Block(inputs, outputs, stride=2 if stage and not block else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), *dense(inputs, CLASSES))


def wide_resnet():
    """Half as deep, twice as wide."""
    return resnet(32, (1, 1, 1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(CHARACTERS, 32)
        self.inner = kind(32, 96, batch_first=True)
        self.out = nn.Linear(96, CHARACTERS)

    def forward(self, codes):
        return self.out(self.inner(self.embed(codes))[0])


class Transformer(nn.Module):
    """Two layers of four heads that see what came before."""

    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(CHARACTERS, width)
        self.place = nn.Parameter(torch.randn(SEQUENCE, width) / 8)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.inner = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(width, CHARACTERS)
        self.register_buffer("later", torch.ones(SEQUENCE, SEQUENCE).triu(1).bool())

    def forward(self, codes):
        return self.out(self.inner(self.embed(codes) + self.place, self.later))


def lstm():
    return Recurrent(nn.LSTM)


def gru():
    return Recurrent(nn.GRU)


def loss_of_text(outputs, labels):
    return functional.cross_entropy(outputs.transpose(1, 2), labels)


def score_of_text(outputs, labels):
    return -loss_of_text(outputs, labels).item() / math.log(2)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.005)


IMAGES = {"digits": (digits, 6), "fashion": (fashion, 4)}  # and epochs without loss
TEXTS = {"topics": (topics, 4), "library": (library, 4)}
NETWORKS = {  # and what they learn
    "lstm": (lstm, TEXTS),
    "gru": (gru, TEXTS),
    "transformer": (Transformer, TEXTS),
    "alexnet": (alexnet, IMAGES),
    "vgg": (vgg, IMAGES),
    "resnet": (resnet, IMAGES),
    "wide_resnet": (wide_resnet, IMAGES),
}
NAMES = [f"{network}/{data}" for network, (_, sets) in NETWORKS.items() for data in sets]


def find(name):
    """The task of this name, as `resnet/digits`, or of a user's own, as `FILE.py:NAME`.

    Raises ValueError if there is none, or MissingData.
    """
    if ":" in name:
        return find_task(name)
    if name not in NAMES:
        raise ValueError(f"{name}: there are {', '.join(NAMES)}, and FILE.py:NAME")
    network, _, data = name.partition("/")
    model, sets = NETWORKS[network]
    source, epochs = sets[data]
    more = {"optimizer": sgd}
    if sets is TEXTS:
        more = {"loss": loss_of_text, "score": score_of_text, "optimizer": adam}
    return Task(model, *source(), epochs=epochs, **more)
