#!/usr/bin/env python3
"""summary.py OUT: the results in the folder that benchmarks/run.sh filled, as a short table."""
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])


def lines(name):
    path = out / name
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")] if path.exists() else []


def ms(value):
    return f"{value:12.3f}" if value is not None else f"{'-':>12}"


compared = lines("compare.jsonl")
if compared:
    print(f"{'milliseconds':18} {'mode':6}{'onward':>12}{'torch':>12}{'onnxruntime':>12}{'ratio':>8}   (best peer / onward)")
for r in compared:
    ratio = f"{r['ratio']:8.2f}" if r["ratio"] is not None else f"{'-':>8}"
    print(f"{r['model']:18} {r['mode']:6}{ms(r.get('onward'))}{ms(r.get('torch'))}{ms(r.get('onnxruntime'))}{ratio}")
    for who, error in r.get("errors", {}).items():
        print(f"  {who}: {error}")

rooflines = sorted(out.glob("roofline-*.txt"))
if rooflines:
    print("\nshare of the roofline, all kernels of a run")
for path in rooflines:
    model, mode = path.stem.removeprefix("roofline-").rsplit("-", 1)
    print(f"{model:18} {mode:6}{path.read_text().split()[-2]:>6} %")

choices = out / "conv_choice.txt"
if choices.exists():
    losses = [float(line.split()[-1]) for line in choices.read_text().splitlines()[1:]]
    print(f"\nchosen convolution kernels: {sum(x <= 1.1 for x in losses)} of {len(losses)} within 10 % of the fastest, "
          f"the worst {max(losses):.2f} times its time")

for r in lines("startup.json"):
    print("\nstart-up")
    for name, value in r.items():
        print(f"{name:26}{value:12.2f}")
for i, r in enumerate(lines("scaling.jsonl")):
    print(("\n" if i == 0 else "") + r["sentence"])
