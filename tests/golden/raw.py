# SPDX-License-Identifier: Apache-2.0
"""Models written by `onward export --raw`, run by onnxruntime on raw rows.

    python3 -m venv VENV && VENV/bin/pip install onnx==1.19.1 onnxruntime==1.31.1 numpy
    VENV/bin/python tests/golden/raw.py models                      (models and rows below)
    VENV/bin/python tests/golden/raw.py write --onward build/onward (after a changed export)
    VENV/bin/python tests/golden/raw.py check --onward build/onward (what ./build.sh test runs where it can)

NAME.onnx of the folder raw is an inference model whose metadata says how its table is prepared, NAME.csv has rows as people write them. `onward`
writes the model that takes such rows; onnxruntime runs it, one array per column. `write` keeps that model (NAME.raw.onnx) and what onnxruntime gave
(NAME.txt: OUTPUT TYPE SHAPE VALUES..), so that raw_test.cc can tell without onnxruntime whether an export is still the one that was run, and
whether Onward computes the same.
"""
import argparse
import calendar
import csv
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

FOLDER = pathlib.Path(__file__).parent / "raw"
TOLERANCE = 1e-5
EMPTY = ("", "NA", "?")

COLUMNS = [
    {"name": "age", "fill": 28.5, "mean": [29.75], "deviation": [13.25]},
    {"name": "fare", "mean": [32.5], "deviation": [49.75]},
    {"name": "sex", "kind": "text", "form": "onehot", "categories": ["man", "woman"], "fill_text": "man"},
    {"name": "town", "kind": "text", "form": "onehot", "categories": ["", "Bonn", "K\u00f6ln"], "other": True},
    {"name": "boarded", "kind": "date", "times": True, "fill": 86400 * 365, "mean": [1990, 6, 15, 3, 12],
     "deviation": [25, 3.5, 9, 2, 7]},
    {"name": "rooms", "fill": 0},
]
ROWS = """town,age,fare,sex,boarded,rooms
Bonn,31,7.25,man,1912-04-10,1
K\u00f6ln,NA,71.2833,woman,1969-12-31 23:59:59,2.5
,2,8.05,,2024-02-29T12:30:00,-3
Rome,80,512.3292,woman,,
?,0.42,0,man,2000-03-01,1e3
"""


# NAME: (columns, label's task and target, outputs, classes, flags of export)
def models():
    classes = {"label": "survived", "task": "classes"}
    number = {"label": "price", "task": "number", "mean": [206.5], "deviation": [115.25]}
    coded = [dict(c, form="codes") if c["name"] == "town" else c for c in COLUMNS]
    return {
        "classes": (COLUMNS, classes, 3, ["no", "perhaps", "yes"], "--raw columns --names"),
        "matrix": (COLUMNS, classes, 3, ["no", "perhaps", "yes"], "--raw matrix --names"),
        "codes": (coded, classes, 2, ["no", "yes"], "--raw columns"),
        "number": (COLUMNS, number, 1, [], "--raw columns"),
    }


def width(column):
    return len(column["categories"]) + column.get("other", False) if column.get("kind") == "text" else 5 if column.get("kind") == "date" else 1


def make(name):
    columns, table, outputs, classes, flags = models()[name]
    random = np.random.default_rng(5)
    real = lambda *shape: (np.round(random.uniform(-1, 1, shape) * 64) / 64).astype(np.float32)
    numbers = sum(width(c) for c in columns if c.get("form") != "codes")
    weights = {"W": real(numbers, outputs), "B": real(outputs)}
    inputs, embed, last = f"float[N, {numbers}] x", "", "y = Add (a, B)"
    if any(c.get("form") == "codes" for c in columns):
        weights["E"] = real(width(columns[3]), outputs)
        inputs += ", int64[N, 1] codes"
        last = "b = Add (a, B)  e = Gather (E, codes)  axis = Constant <value = int64[1] {1}> ()  f = Squeeze (e, axis)  y = Add (b, f)"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        m ({inputs}) => (float[N, {outputs}] y) {{ a = MatMul (x, W)  {last} }}""")
    for key, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, key))
    preparation = {"version": 1, "table": dict(table, columns=columns)}
    onnx.helper.set_model_props(model, {"onward.preparation": json.dumps(preparation, ensure_ascii=False)}
                                | ({"onward.classes": json.dumps(classes)} if classes else {}))
    onnx.save(model, FOLDER / f"{name}.onnx")
    (FOLDER / "rows.csv").write_text(ROWS, encoding="utf-8")


def cell(text, kind):
    empty = text in EMPTY
    if kind == "text":
        return "" if empty else text
    if kind == "date":
        if empty:
            return np.iinfo(np.int64).min
        return calendar.timegm(datetime.datetime.fromisoformat(text).timetuple())
    return np.nan if empty else float(text)


# What a person would feed: arrays [rows, 1] by the names of the columns.
def feeds(name, session):
    rows = list(csv.DictReader(ROWS.splitlines()))
    kinds = {"text": object, "date": np.int64, None: np.float32}
    columns = models()[name][0]
    arrays = {}
    for c in columns:
        kind = c.get("kind")
        arrays[c["name"]] = np.array([[cell(row[c["name"]], kind)] for row in rows], kinds[kind])
    wanted = {i.name for i in session.get_inputs()}
    if "numbers" in wanted:
        arrays["numbers"] = np.concatenate([arrays[c["name"]] for c in columns if "kind" not in c], 1)
    return {key: value for key, value in arrays.items() if key in wanted}


def run(name, onward, folder):
    raw = pathlib.Path(folder) / f"{name}.raw.onnx"
    subprocess.run([onward, "export", FOLDER / f"{name}.onnx", "-o", raw, *models()[name][4].split()], check=True, stdout=subprocess.DEVNULL)
    session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return raw, dict(zip(names, session.run(None, feeds(name, session))))


def words_of(array):
    shape = "x".join(str(d) for d in array.shape)
    if array.dtype == object:
        return f"string {shape} " + " ".join(array.reshape(-1))
    return f"float {shape} " + " ".join(repr(float(v)) for v in array.reshape(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["models", "write", "check"])
    parser.add_argument("--onward")
    arguments = parser.parse_args()
    for name in models():
        if arguments.what == "models":
            make(name)
            continue
        with tempfile.TemporaryDirectory() as folder:
            raw, outputs = run(name, arguments.onward, folder)
            text = "".join(f"{key} {words_of(value)}\n" for key, value in outputs.items())
            if arguments.what == "write":
                (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
                (FOLDER / f"{name}.raw.onnx").write_bytes(raw.read_bytes())
                continue
            for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
                key, kind, _, *values = line.split(" ")
                got = outputs[key].reshape(-1)
                same = list(got) == values if kind == "string" else np.allclose(got, [float(v) for v in values], TOLERANCE, TOLERANCE)
                if not same:
                    sys.exit(f"{name}: output '{key}' of onnxruntime is {got}, expected {values}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
