#!/usr/bin/env python3
"""operators.py [--build DIR] [--only Conv,Gemm] [--rounds N] [--seconds S] [--threads N] [--markdown FILE]: operator by operator beside
onnxruntime.

Needs Python with onnx and onnxruntime. For each operator of operator_models.py and each size, `onward bench` and onnxruntime take
turns; the best time of each counts. Small models hold 32 nodes on inputs of their own, joined at the end, so that what a call
costs outside the nodes weighs little. Prints a table (microseconds per node; ratio: time of onward / time of onnxruntime, above 1 is slower), the
slow ones last; nothing passes or fails by time.
"""
import argparse, json, os, subprocess, sys, tempfile, time

import onnx
import onnxruntime

import operator_models

COPIES = {operator_models.SMALL: 32, operator_models.LARGE: 1}
SLOW = 1.5

flags = argparse.ArgumentParser()
flags.add_argument("--build", default="build")
flags.add_argument("--only", default="", help="operators, with commas")
flags.add_argument("--rounds", type=int, default=3)
flags.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
flags.add_argument("--threads", type=int, default=os.cpu_count())
flags.add_argument("--json", default="", help="also write one JSON object per row to this file")
flags.add_argument("--markdown", default="", help="also write the ratios as a page (docs/operator-speed.md); with --only into the one there is")
a = flags.parse_args()


def onward_us(path):
    command = [a.build + "/onward", "bench", path, "--mode", "infer", "--seconds", str(a.seconds), "--threads", str(a.threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, " ".join(done.stderr.split())
    return 1e3 * json.loads(done.stdout)["min_ms"], ""


def peer(path, feeds, optimize):
    """A function that gives onnxruntime's best time in microseconds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = a.threads
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for out in session.get_outputs():
        binding.bind_output(out.name)

    def best():
        times, end = [], time.perf_counter() + a.seconds
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            session.run_with_iobinding(binding)
            times.append(time.perf_counter() - start)
        return 1e6 * min(times)
    return best


def measure(name, size, folder):
    path = os.path.join(folder, "model.onnx")
    model, feeds = operator_models.build(name, size, COPIES[size])
    onnx.save(model, path)
    row = {"operator": name, "size": size, "onward_us": None, "onnxruntime_us": None, "ratio": None, "note": ""}
    try:
        # Optimised, it takes the corner of a transposed tensor before it transposes.
        theirs = peer(path, feeds, optimize=not name.startswith("Transpose"))
    except Exception as e:  # onnxruntime lacks it
        row["note"] = "onnxruntime: " + str(e).splitlines()[0][:80]
        return row
    for _ in range(a.rounds):
        ours, note = onward_us(path)
        if ours is None:
            row["note"] = "onward: " + note[:80]
            return row
        for key, value in (("onward_us", ours), ("onnxruntime_us", theirs())):
            value /= COPIES[size]
            row[key] = value if row[key] is None else min(row[key], value)
    row["ratio"] = row["onward_us"] / row["onnxruntime_us"]
    return row


def cpu_model():
    with open("/proc/cpuinfo") as lines:
        facts = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    wide = "with AVX-512" if "avx512f" in facts["flags"].split() else "with AVX2"
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']}, {wide})"


def shown(rows):
    """The cells of the table by operator and size."""
    ratios = {}
    for r in rows:
        ratios.setdefault(r["operator"], {})[r["size"]] = f"{r['ratio']:.2f}" if r["ratio"] else r["note"] or "-"
    return ratios


def threads_text():
    return "one thread" if a.threads == 1 else f"{a.threads} threads"


def summary(ratios):
    known = [float(cell) for by_size in ratios.values() for cell in by_size.values() if cell.replace(".", "").isdigit()]
    return f"{sum(r <= 1 for r in known)} of {len(known)} rows take no longer than onnxruntime, {sum(r > SLOW for r in known)} take more than {SLOW} times as long."


def table(ratios):
    return ["| operator | large | small |", "|---|---:|---:|"] + [
        f"| {name} | {by_size.get('large', '-')} | {by_size.get('small', '-')} |" for name, by_size in ratios.items()]


def add_to_page(path, rows):
    """Puts rows that were measured by themselves among those of an earlier run, and says so."""
    with open(path) as page:
        before = page.read().splitlines()
    first = before.index("| operator | large | small |")
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in before[first + 2:] if line.startswith("|")]
    ratios = {name: {"large": large, "small": small} for name, large, small in cells}
    ratios.update(shown(rows))
    names = {n: ratios[n] for n in operator_models.ROWS if n in ratios}
    later = (f"Measured by themselves later, {threads_text()}, best time of {a.rounds} rounds of {a.seconds} s in turns: "
             + ", ".join(shown(rows)) + ".")
    head = [summary(names) if " rows take no longer than " in line else line for line in before[:first]]
    while head and not head[-1]:
        head.pop()
    with open(path, "w") as page:
        page.write("\n".join(head + ["", later, ""] + table(names)) + "\n")


def write_page(path, rows):
    ratios = shown(rows)
    threads = threads_text()
    lines = ["# Operators beside onnxruntime", "",
             "Written by `benchmarks/operators.py --threads %d --markdown docs/operator-speed.md`; sizes and attributes are those of" % a.threads,
             "`benchmarks/operator_models.py`. A ratio is Onward's time for a node divided by onnxruntime's: below 1 Onward is faster.", "",
             f"Conditions: onnxruntime {onnxruntime.__version__}, {threads}, float32, best time of {a.rounds} rounds of {a.seconds} s in turns, in one run,",
             f"on {cpu_model()}.", "",
             summary(ratios), ""] + table(ratios)
    with open(path, "w") as page:
        page.write("\n".join(lines) + "\n")


names = [n for n in operator_models.ROWS if not a.only or n in a.only.split(",") or n.split()[0] in a.only.split(",")]
print(f"onnxruntime {onnxruntime.__version__}, {a.threads} threads, best of {a.rounds} rounds of {a.seconds} s; microseconds per node")
print(f"{'operator':32}{'size':8}{'onward':>12}{'onnxruntime':>14}{'ratio':>8}")
rows = []
out = open(a.json, "w") if a.json else None
with tempfile.TemporaryDirectory() as folder:
    for name in names:
        for size in COPIES:
            row = measure(name, size, folder)
            rows.append(row)
            if out:
                out.write(json.dumps(row) + "\n")
            if row["ratio"] is None:
                print(f"{name:32}{size:8}  {row['note']}", flush=True)
            else:
                print(f"{name:32}{size:8}{row['onward_us']:12.2f}{row['onnxruntime_us']:14.2f}{row['ratio']:8.2f}", flush=True)
slow = sorted((r for r in rows if r["ratio"] and r["ratio"] > SLOW), key=lambda r: -r["ratio"])
print(f"\n{len(slow)} of {sum(1 for r in rows if r['ratio'])} rows are slower than {SLOW} times onnxruntime")
for r in slow:
    print(f"  {r['ratio']:6.2f}  {r['operator']} ({r['size']})")
if a.markdown:
    (add_to_page if a.only else write_page)(a.markdown, rows)
