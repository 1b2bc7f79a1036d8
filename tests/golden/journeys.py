# SPDX-License-Identifier: Apache-2.0
"""Whole journeys of models: made trainable, trained, stopped and resumed, exported, and judged by onnxruntime.

    python3 -m venv VENV && VENV/bin/pip install onnx==1.23.2 onnxruntime==1.31.1 numpy
    VENV/bin/python tests/golden/journeys.py data                                          (models and data sets of the folder journeys)
    VENV/bin/python tests/golden/journeys.py write --onward build/onward --shared FOLDER   (the figures of onnxruntime)
    VENV/bin/python tests/golden/journeys.py check --onward build/onward --shared FOLDER   (what ./build.sh test runs where it can)

Training in one run and in two gives the same file; the export, run by onnxruntime over the same data, has the loss and the accuracy that `onward eval` says
(computed here, in numpy), and a lower loss than before. `write` keeps the figures of onnxruntime in journeys/NAME.txt, for journeys_test.cc, which makes the
journey without onnxruntime. Models of the shared folder are left out where it is absent. Lines of NAME.txt:

    model PATH            below tests/golden/journeys, or shared:PATH
    data SPEC             likewise: npz:PATH, or mnist:shared:PATH?..
    arguments WORDS..     of make-trainable
    batch N
    steps N FIRST         in all, and before the run is resumed
    loss KIND OUTPUT LABEL WEIGHT    what a loss of the arguments means: cross_entropy (of logits), nll (of probabilities), smooth_l1; classes are last
    figures LOSS ACCURACY            of onnxruntime
"""
import argparse
import gzip
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from portable import call

FOLDER = pathlib.Path(__file__).parent / "journeys"
TOLERANCE = 1e-4
RANDOM = np.random.default_rng(31)


def coarse(*shape):
    return (np.round(RANDOM.uniform(-1, 1, shape) * 8) / 8).astype(np.float32)


