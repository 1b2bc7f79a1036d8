# SPDX-License-Identifier: Apache-2.0
"""Writes recipes.txt: what PyTorch makes of 50 steps with each optimizer, loss and schedule, in double.

    pip install torch==2.13.0 numpy
    python tests/golden/make_recipes.py > tests/golden/recipes.txt

What PyTorch has not is written here as its paper has it. Nothing is random: numbers come from sines, which
recipes_test.cc makes again. A line is one of

    optimizer SPEC | losses at the steps of the first line
    schedule RATE SPEC | the rate of each step
    loss SPEC ; out KIND SHAPE TRANSFORM ; ... ; label KIND SHAPE | losses at these steps
"""
import math
import re
import sys
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
STEPS = 50
KEPT = [0, 1, 2, 5, 10, 20, 30, 40, 49]


def numbers(kind, shape, seed):
    i = np.arange(math.prod(shape), dtype=np.float64)
    wave = np.sin(1.3 * i + 0.7 * seed)
    if kind == "real":
        a = wave
    elif kind == "unit":
        a = 0.5 + 0.4 * wave
    elif kind == "count":
        a = i % 4
    elif kind == "bit":
        a = (i * 7 + 3) % 5 // 3
    elif kind == "sign":
        a = (i * 7 + 3) % 5 // 3 * 2 - 1
    elif kind == "box":  # x1, y1, x2, y2
        a = wave * 0.3 + (i % 4 // 2) * 1.5
    elif kind == "path":  # each class twice
        a = 1 + i // 2 % 2
    elif kind == "half":  # 1 1, 2 3, 1 1: two steps are too few for a repetition
        a = np.array([1, 1, 2, 3, 1, 1][: len(i)])
    elif kind.startswith("class"):
        a = (i * 7 + 3) % int(kind[5:])
    elif kind == "share":  # sums up to 1 along axis 1
        a = 1.1 + wave
        a = a.reshape(shape)
        return a / a.sum(1, keepdims=True)
    else:
        raise ValueError(kind)
    return a.reshape(shape)


def text(values):
    return " ".join(f"{v:.12g}" for v in values)


# Optimizers on a small network.


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        shapes = {"W1": (3, 5), "b1": (5,), "W2": (5, 2), "b2": (2,)}
        for k, (name, shape) in enumerate(shapes.items()):
            self.register_parameter(name, torch.nn.Parameter(torch.tensor(numbers("real", shape, k))))

    def forward(self, x):
        return torch.tanh(x @ self.W1 + self.b1) @ self.W2 + self.b2


class Formula:
    """Steps of one parameter at a time: rule(x, g, state, t) -> x."""

    def __init__(self, parameters, rule):
        self.parameters, self.rule, self.t = list(parameters), rule, 0
        self.states = [{} for _ in self.parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        self.t += 1
        for p, state in zip(self.parameters, self.states):
            x = p.detach().numpy()
            p.data = torch.tensor(self.rule(x, p.grad.numpy(), state, self.t))


def lamb(lr=1e-3, b1=0.9, b2=0.999, eps=1e-6, decay=0.01):
    """You et al., Large batch optimization for deep learning, algorithm 2."""

    def rule(x, g, s, t):
        s["m"] = b1 * s.get("m", 0 * x) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0 * x) + (1 - b2) * g * g
        r = s["m"] / (1 - b1**t) / (np.sqrt(s["v"] / (1 - b2**t)) + eps) + decay * x
        return x - lr * np.linalg.norm(x) / np.linalg.norm(r) * r

    return rule


def lars(lr=0.1, momentum=0.9, trust=1e-3, eps=1e-8, decay=0.0):
    """You et al., Large batch training of convolutional networks, algorithm 1."""

    def rule(x, g, s, t):
        q = trust * np.linalg.norm(x) / (np.linalg.norm(g) + decay * np.linalg.norm(x) + eps)
        s["m"] = momentum * s.get("m", 0 * x) + lr * q * (g + decay * x)
        return x - s["m"]

    return rule


def lion(lr=1e-4, b1=0.9, b2=0.99, decay=0.0):
    """Chen et al., Symbolic discovery of optimization algorithms, algorithm 2."""

    def rule(x, g, s, t):
        m = s.get("m", 0 * x)
        s["m"] = b2 * m + (1 - b2) * g
        return x - lr * (np.sign(b1 * m + (1 - b1) * g) + decay * x)

    return rule


class Muon:
    """PyTorch's, in double instead of bfloat16, and AdamW for what is no matrix."""

    def __init__(self, parameters, **options):
        parameters = list(parameters)
        self.parts = [
            torch.optim.Muon([p for p in parameters if p.ndim == 2], **options),
            torch.optim.AdamW([p for p in parameters if p.ndim != 2], lr=options["lr"], weight_decay=0.1),
        ]

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        with mock.patch.object(torch, "bfloat16", torch.float64), mock.patch.object(torch.Tensor, "bfloat16", lambda t: t.clone()):
            for part in self.parts:
                part.step()


O = torch.optim
OPTIMIZERS = [
    ("sgd:lr=0.1", lambda p: O.SGD(p, lr=0.1)),
    ("sgd:lr=0.01,weight_decay=0.01,maximize=1", lambda p: O.SGD(p, lr=0.01, weight_decay=0.01, maximize=True)),
    ("sgd:lr=0.05,momentum=0.9,dampening=0.5", lambda p: O.SGD(p, lr=0.05, momentum=0.9, dampening=0.5)),
    ("momentum:lr=0.05,weight_decay=0.01", lambda p: O.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01)),
    ("nesterov:lr=0.05", lambda p: O.SGD(p, lr=0.05, momentum=0.9, nesterov=True)),
    ("adagrad:lr=0.1,lr_decay=0.01", lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.01)),
    ("adagrad:lr=0.1,initial_accumulator_value=0.5,weight_decay=0.01",
     lambda p: O.Adagrad(p, lr=0.1, initial_accumulator_value=0.5, weight_decay=0.01)),
    ("adam:lr=0.02,weight_decay=0.01", lambda p: O.Adam(p, lr=0.02, weight_decay=0.01)),
    ("adam:lr=0.02,amsgrad=1,betas=0.5/0.9", lambda p: O.Adam(p, lr=0.02, amsgrad=True, betas=(0.5, 0.9))),
    ("amsgrad:lr=0.02,weight_decay=0.1", lambda p: O.Adam(p, lr=0.02, amsgrad=True, weight_decay=0.1)),
    ("adamw:lr=0.02", lambda p: O.AdamW(p, lr=0.02)),
    ("adamw:lr=0.02,amsgrad=1,weight_decay=0.1", lambda p: O.AdamW(p, lr=0.02, amsgrad=True, weight_decay=0.1)),
    ("adamax:lr=0.02", lambda p: O.Adamax(p, lr=0.02)),
    ("adamax:lr=0.02,weight_decay=0.1,eps=1e-3", lambda p: O.Adamax(p, lr=0.02, weight_decay=0.1, eps=1e-3)),
    ("nadam:lr=0.02", lambda p: O.NAdam(p, lr=0.02)),
    ("nadam:lr=0.02,weight_decay=0.1,decoupled_weight_decay=1,momentum_decay=0.1",
     lambda p: O.NAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.1)),
    ("nadam:lr=0.02,weight_decay=0.1", lambda p: O.NAdam(p, lr=0.02, weight_decay=0.1)),
    ("radam:lr=0.02", lambda p: O.RAdam(p, lr=0.02)),
    ("radam:lr=0.02,weight_decay=0.1,decoupled_weight_decay=1,betas=0.8/0.9",
     lambda p: O.RAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, betas=(0.8, 0.9))),
    ("rmsprop:lr=0.005", lambda p: O.RMSprop(p, lr=0.005)),
    ("rmsprop:lr=0.005,momentum=0.5,weight_decay=0.1",
     lambda p: O.RMSprop(p, lr=0.005, momentum=0.5, weight_decay=0.1)),
    # With the usual eps PyTorch's own float curve leaves its double curve by 1 % at the end, where the squares cancel.
    ("rmsprop:lr=0.005,centered=1,alpha=0.9,eps=0.01",
     lambda p: O.RMSprop(p, lr=0.005, centered=True, alpha=0.9, eps=0.01)),
    ("rmsprop:lr=0.005,centered=1,momentum=0.5", lambda p: O.RMSprop(p, lr=0.005, centered=True, momentum=0.5)),
    ("rprop:lr=0.01", lambda p: O.Rprop(p, lr=0.01)),
    ("rprop:lr=0.01,etas=0.4/1.3,step_sizes=1e-3/0.05,maximize=1",
     lambda p: O.Rprop(p, lr=0.01, etas=(0.4, 1.3), step_sizes=(1e-3, 0.05), maximize=True)),
    ("adadelta", lambda p: O.Adadelta(p)),
    ("adadelta:lr=0.5,rho=0.8,eps=1e-3,weight_decay=0.1",
     lambda p: O.Adadelta(p, lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)),
    ("adafactor", lambda p: O.Adafactor(p)),
    ("adafactor:lr=0.05,weight_decay=0.1,d=1.5,beta2_decay=-0.5,eps=1e-6/0.01",
     lambda p: O.Adafactor(p, lr=0.05, weight_decay=0.1, d=1.5, beta2_decay=-0.5, eps=(1e-6, 0.01))),
    ("muon:lr=0.02", lambda p: Muon(p, lr=0.02)),
    ("muon:lr=0.02,adjust_lr_fn=match_rms_adamw,nesterov=0,momentum=0.8",
     lambda p: Muon(p, lr=0.02, adjust_lr_fn="match_rms_adamw", nesterov=False, momentum=0.8)),
    ("lamb:lr=0.02", lambda p: Formula(p, lamb(lr=0.02))),
    ("lars:lr=5,weight_decay=0.1", lambda p: Formula(p, lars(lr=5, decay=0.1))),
    ("lion:lr=0.005,weight_decay=0.1", lambda p: Formula(p, lion(lr=0.005, decay=0.1))),
]


