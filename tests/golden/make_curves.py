"""make_curves.py PEERS OUT [inputs]: loss curves of PyTorch that Onward has to follow.

PEERS is the folder of the reference models (models.py), OUT receives for each model
  NAME.onnx    the start (torch.manual_seed(0), opset 15, nothing folded)
  NAME.x.npy, NAME.y.npy   one batch (torch.manual_seed(2); with seed 1 lenet meets a near-tie in a max pool in
                           step 3, where float programs part)
  NAME.json    the losses of 20 AdamW steps (lr 1e-3, PyTorch's defaults) on that batch, in training mode, in float and
               in double; for resnet18_32 also with eps 1e-3, for both models with BatchNormalization also with lr 1e-5
In front of another normalization a shift has a gradient of zero but for rounding, and Adam turns rounding into whole
steps: PyTorch's own float curve leaves its double curve by 12 % (mobilenetv2_96) and 0.9 % (resnet18_32). That is why
both are kept. A large eps takes rounding for what it is, so there the curves can be compared closely; but for
mobilenetv2_96, whose float curve leaves its double curve by 3 % at step 3 even so. With lr 1e-5 whole steps are small and
both of PyTorch's curves agree (0.04 %), the loss of mobilenetv2_96 going from 2.30 to 0.99.
The .json files are kept in tests/golden; with `inputs` only the rest is made, which is what the test needs beside them.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, sys.argv[1])
from models import MODELS, labels


def losses(make, x, y, dtype, eps, lr=1e-3):
    torch.manual_seed(0)
    model = make().to(dtype)
    x = x.to(dtype) if x.is_floating_point() else x
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, eps=eps)
    curve = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


out = sys.argv[2]
os.makedirs(out, exist_ok=True)
for name in ("mlp", "lenet", "resnet18_32", "mobilenetv2_96", "tinybert"):
    make, example, classes = MODELS[name]
    torch.manual_seed(0)
    model = make()
    torch.manual_seed(2)
    x = example()
    y = labels(x, classes, name)
    np.save(f"{out}/{name}.x.npy", x.numpy())
    np.save(f"{out}/{name}.y.npy", y.numpy())
    torch.onnx.export(model.eval(), (x,), f"{out}/{name}.onnx", opset_version=15, dynamo=False, input_names=["x"],
                      output_names=["y"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    if sys.argv[3:] == ["inputs"]:
        continue
    curve = lambda dtype, eps: losses(make, x, y, dtype, eps)
    result = dict(model=name, made_with=f"PyTorch {torch.__version__.split('+')[0]}, make_curves.py", optimizer="AdamW lr 1e-3",
                  losses=curve(torch.float32, 1e-8), losses_in_double=curve(torch.float64, 1e-8))
    if name == "resnet18_32":
        result["losses_eps_1e-3"] = curve(torch.float32, 1e-3)
    if name in ("resnet18_32", "mobilenetv2_96"):
        result["losses_lr_1e-5"] = losses(make, x, y, torch.float32, 1e-8, 1e-5)
    json.dump(result, open(f"{out}/{name}.json", "w"), indent=1)
    print(name, result["losses"][0], result["losses"][-1], flush=True)
