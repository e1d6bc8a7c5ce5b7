"""A stand-in for PyTorch that knows the shapes of tensors and no values: what models/from_torch.py
asks of a model, under PyTorch's names and with its rules for names, order and sharing. The test of
that script puts it where Python finds `torch`, and so runs also where PyTorch is not installed."""
import math
import types

long = "long"


class Tensor:
    def __init__(self, *shape):
        self.shape = shape
        self.requires_grad = False

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)


class Parameter(Tensor):
    def __init__(self, *shape):
        super().__init__(*shape)
        self.requires_grad = True


def zeros(*shape, dtype="float"):
    return Tensor(*shape)


class Module:
    """Attributes that are parameters or modules belong to it, in the order in which they were set."""

    def __init__(self):
        self.before, self.after = [], []

    def members(self, kind):
        return [(name, value) for name, value in vars(self).items() if isinstance(value, kind)]

    def named_modules(self, prefix="", seen=None):
        seen = set() if seen is None else seen
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self.members(Module):
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def named_parameters(self, recurse=True):
        seen = set()
        for prefix, module in self.named_modules() if recurse else [("", self)]:
            for name, parameter in module.members(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{prefix}.{name}" if prefix else name, parameter

    def requires_grad_(self, on):
        for _, parameter in self.named_parameters():
            parameter.requires_grad = on
        return self

    def train(self, on):
        return self

    def register_forward_pre_hook(self, hook, with_kwargs):
        assert with_kwargs
        self.before.append(hook)

    def register_forward_hook(self, hook, with_kwargs):
        assert with_kwargs
        self.after.append(hook)

    def __call__(self, *args, **kwargs):
        for hook in self.before:
            hook(self, args, kwargs)
        output = self.forward(*args, **kwargs)
        for hook in self.after:
            hook(self, args, kwargs, output)
        return output

    def forward(self, x):
        """Of layers that keep the shape."""
        return x


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        self.count = len(modules)
        for i, module in enumerate(modules):
            setattr(self, str(i), module)

    def forward(self, x):
        for i in range(self.count):
            x = getattr(self, str(i))(x)
        return x


class ReLU(Module):
    pass


class Flatten(Module):
    def forward(self, x):
        return Tensor(x.shape[0], math.prod(x.shape[1:]))


def slid(shape, kernel, stride, padding):
    """Height and width after a window has gone over them."""
    return [(size + 2 * padding - kernel) // stride + 1 for size in shape[2:]]


class MaxPool2d(Module):
    def __init__(self, kernel, stride):
        super().__init__()
        self.window = (kernel, stride, 0)

    def forward(self, x):
        return Tensor(*x.shape[:2], *slid(x.shape, *self.window))


class _ConvNd(Module):
    pass


class _ConvTransposeNd(_ConvNd):
    pass


class _BatchNorm(Module):
    pass


class Conv2d(_ConvNd):
    def __init__(self, in_channels, out_channels, kernel, stride, padding):
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.window = (kernel, stride, padding)
        self.weight = Parameter(out_channels, in_channels, kernel, kernel)
        self.bias = Parameter(out_channels)

    def forward(self, x):
        assert x.shape[1] == self.in_channels
        return Tensor(x.shape[0], self.out_channels, *slid(x.shape, *self.window))


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(out_features, in_features)
        if bias:
            self.bias = Parameter(out_features)

    def forward(self, x):
        assert x.shape[-1] == self.in_features
        return Tensor(*x.shape[:-1], self.out_features)


class LayerNorm(Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = Parameter(width), Parameter(width)


class GroupNorm(LayerNorm):
    pass


class Embedding(Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = Parameter(count, width)

    def forward(self, x):
        return Tensor(*x.shape, self.weight.shape[1])


class EmbeddingBag(Embedding):
    pass


def scaled_dot_product_attention(query, key, value):
    return Tensor(*query.shape[:-1], value.shape[-1])


class MultiheadAttention(Module):
    """Its parts do not run as modules, and its heads run as they do without it."""

    def __init__(self, embed_dim, heads, batch_first):
        super().__init__()
        self.embed_dim, self.heads, self.batch_first = embed_dim, heads, batch_first
        self.kdim = self.vdim = embed_dim
        self.in_proj_weight = Parameter(3 * embed_dim, embed_dim)
        self.in_proj_bias = Parameter(3 * embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)

    def forward(self, query, key, value):
        assert self.batch_first and query.dim() == 3
        heads = [
            Tensor(x.shape[0], self.heads, x.shape[1], self.embed_dim // self.heads)
            for x in (query, key, value)
        ]
        nn.functional.scaled_dot_product_attention(*heads)
        return query, None


nn = types.SimpleNamespace(
    Module=Module,
    Sequential=Sequential,
    ReLU=ReLU,
    Flatten=Flatten,
    MaxPool2d=MaxPool2d,
    Conv2d=Conv2d,
    Linear=Linear,
    LayerNorm=LayerNorm,
    GroupNorm=GroupNorm,
    Embedding=Embedding,
    EmbeddingBag=EmbeddingBag,
    MultiheadAttention=MultiheadAttention,
    functional=types.SimpleNamespace(scaled_dot_product_attention=scaled_dot_product_attention),
    modules=types.SimpleNamespace(
        conv=types.SimpleNamespace(_ConvNd=_ConvNd, _ConvTransposeNd=_ConvTransposeNd),
        batchnorm=types.SimpleNamespace(_BatchNorm=_BatchNorm),
    ),
)
