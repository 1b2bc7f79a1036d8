"""peer_batches.py PEERS NAMES BATCHES SCRIPT ARGS...: runs a script of the peers (export.py, run_torch.py) at other batch sizes.

SCRIPT, in the folder PEERS, sees a model NAME_bN for every NAME and every batch size N (lists with commas) and no other model.
Runs in the environment of PyTorch.
"""
import os, runpy, sys

peers, names, batches, script = sys.argv[1:5]
sys.path.insert(0, os.path.abspath(peers))
import torch, models


def resized(example, axis, n):
    """The example input, repeated or cut along the batch axis."""
    def make():
        x = example()
        return torch.cat([x] * -(-n // x.shape[axis]), axis).narrow(axis, 0, n).contiguous()
    return make


variants = {}
for name in names.split(","):
    make, example, classes = models.MODELS[name]
    for n in map(int, batches.split(",")):
        variants[f"{name}_b{n}"] = (make, resized(example, 1 if name == "lstm" else 0, n), classes)
models.MODELS.clear()
models.MODELS.update(variants)
labels_of = models.labels
models.labels = lambda x, classes, name: labels_of(x, classes, name.rsplit("_b", 1)[0])

path = os.path.join(peers, script)
sys.argv = [path, *sys.argv[5:]]
runpy.run_path(path, run_name="__main__")