def squeeze_like():
    """Fire modules as SqueezeNet has them: few channels in, 1x1 and 3x3 side by side out; a convolution and a mean give the classes."""
    weights, nodes = {}, []

    def conv(x, out, channels, to, size):
        weights[f"{out}.weight"] = (RANDOM.standard_normal((to, channels, size, size)) * np.sqrt(2 / (channels * size * size))).astype(np.float32)
        weights[f"{out}.bias"] = np.zeros(to, np.float32)
        nodes.append(onnx.helper.make_node("Conv", [x, f"{out}.weight", f"{out}.bias"], [f"{out}.sum"], out, pads=[size // 2] * 4))
        nodes.append(onnx.helper.make_node("Relu", [f"{out}.sum"], [out]))
        return out

    def fire(x, name, channels, few, many):
        s = conv(x, f"{name}.squeeze", channels, few, 1)
        parts = [conv(s, f"{name}.expand{size}", few, many, size) for size in (1, 3)]
        nodes.append(onnx.helper.make_node("Concat", parts, [name], axis=1))
        return name

    def pool(x, name):
        nodes.append(onnx.helper.make_node("MaxPool", [x], [name], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1))
        return name

    v = pool(conv("image", "conv1", 1, 12, 3), "pool1")
    v = pool(fire(fire(v, "fire2", 12, 4, 8), "fire3", 16, 4, 8), "pool3")
    v = fire(v, "fire4", 16, 6, 12)
    nodes.append(onnx.helper.make_node("Dropout", [v], ["dropped"]))
    v = conv("dropped", "conv5", 24, 4, 1)
    nodes.append(onnx.helper.make_node("GlobalAveragePool", [v], ["mean"]))
    nodes.append(onnx.helper.make_node("Flatten", ["mean"], ["scores"]))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "squeeze_like", [value("image", 1, ["N", 1, 16, 16])], [value("scores", 1, ["N", 4])],
                                   [onnx.numpy_helper.from_array(t, n) for n, t in weights.items()])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 13)])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FOLDER / "squeeze_like.onnx")
    label = np.arange(64) % 4
    image = coarse(64, 1, 16, 16) / 2
    for i, k in enumerate(label):  # a bright quarter
        image[i, 0, 8 * (k // 2):8 * (k // 2) + 8, 8 * (k % 2):8 * (k % 2) + 8] += 1
    np.savez_compressed(FOLDER / "squeeze_like.npz", image=image, label=label)


def write_data():
    FOLDER.mkdir(exist_ok=True)
    squeeze_like()
    face = np.arange(32) % 2
    picture = coarse(32, 3, 24, 24)
    picture[face == 1, :, 8:16, 8:16] += 1
    np.savez_compressed(FOLDER / "detector.npz", input=picture, face=face, box=coarse(32, 4) / 4)
    n, t = 24, 6
    spelt = RANDOM.integers(0, 32, (n, t))
    np.savez_compressed(FOLDER / "recurrent.npz", input_2=np.eye(32, dtype=np.float32)[spelt], input_3=np.zeros((n, 256), np.float32),
                        input_4=np.zeros((n, 256), np.float32), label=np.roll(spelt, 1, 1))
    ids = RANDOM.integers(1, 99, (32, 8))
    np.savez_compressed(FOLDER / "transformer.npz", input_ids=ids, token_type_ids=np.zeros((32, 8), np.int64), input_mask=np.ones((32, 8), np.int64),
                        word=ids, follows=ids[:, 0] % 2)


class Journey:
    def __init__(self, path, shared):
        self.text, self.losses, self.figures = path, [], None
        for line in path.read_text().splitlines():
            key, *words = line.split()
            if key == "loss":
                self.losses.append((words[0], words[1], words[2], float(words[3])))
            elif key == "figures":
                self.figures = [float(w) for w in words]
            else:
                setattr(self, key, words)
        here = lambda word: word.replace("shared:", f"{shared}/") if "shared:" in word else word
        self.model = here(self.model[0]) if "shared:" in self.model[0] else str(FOLDER / self.model[0])
        self.data = here(self.data[0]) if "shared:" in self.data[0] else f"npz:{FOLDER / self.data[0][4:]}"
        self.present = pathlib.Path(self.model).exists()

    def arrays(self):
        if self.data.startswith("npz:"):
            return dict(np.load(self.data[4:]))
        folder, options = self.data[6:].split("?")
        options = dict(o.split("=") for o in options.split("&"))
        kind, count = {"train": "train", "test": "t10k"}[options["split"]], int(options["limit"])
        read = lambda what, skip: np.frombuffer(gzip.open(f"{folder}/{kind}-{what}-ubyte.gz").read()[skip:], np.uint8)
        image = read("images-idx3", 16)[:count * 784].reshape(-1, 1, 28, 28) / np.float32(255)
        return {"image": image, "label": read("labels-idx1", 8)[:count].astype(np.int64)}


def loss_of(kind, output, label):
    output = output.astype(np.float64)
    if kind == "smooth_l1":
        d = np.abs(output - label)
        return float(np.where(d < 1, d * d / 2, d - 0.5).mean())
    if kind == "cross_entropy":
        output = output - output.max(-1, keepdims=True)
        output = output - np.log(np.exp(output).sum(-1, keepdims=True))
    else:
        output = np.log(output)
    return float(-np.take_along_axis(output, label[..., None], -1).mean())


def judged(model, journey):
    """Loss and accuracy of a plain model, by onnxruntime. A model that fixes its batch is fed example by example."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    arrays = journey.arrays()
    inputs = {i.name: i for i in session.get_inputs()}
    feeds = {n: arrays.get(n, arrays.get("image")) for n in inputs}
    outputs = [o for _, o, _, _ in journey.losses]
    fixed = any(i.shape[0] == 1 for i in inputs.values())
    pieces = range(len(next(iter(feeds.values())))) if fixed else [slice(None)]
    parts = [session.run(outputs, {n: v[[k]] if fixed else v for n, v in feeds.items()}) for k in pieces]
    results = [np.concatenate(p) for p in zip(*parts)]
    loss = sum(weight * loss_of(kind, results[i], arrays[label]) for i, (kind, _, label, weight) in enumerate(journey.losses))
    return loss, float((results[0].argmax(-1) == arrays[journey.losses[0][2]]).mean())


def travel(onward, journey, folder):
    at = {n: folder / f"{n}.onnx" for n in ("trainable", "whole", "parts", "plain", "before")}
    call(onward, "make-trainable", journey.model, "-o", at["trainable"], *journey.arguments)
    steps, first = journey.steps
    train = ["train", at["trainable"], "--data", journey.data, "--batch", journey.batch[0], "--quiet"]
    call(onward, *train, "--steps", steps, "-o", at["whole"])
    call(onward, *train, "--steps", first, "-o", at["parts"])
    call(onward, "train", at["trainable"], "--data", journey.data, "--quiet", "--resume", "--steps", steps, "-o", at["parts"])
    if at["whole"].read_bytes() != at["parts"].read_bytes():
        sys.exit(f"{journey.text.stem}: a run in two parts is not the run in one")
    call(onward, "export", at["whole"], "-o", at["plain"])
    call(onward, "export", at["trainable"], "-o", at["before"])
    onnx.checker.check_model(onnx.load(at["plain"]))
    said = json.loads(call(onward, "eval", at["whole"], "--data", journey.data, "--json"))
    return (said["loss"], said["accuracy"]), judged(at["plain"], journey), judged(at["before"], journey)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["data", "write", "check"])
    parser.add_argument("--onward", default="build/onward")
    parser.add_argument("--shared", default="../shared")
    args = parser.parse_args()
    if args.what == "data":
        return write_data()
    failed = False
    for path in sorted(FOLDER.glob("*.txt")):
        journey = Journey(path, args.shared)
        if not journey.present:
            print(f"{path.stem:16} SKIPPED: no {journey.model}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs, before = travel(args.onward, journey, pathlib.Path(folder))
        apart = abs(ours[0] - theirs[0]) / max(1, abs(theirs[0]))
        agrees = apart <= TOLERANCE and ours[1] == theirs[1] and theirs[0] < before[0]
        print(f"{path.stem:16} loss {before[0]:.4f} to {theirs[0]:.6f} ({apart:.1e} apart), accuracy {before[1]:.3f} to {theirs[1]:.4f} (ours {ours[1]:.4f})")
        failed |= not agrees
        if args.what == "write" and agrees:
            lines = [line for line in path.read_text().splitlines() if not line.startswith("figures ")]
            path.write_text("\n".join(lines + [f"figures {theirs[0]!r} {theirs[1]!r}"]) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
