"""make_traces.py SHARED OUT: the training traces of mnist-8 in onnxruntime-training 1.19.2, with pads written out.

SHARED holds models/mnist-8, datasets/mnist and peer_cases/ort-training-oracle; OUT receives mnist-8.sgd.json and
mnist-8.adamw.json. Both traces of that model in ort-training-oracle are wrong: its convolutions say auto_pad=SAME_UPPER, and
onnxruntime's ConvGrad takes that for no padding (it then reads memory that was never written: runs differ from each other,
and some crash). Here pads=[2,2,2,2] stands in the place of auto_pad, which is the same function for its 5x5 kernels, and all
else is as those traces say: 20 steps, one image each, from the first training image on.
"""
import gzip
import json
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime.training.api as api
from onnx import helper, numpy_helper, version_converter
from onnxruntime.training import artifacts

shared, out = sys.argv[1:3]


def with_pads(model):
    for node in model.graph.node:
        auto = [a for a in node.attribute if a.name == "auto_pad" and node.op_type == "Conv"]
        for attribute in auto:
            assert attribute.s == b"SAME_UPPER", node.name
            node.attribute.remove(attribute)
            node.attribute.append(helper.make_attribute("pads", [2, 2, 2, 2]))
    return model


def idx(name, header, *shape):
    with gzip.open(f"{shared}/datasets/mnist/{name}.gz") as f:
        return np.frombuffer(f.read()[header:], np.uint8).reshape(-1, *shape)


def trace(optimizer, kind):
    theirs = json.load(open(f"{shared}/peer_cases/ort-training-oracle/mnist-8.{optimizer}.json"))
    model = with_pads(version_converter.convert_version(onnx.load(f"{shared}/models/mnist-8/model.onnx"), 14))
    start = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in start]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 7)
    trained = [name for name, p in theirs["parameters"].items() if p["trained"]]
    images, labels = idx("train-images-idx3-ubyte", 16, 1, 1, 28, 28), idx("train-labels-idx1-ubyte", 8)
    with tempfile.TemporaryDirectory() as folder:
        artifacts.generate_artifacts(model, requires_grad=trained, frozen_params=[n for n in theirs["parameters"] if n not in trained],
                                     loss=artifacts.LossType.CrossEntropyLoss, optimizer=kind, artifact_directory=folder)
        state = api.CheckpointState.load_checkpoint(folder + "/checkpoint")
        net = api.Module(folder + "/training_model.onnx", state, folder + "/eval_model.onnx", device="cpu")
        update = api.Optimizer(folder + "/optimizer_model.onnx", net)
        update.set_learning_rate(theirs["learning_rate"])
        net.train()
        losses = []
        for step in range(theirs["steps"]):
            losses.append(float(net(images[step].astype(np.float32) * np.float32(1 / 255), labels[step:step + 1].astype(np.int64))))
            update.step()
            net.lazy_reset_grad()
        after = {name: state.parameters[name].data.astype(np.float64) for name in trained}
    result = {key: theirs[key] for key in ("model", "optimizer", "optimizer_node", "learning_rate", "batch_size", "steps", "data", "preprocess")}
    result["computed_with"] = "onnxruntime-training 1.19.2, make_traces.py"
    result["losses"] = losses
    result["parameters"] = {name: dict(trained=True, sum_after=float(w.sum()), l2_delta=float(np.linalg.norm(w - start[name])))
                            for name, w in after.items()}
    json.dump(result, open(f"{out}/mnist-8.{optimizer}.json", "w"), indent=1)
    print(optimizer, losses[0], losses[-1])


os.makedirs(out, exist_ok=True)
trace("sgd", artifacts.OptimType.SGD)
trace("adamw", artifacts.OptimType.AdamW)
