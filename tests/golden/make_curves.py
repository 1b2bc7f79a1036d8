"""make_curves.py PEERS OUT: loss curves of PyTorch that Onward has to follow.

PEERS is the folder of the reference models (models.py), OUT receives for each model
  NAME.onnx    the start (torch.manual_seed(0), opset 15, nothing folded)
  NAME.x.npy, NAME.y.npy   one batch (torch.manual_seed(2); with seed 1 lenet meets a near-tie in a max pool in
                           step 3, where float programs part)
  NAME.json    the losses of 20 AdamW steps (lr 1e-3, PyTorch's defaults) on that batch, in training mode
The .json files are kept in tests/golden; the rest is made anew where PyTorch is installed.
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
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    json.dump(dict(model=name, made_with=f"PyTorch {torch.__version__.split('+')[0]}, make_curves.py", optimizer="AdamW lr 1e-3",
                   losses=losses), open(f"{out}/{name}.json", "w"), indent=1)
    print(name, losses[0], losses[-1], flush=True)