def optimizer_curve(make):
    network = Network()
    x, y = torch.tensor(numbers("real", (6, 3), 10)), torch.tensor(numbers("real", (6, 2), 11))
    optimizer = make(network.parameters())
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.mse_loss(network(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses[k] for k in KEPT]


# Schedules.

L = torch.optim.lr_scheduler
SCHEDULES = [
    (0.1, "constant", lambda o: L.ConstantLR(o, factor=1)),
    (0.1, "step:every=7,factor=0.3", lambda o: L.StepLR(o, 7, 0.3)),
    (0.1, "step:step_size=9,gamma=0.5", lambda o: L.StepLR(o, 9, 0.5)),
    (0.1, "multistep:at=4/9/20,factor=0.5", lambda o: L.MultiStepLR(o, [4, 9, 20], 0.5)),
    (0.1, "exponential:gamma=0.9", lambda o: L.ExponentialLR(o, 0.9)),
    (0.1, "linear:total=30,min=0.02", lambda o: L.LinearLR(o, 1.0, 0.2, 30)),
    (0.1, "polynomial:total=30,power=2", lambda o: L.PolynomialLR(o, 30, 2)),
    (0.1, "cosine:total=49,min=0.01", lambda o: L.CosineAnnealingLR(o, 49, 0.01)),
    (0.1, "cosine_restarts:period=6,factor=2,min=0", lambda o: L.CosineAnnealingWarmRestarts(o, 6, 2)),
    (0.1, "cosine_restarts:period=7,min=0.01", lambda o: L.CosineAnnealingWarmRestarts(o, 7, 1, 0.01)),
    (0.1, "onecycle:max=0.1,total=50", lambda o: L.OneCycleLR(o, 0.1, 50)),
    (0.3, "onecycle:total=50,pct_start=0.25,anneal_strategy=linear,div_factor=10,final_div_factor=100,three_phase=1",
     lambda o: L.OneCycleLR(o, 0.3, 50, pct_start=0.25, anneal_strategy="linear", div_factor=10,
                            final_div_factor=100, three_phase=True)),
    # What evaluations do to it is in plateau.txt.
    (0.1, "reduce_on_plateau:patience=3", lambda o: L.ConstantLR(o, factor=1)),
    (0.1, "exponential:gamma=0.9,warmup=5",
     lambda o: L.SequentialLR(o, [L.LinearLR(o, 0.2, 1.0, 4), L.ExponentialLR(o, 0.9)], [5])),
    # What begins elsewhere than at the base rate.
    (0.1, "onecycle:total=50,pct_start=0", lambda o: L.OneCycleLR(o, 0.1, 50, pct_start=0.0)),
]
WARMUP = 5


def warmed(spec):
    """The same after a warm-up, which `total` counts."""
    later = re.sub("total=([0-9]+)", lambda found: f"total={int(found[1]) + WARMUP}", spec)
    return f"{later}{',' if ':' in later else ':'}warmup={WARMUP}"


def warmed_curve(rates):
    return [rates[0] * (k + 1) / WARMUP for k in range(WARMUP)] + rates[: STEPS - WARMUP]


def schedule_curve(rate, make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    schedule = make(optimizer)
    rates = []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


# Losses: the outputs are TRANSFORM(x + W), and W learns.

TRANSFORMS = {
    "identity": lambda x: x,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "softmax": lambda x: torch.softmax(x, 1),
    "logsoftmax": lambda x: torch.log_softmax(x, 1),
}


def focal(x, z, alpha=0.25, gamma=2.0):
    """Lin et al., Focal loss for dense object detection."""
    p = torch.sigmoid(x)
    q = p * z + (1 - p) * (1 - z)
    a = alpha * z + (1 - alpha) * (1 - z)
    return (-a * (1 - q) ** gamma * torch.log(q)).mean()


def focal_classes(x, z, gamma=2.0):
    log_p = torch.log_softmax(x, 1).gather(1, z[:, None])
    return (-((1 - log_p.exp()) ** gamma) * log_p).mean()


def contrastive(a, b, y, margin=1.0):
    """Hadsell et al., Dimensionality reduction by learning an invariant mapping."""
    d = F.pairwise_distance(a, b)
    return (y * d**2 + (1 - y) * torch.clamp(margin - d, min=0) ** 2).mean() / 2


def all_pairs(x, y, margin=1.0):
    n, terms = len(x), []
    for i in range(n):
        for j in range(n):
            if i != j:
                d = torch.linalg.norm(x[i] - x[j])
                terms.append(d**2 / 2 if y[i] == y[j] else torch.clamp(margin - d, min=0) ** 2 / 2)
    return sum(terms) / len(terms)


def all_triplets(x, y, margin=1.0):
    n, terms = len(x), []
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if i != j and y[i] == y[j] and y[i] != y[k]:
                    gap = torch.linalg.norm(x[i] - x[j]) - torch.linalg.norm(x[i] - x[k])
                    terms.append(torch.clamp(gap + margin, min=0))
    return sum(terms) / len(terms)


def overlap(p, z):
    p, z = p.flatten(1), z.flatten(1)
    return (p * z).sum(1), (p + z).sum(1)


def dice(x, z, smooth=1.0):
    both, total = overlap(torch.sigmoid(x), z)
    return (1 - (2 * both + smooth) / (total + smooth)).mean()


def iou(p, z, smooth=1.0):
    both, total = overlap(p, z)
    return (1 - (both + smooth) / (total - both + smooth)).mean()


def box_iou(a, b, generalized):
    """torchvision.ops.generalized_box_iou_loss."""
    def area(left, top, right, bottom):
        return (right - left) * (bottom - top)

    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    both = torch.clamp(high - low, min=0).prod(1)
    either = area(*a.T) + area(*b.T) - both
    result = both / (either + 1e-7)
    if generalized:
        hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
        result = result - (hull - either) / (hull + 1e-7)
    return (1 - result).mean()


def ctc(x, y, **options):
    lengths = (y > 0).sum(1)
    return F.ctc_loss(x, y, torch.full((len(y),), len(x)), lengths, **options)


WEIGHTS = torch.tensor([0.5, 1.0, 2.5])
LOSSES = [
    ("cross_entropy ; out real 4x3 identity ; label class3 4", F.cross_entropy),
    ("cross_entropy:label_smoothing=0.1,ignore_index=1 ; out real 4x3 identity ; label class3 4",
     lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=1)),
    ("cross_entropy:weight=0.5/1/2.5 ; out real 4x3x2 identity ; label class3 4x2",
     lambda x, y: F.cross_entropy(x, y, WEIGHTS)),
    ("cross_entropy:weight=0.5/1/2.5,label_smoothing=0.2,ignore_index=0 ; out real 4x3x2 identity ; label class3 4x2",
     lambda x, y: F.cross_entropy(x, y, WEIGHTS, label_smoothing=0.2, ignore_index=0)),
    ("cross_entropy:weight=0.5/1/2.5,label_smoothing=0.2,reduction=sum ; out real 4x3 identity ; label class3 4",
     lambda x, y: F.cross_entropy(x, y, WEIGHTS, label_smoothing=0.2, reduction="sum")),
    ("cross_entropy:soft_labels=1 ; out real 4x3 identity ; label share 4x3", F.cross_entropy),
    ("cross_entropy:soft_labels=1,label_smoothing=0.2,weight=0.5/1/2.5 ; out real 4x3x2 identity ; label share 4x3x2",
     lambda x, y: F.cross_entropy(x, y, WEIGHTS, label_smoothing=0.2)),
    ("nll ; out real 4x3 logsoftmax ; label class3 4", F.nll_loss),
    ("nll:weight=0.5/1/2.5,ignore_index=1 ; out real 4x3x2 logsoftmax ; label class3 4x2",
     lambda x, y: F.nll_loss(x, y, WEIGHTS, ignore_index=1)),
    ("bce ; out real 4x3 identity ; label bit 4x3", F.binary_cross_entropy_with_logits),
    ("bce:pos_weight=0.5/1/2.5,weight=2/1/1 ; out real 4x3 identity ; label unit 4x3",
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, torch.tensor([2.0, 1, 1]), pos_weight=WEIGHTS)),
    ("bce:logits=probabilities ; out real 4x3 sigmoid ; label unit 4x3", F.binary_cross_entropy),
    ("mse ; out real 4x3 identity ; label real 4x3", F.mse_loss),
    ("mse:reduction=sum ; out real 4x3 identity ; label real 4x3", lambda x, y: F.mse_loss(x, y, reduction="sum")),
    ("l1 ; out real 4x3 identity ; label real 4x3", F.l1_loss),
    ("huber:delta=0.3 ; out real 4x3 identity ; label real 4x3", lambda x, y: F.huber_loss(x, y, delta=0.3)),
    ("smooth_l1 ; out real 4x3 identity ; label real 4x3", F.smooth_l1_loss),
    ("smooth_l1:beta=0.3 ; out real 4x3 identity ; label real 4x3", lambda x, y: F.smooth_l1_loss(x, y, beta=0.3)),
    ("kl ; out real 4x3 logsoftmax ; label share 4x3", F.kl_div),
    ("kl:reduction=batchmean,logits=logits ; out real 4x3 identity ; label share 4x3",
     lambda x, y: F.kl_div(torch.log_softmax(x, 1), y, reduction="batchmean")),
    ("kl:log_target=1,reduction=sum ; out real 4x3 logsoftmax ; label real 4x3",
     lambda x, y: F.kl_div(x, y, log_target=True, reduction="sum")),
    ("poisson ; out real 4x3 identity ; label count 4x3", F.poisson_nll_loss),
    ("poisson:log_input=0,full=1 ; out real 4x3 softplus ; label count 4x3",
     lambda x, y: F.poisson_nll_loss(x, y, log_input=False, full=True)),
    ("gaussian_nll ; out real 4x3 identity ; out real 4x3 softplus ; label real 4x3",
     lambda m, v, y: F.gaussian_nll_loss(m, y, v)),
    ("gaussian_nll:full=1,eps=0.01 ; out real 4x3 identity ; out real 4x3 softplus ; label real 4x3",
     lambda m, v, y: F.gaussian_nll_loss(m, y, v, full=True, eps=0.01)),
    ("hinge ; out real 4x3 identity ; label sign 4x3", lambda x, y: torch.clamp(1 - x * y, min=0).mean()),
    ("focal ; out real 4x3 identity ; label bit 4x3", focal),
    ("focal:gamma=1,alpha=0.6 ; out real 4x3 identity ; label bit 4x3", lambda x, y: focal(x, y, 0.6, 1.0)),
    ("focal:activation=softmax ; out real 4x3 identity ; label class3 4", focal_classes),
    ("cosine ; out real 4x3 identity ; label real 4x3",
     lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(len(x)))),
    ("cosine:margin=0.2 ; out real 4x3 identity ; out real 4x3 identity ; label sign 4",
     lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin=0.2)),
    ("triplet ; out real 4x3 identity ; out real 4x3 identity ; out real 4x3 identity ; label none", F.triplet_margin_loss),
    ("triplet:margin=2,p=1,swap=1 ; out real 4x3 identity ; out real 4x3 identity ; out real 4x3 identity ; label none",
     lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=2, p=1, swap=True)),
    ("triplet ; out real 6x3 identity ; label class2 6", all_triplets),
    ("contrastive ; out real 4x3 identity ; out real 4x3 identity ; label bit 4", contrastive),
    ("contrastive:margin=2 ; out real 6x3 identity ; label class3 6", lambda x, y: all_pairs(x, y, 2.0)),
    ("dice ; out real 2x1x3x2 identity ; label bit 2x1x3x2", dice),
    ("iou:logits=probabilities ; out real 2x1x3x2 sigmoid ; label bit 2x1x3x2", iou),
    ("iou:of=boxes ; out box 3x4 identity ; label box 3x4", lambda a, b: box_iou(a, b, False)),
    ("iou:of=generalized_boxes ; out box 3x4 identity ; label box 3x4", lambda a, b: box_iou(a, b, True)),
    ("ctc:logits=logits ; out real 6x3x4 identity ; label class4 3x2", lambda x, y: ctc(torch.log_softmax(x, 2), y)),
    ("ctc:logits=logits,reduction=sum ; out real 6x3x4 identity ; label path 3x2",
     lambda x, y: ctc(torch.log_softmax(x, 2), y.long(), reduction="sum")),
    ("ctc:logits=logits,batch_first=1,zero_infinity=1 ; out real 3x2x4 identity ; label half 3x2",
     lambda x, y: ctc(torch.log_softmax(x, 2).transpose(0, 1), y.long(), zero_infinity=True)),
]


