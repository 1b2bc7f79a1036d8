"""make_torch.py OUT [MODEL...]: small PyTorch models through both exporters, with their loss curves.

For each MODEL: MODEL.x.npy, MODEL.y.npy (one batch), MODEL.json (the loss, and the losses of 20 steps in training mode for
each optimizer, by the name that Onward has for it), and MODEL.FORM.onnx: `torchscript` (dynamo=False, folded), `plain`
(the same, nothing folded), `training` (the same in training mode), `dynamo` (optimized) and `raw` (dynamo, not optimized).
Made with torch 2.15.0, onnx 1.23.2, onnxscript 0.7.2, numpy 2.3.5. Node metadata (stack traces) is taken out of the files.
eps=1e-3 for AdamW: with 1e-8 rounding decides the first steps wherever a gradient is zero but for rounding.
"""
import contextlib
import io
import json
import logging
import math
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
B = 4  # examples


class ConvBatchNorm(nn.Module):
    """A residual and a depthwise convolution, each with BatchNorm."""

    def __init__(self):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.dw, self.n2 = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.pw, self.fc = nn.Conv2d(8, 8, 1), nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.n1(self.c1(x)))
        return self.fc(self.pw(x + F.relu6(self.n2(self.dw(x)))).mean((2, 3)))


class Norms(nn.Module):
    """GroupNorm, InstanceNorm, LayerNorm with and without weights, RMSNorm in pieces."""

    def __init__(self):
        super().__init__()
        self.c1, self.g = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.c2, self.i = nn.Conv2d(8, 8, 3, padding=1), nn.InstanceNorm2d(8, affine=True)
        self.l, self.plain = nn.LayerNorm(8), nn.LayerNorm(8, elementwise_affine=False)
        self.r, self.fc = nn.Parameter(torch.ones(8)), nn.Linear(8, 4)
        # As after some training: equal to the ones of `plain`, an exporter would merge them.
        for p in (self.g.weight, self.g.bias, self.i.weight, self.i.bias, self.l.weight, self.l.bias, self.r):
            nn.init.normal_(p, 1.0, 0.1)

    def forward(self, x):
        x = torch.relu(self.g(self.c1(x)))
        x = torch.relu(self.i(self.c2(x))).mean((2, 3))
        x = self.l(x) + self.plain(x)
        return self.fc(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.r)


class Sinusoid(nn.Module):
    """Fixed positions (a buffer), nn.MultiheadAttention."""

    def __init__(self, T=6, D=16):
        super().__init__()
        angles = torch.arange(T).unsqueeze(1) * torch.exp(torch.arange(0, D, 2) * (-math.log(1e4) / D))
        table = torch.zeros(1, T, D)
        table[0, :, 0::2], table[0, :, 1::2] = angles.sin(), angles.cos()
        self.register_buffer("pe", table)
        self.emb, self.att = nn.Embedding(20, D), nn.MultiheadAttention(D, 2, batch_first=True)
        self.fc = nn.Linear(D, 4)

    def forward(self, x):
        h = self.emb(x) * 0.5 + self.pe[:, :x.shape[1]]
        return self.fc((h + self.att(h, h, h, need_weights=False)[0])[:, 0])


