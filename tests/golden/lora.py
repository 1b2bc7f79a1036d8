# SPDX-License-Identifier: Apache-2.0
"""Adapters (LoRA) that `onward` trained, merged, kept and applied, run by onnxruntime.

    python3 -m venv VENV && VENV/bin/pip install onnx==1.19.1 onnxruntime==1.31.1 numpy
    VENV/bin/python tests/golden/lora.py write --onward build/onward --shared FOLDER    (after a change of what is written)
    VENV/bin/python tests/golden/lora.py check --onward build/onward --shared FOLDER

For each case `onward` makes the model trainable with adapters, takes a few steps, and exports it merged, with its adapters as nodes, and as adapters apart that
are put on the original again. onnxruntime runs all three on the batch; they agree to 1e-5, and so does `onward run`. `write` keeps what
onnxruntime gave for the merged file in lora/NAME.txt, for lora_test.cc. Models of the shared folder are left out where it is absent. Lines of NAME.txt:

    model PATH                        below tests/golden, or shared:PATH
    arguments WORDS..                 of make-trainable
    steps N
    merge HOW                         of export
    feed NAME TYPE SHAPE VALUES..     a batch; `label` is for the steps alone
    output NAME TYPE SHAPE VALUES..
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from portable import apart, array_of, call, words_of

GOLDEN = pathlib.Path(__file__).parent
FOLDER = GOLDEN / "lora"
TOLERANCE = 1e-5


class Case:
    def __init__(self, path, shared):
        self.text, self.feeds, self.labels, self.outputs = path, {}, {}, {}
        for line in path.read_text().splitlines():
            words = line.split()
            if words[0] == "model":
                place, _, inner = words[1].rpartition(":")
                self.model = pathlib.Path(shared) / inner if place == "shared" else GOLDEN / inner
            elif words[0] in ("feed", "output"):
                values = {"feed": self.feeds, "output": self.outputs}[words[0]]
                values[words[1]] = array_of(words[2:])
            else:
                setattr(self, words[0], words[1:])
        self.labels = {n: self.feeds.pop(n) for n in list(self.feeds) if n.startswith("label")}


def in_onnxruntime(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def run(onward, case, folder):
    at = {n: folder / f"{n}.onnx" for n in ("trainable", "trained", "merged", "kept", "adapters", "applied")}
    call(onward, "make-trainable", case.model, "-o", at["trainable"], *case.arguments)
    inputs = []
    for name, value in {**case.feeds, **case.labels}.items():
        np.save(folder / f"{name}.npy", value)
        inputs.append((name, ["--input", f"{name}={folder / name}.npy"]))
    call(onward, "step", at["trainable"], *(w for _, words in inputs for w in words), "-n", case.steps[0], "-o", at["trained"])
    call(onward, "export", at["trained"], "-o", at["merged"], "--merge", case.merge[0])
    call(onward, "export", at["trained"], "-o", at["kept"], "--merge", "none")
    call(onward, "export", at["trained"], "--adapters", at["adapters"])
    call(onward, "export", case.model, "--apply", at["adapters"], "-o", at["applied"], "--merge", case.merge[0])
    for name in at.values():
        onnx.checker.check_model(onnx.load(name))
    results = {name: in_onnxruntime(at[name], case.feeds) for name in ("merged", "kept", "applied")}
    results["before"] = in_onnxruntime(case.model, case.feeds)
    given = [w for name, words in inputs if name in case.feeds for w in words]
    call(onward, "run", at["merged"], *given, "--output-dir", folder)
    results["onward"] = {name: np.load(folder / f"{name}.npy") for name in results["merged"]}
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "check"])
    parser.add_argument("--onward", default="build/onward")
    parser.add_argument("--shared", default="../shared")
    args = parser.parse_args()
    failed = False
    for path in sorted(FOLDER.glob("*.txt")):
        case = Case(path, args.shared)
        if not case.model.exists():
            print(f"{path.stem:16} SKIPPED: no {case.model}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            results = run(args.onward, case, pathlib.Path(folder))
        merged = results["merged"]
        worst = {name: max(apart(value, merged[n]) for n, value in outputs.items()) for name, outputs in results.items()}
        moved = worst.pop("before")
        agrees = max(worst.values()) <= TOLERANCE and moved > 1e-3
        print(f"{path.stem:16} moved {moved:.1e}, apart from merged:", ", ".join(f"{n} {w:.1e}" for n, w in worst.items()))
        failed |= not agrees
        if args.what == "write" and agrees:
            lines = [line for line in path.read_text().splitlines() if not line.startswith("output ")]
            lines += [f"output {name} {words_of(value)}" for name, value in merged.items()]
            path.write_text("\n".join(lines) + "\n")
        if args.what == "check":
            failed |= any(apart(value, case.outputs[name]) > 1e-4 for name, value in merged.items())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