def loss_curve(case, loss):
    outputs, label = [], []
    for k, part in enumerate(case.split(" ; ")[1:]):
        words = part.split()
        if words[1] == "none":
            continue
        shape = tuple(int(n) for n in words[2].split("x"))
        values = torch.tensor(numbers(words[1], shape, k))
        if words[0] == "out":
            w = torch.nn.Parameter(0.1 * torch.tensor(numbers("real", shape, 20 + k)))
            outputs.append((values, w, TRANSFORMS[words[3]]))
        else:
            label.append(values.long() if words[1].startswith("class") else values)
    optimizer = torch.optim.SGD([w for _, w, _ in outputs], lr=0.02)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(*[transform(x + w) for x, w, transform in outputs], *label)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return [losses[k] for k in KEPT]


print(f"# Written by make_recipes.py with torch {torch.__version__.split('+')[0]}.")
print("steps", *KEPT)
for spec, make in OPTIMIZERS:
    print("optimizer", spec, "|", text(optimizer_curve(make)))
for rate, spec, make in SCHEDULES:
    rates = schedule_curve(rate, make)
    print("schedule", rate, spec, "|", text(rates))
    if "warmup" not in spec and warmed(spec) not in [other for _, other, _ in SCHEDULES]:
        print("schedule", rate, warmed(spec), "|", text(warmed_curve(rates)))
for case, loss in LOSSES:
    print("loss", case, "|", text(loss_curve(case, loss)))
sys.stdout.flush()