class Attention(nn.Module):
    """Heads of a block, with whatever `scores` does to them."""

    def __init__(self, D=16):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, x, scores, turn=lambda t: t):
        N, T, D = x.shape
        q, k, v = (t.view(N, T, 2, D // 2).transpose(1, 2) for t in self.qkv(x).split(D, 2))
        a = scores(turn(q) @ turn(k).transpose(2, 3) * (1 / math.sqrt(D // 2)))
        return (a.softmax(-1) @ v).transpose(1, 2).reshape(N, T, D)


class Gpt(nn.Module):
    """A causal mask of -inf, learned positions, and an output layer that is the embedding."""

    def __init__(self, V=20, D=16, T=6):
        super().__init__()
        self.wte, self.wpe, self.head = nn.Embedding(V, D), nn.Embedding(T, D), nn.Linear(D, V, bias=False)
        self.n1, self.att, self.o = nn.LayerNorm(D), Attention(D), nn.Linear(D, D)
        self.n2, self.up, self.down = nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        nn.init.normal_(self.wte.weight, std=0.3)
        self.head.weight = self.wte.weight
        self.register_buffer("mask", torch.full((T, T), float("-inf")).triu(1))

    def forward(self, x):
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        h = h + self.o(self.att(self.n1(h), lambda a: a + self.mask))
        return self.head(h + self.down(F.gelu(self.up(self.n2(h))))).transpose(1, 2)


class Vit(nn.Module):
    """A class token of zeros, learned positions."""

    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16))
        self.pos = nn.Parameter(torch.randn(1, 5, 16) * 0.02)
        self.layer = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(x.shape[0], -1, -1), h], 1) + self.pos
        return self.fc(self.layer(h)[:, 0])


class Lstm(nn.Module):
    """Start states that are no parameters."""

    def __init__(self):
        super().__init__()
        self.r, self.fc = nn.LSTM(5, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        h = torch.zeros(1, x.shape[0], 8)
        return self.fc(self.r(x, (h, h + 0.1))[0][:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.r, self.fc = nn.GRU(5, 4, 2, batch_first=True, bidirectional=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(self.r(x)[0][:, -1])


class ConvNext(nn.Module):
    """A learned scale for each channel of a block."""

    def __init__(self):
        super().__init__()
        self.stem, self.dw = nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.n, self.a, self.b = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.gamma, self.fc = nn.Parameter(torch.full((8,), 0.1)), nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        y = self.gamma * self.b(F.gelu(self.a(self.n(self.dw(x).permute(0, 2, 3, 1)))))
        return self.fc((x + y.permute(0, 3, 1, 2)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.u, self.o = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = torch.relu(self.d1(x))
        return self.o(torch.cat([a, self.u(torch.relu(self.d2(F.max_pool2d(a, 2))))], 1))


class MeanStd(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.2, 0.3, 0.25]).view(1, 3, 1, 1))
        self.c, self.fc = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        return self.fc(torch.relu(self.c((x - self.mean) / self.std))).mean((2, 3))


class Denorm(nn.Module):
    """Input and output in their units."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 3)
        for name, size in (("xm", 8), ("xs", 8), ("ym", 3), ("ys", 3)):
            self.register_buffer(name, torch.rand(size) + 0.5)

    def forward(self, x):
        return self.b(torch.tanh(self.a((x - self.xm) / self.xs))) * self.ys + self.ym


class Anchors(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.h = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 4, 1)
        ys, xs = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        self.register_buffer("centers", torch.stack([xs + 0.5, ys + 0.5], -1).view(1, 16, 2) / 4)
        self.register_buffer("stride", torch.full((16, 1), 2.0))
        self.register_buffer("sizes", torch.rand(16, 2))

    def forward(self, x):
        p = self.h(torch.relu(self.c(x))).flatten(2).transpose(1, 2)
        xy = (torch.sigmoid(p[..., :2]) + self.centers) * self.stride
        return torch.cat([xy, torch.exp(p[..., 2:]) * self.sizes], -1).flatten(1)


class Slopes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.p, self.b, self.q, self.c = nn.Linear(8, 16), nn.PReLU(16), nn.Linear(16, 16), nn.PReLU(), nn.Linear(16, 4)

    def forward(self, x):
        return self.c(F.elu(self.q(self.b(self.p(self.a(x - 0.5))))))


class WeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.a, self.b = norm(nn.Conv1d(3, 8, 3, padding=1)), norm(nn.Linear(8, 4))

    def forward(self, x):
        return self.b(torch.relu(self.a(x)).mean(2))


class Temperature(nn.Module):
    """A learned single number: only the dynamo exporter says so."""

    def __init__(self):
        super().__init__()
        self.a, self.t, self.b = nn.Linear(8, 16), nn.Parameter(torch.tensor(1.5)), nn.Linear(16, 4)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))) * self.t


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.att, self.fc = nn.Embedding(20, 16), Attention(), nn.Linear(16, 4)
        self.register_buffer("inv", 1 / 1e4 ** (torch.arange(0, 8, 2) / 8), persistent=False)

    def forward(self, x):
        f = torch.outer(torch.arange(x.shape[1]).float(), self.inv)
        c, s = torch.cat([f, f], -1).cos(), torch.cat([f, f], -1).sin()
        turn = lambda t: t * c + torch.cat([-t[..., 4:], t[..., :4]], -1) * s
        return self.fc(self.att(self.wte(x), lambda a: a, turn).mean(1))


class RelativeBias(nn.Module):
    """A learned table of biases by distance, and a learned scale for each head."""

    def __init__(self, T=6):
        super().__init__()
        self.emb, self.att, self.fc = nn.Embedding(20, 16), Attention(), nn.Linear(16, 4)
        self.table, self.scale = nn.Parameter(torch.randn(2 * T - 1, 2) * 0.2), nn.Parameter(torch.ones(2, 1, 1))
        self.register_buffer("index", torch.arange(T)[None] - torch.arange(T)[:, None] + T - 1)

    def forward(self, x):
        bias = self.table[self.index.view(-1)].view(6, 6, 2).permute(2, 0, 1).unsqueeze(0)
        return self.fc(self.att(self.emb(x), lambda a: a * self.scale + bias).mean(1))


class Alibi(nn.Module):
    """Slopes by head times distance, and a mask of -1e9."""

    def __init__(self, T=6):
        super().__init__()
        self.emb, self.att, self.fc = nn.Embedding(20, 16), Attention(), nn.Linear(16, 4)
        self.register_buffer("slopes", torch.tensor([0.25, 0.0625]).view(2, 1, 1))
        self.register_buffer("mask", torch.zeros(T, T).masked_fill(torch.ones(T, T).triu(1).bool(), -1e9))

    def forward(self, x):
        p = torch.arange(x.shape[1])
        distance = -(p[:, None] - p[None]).abs().float()
        return self.fc(self.att(self.emb(x), lambda a: a + self.slopes * distance + self.mask).mean(1))


class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b, self.c = nn.Parameter(torch.randn(6, 8) * 0.3), nn.Parameter(torch.zeros(6)), nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return F.linear(torch.tanh(F.linear(x, self.w, self.b)), self.w.t(), self.c)


class Tokens(nn.Module):
    """A mask token, and learned queries."""

    def __init__(self):
        super().__init__()
        self.e, self.fc = nn.Linear(8, 16), nn.Linear(16, 4)
        self.token, self.queries = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 3, 16))
        self.att = nn.MultiheadAttention(16, 2, batch_first=True)
        self.register_buffer("hidden", torch.tensor([True, False, True, False]).view(1, 4, 1))

    def forward(self, x):
        h = torch.where(self.hidden, self.token, self.e(x))
        return self.fc(self.att(self.queries.expand(x.shape[0], -1, -1), h, h, need_weights=False)[0].mean(1))


image, ids = lambda: torch.rand(B, 3, 8, 8), lambda: torch.randint(0, 20, (B, 6))
row, steps = lambda: torch.rand(B, 8), lambda: torch.rand(B, 6, 5)
classes = lambda x: torch.arange(B) % 4
both, all_forms = ["torchscript", "dynamo"], ["torchscript", "plain", "dynamo", "raw"]
# name: module, inputs, labels, forms that are kept
MODELS = {
    "conv_batch_norm": (ConvBatchNorm, image, classes, ["plain", "training", "raw"]),
    "norms": (Norms, image, classes, both),
    "sinusoid": (Sinusoid, ids, classes, both),
    "gpt": (Gpt, ids, lambda x: torch.randint(0, 20, x.shape), both),
    "vit": (Vit, image, classes, both),
    "lstm": (Lstm, steps, classes, ["torchscript"]),
    "gru": (Gru, steps, classes, ["torchscript"]),
    "convnext": (ConvNext, image, classes, both),
    "unet": (UNet, image, lambda x: torch.randint(0, 4, (B, 8, 8)), ["torchscript"]),
    "mean_std": (MeanStd, image, classes, all_forms),
    "denorm": (Denorm, row, lambda x: torch.rand(B, 3), both),
    "anchors": (Anchors, image, lambda x: torch.rand(B, 64), both),
    "slopes": (Slopes, row, classes, both),
    "weight_norm": (WeightNorm, lambda: torch.rand(B, 3, 8), classes, ["plain"]),
    "temperature": (Temperature, row, classes, ["dynamo", "raw"]),
    "rotary": (Rotary, ids, classes, ["dynamo"]),
    "relative_bias": (RelativeBias, ids, classes, ["plain"]),
    "alibi": (Alibi, ids, classes, both),
    "tied_autoencoder": (TiedAutoencoder, row, lambda x: torch.rand(B, 8), both),
    "tokens": (Tokens, lambda: torch.rand(B, 4, 8), classes, both),
}
OPTIMIZERS = {
    "sgd:lr=0.05": lambda p: torch.optim.SGD(p, lr=0.05),
    "sgd:lr=0.01": lambda p: torch.optim.SGD(p, lr=0.01),
    "adamw:lr=1e-3,eps=1e-3": lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-3),
}
CAREFUL = ["norms"]  # with 0.05 PyTorch's float curve leaves its double curve by 3e-4


def make(name):
    torch.manual_seed(0)
    model = MODELS[name][0]()
    for p in model.parameters():  # the dynamo exporter leaves out what adds zero
        if p.dim() == 1 and not p.any():
            nn.init.normal_(p, 0.0, 0.1)
    return model


def curve(name, optimizer, x, y):
    model = make(name).train()
    opt, losses = OPTIMIZERS[optimizer](model.parameters()), []
    loss_of = F.mse_loss if y.is_floating_point() else F.cross_entropy
    for _ in range(20):
        opt.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        opt.step()
        losses.append(float(f"{loss.item():.8g}"))
    return losses


def export(model, x, path, form):
    common = dict(input_names=["x"], output_names=["y"])
    with contextlib.redirect_stdout(io.StringIO()):
        if form in ("dynamo", "raw"):
            torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=form == "dynamo", external_data=False, **common)
        else:
            training = form == "training"
            torch.onnx.export(model.train(training), (x,), path, dynamo=False, opset_version=17, do_constant_folding=form == "torchscript",
                              training=torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL, **common)
    proto = onnx.load(path)
    proto.graph.ClearField("metadata_props")
    for function in proto.functions:
        function.ClearField("metadata_props")
    for node in list(proto.graph.node) + [n for f in proto.functions for n in f.node]:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    onnx.save(proto, path)


out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for name in sys.argv[2:] or MODELS:
    torch.manual_seed(1)
    x = MODELS[name][1]()
    y = MODELS[name][2](x)
    np.save(f"{out}/{name}.x.npy", x.numpy())
    np.save(f"{out}/{name}.y.npy", y.numpy())
    result = {"loss": "mse" if y.is_floating_point() else "cross_entropy"}
    skipped = "sgd:lr=0.05" if name in CAREFUL else "sgd:lr=0.01"
    result.update({optimizer: curve(name, optimizer, x, y) for optimizer in OPTIMIZERS if optimizer != skipped})
    json.dump(result, open(f"{out}/{name}.json", "w"), indent=None)
    for form in MODELS[name][3]:
        export(make(name), x, f"{out}/{name}.{form}.onnx", form)
    print(name, {k: (v[0], v[-1]) for k, v in result.items() if k != "loss"}, flush=True)
