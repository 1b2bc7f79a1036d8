#!/usr/bin/env python3
"""startup.py --build DIR --work DIR [--models DIR]: what passes before the first step. Prints one JSON line.

help_ms            onward --help, best of 20
inspect_ms         onward inspect of a model of 500 MB that is in the page cache, best of 3; inspect_peak_mb is its memory
read_ms            reading the same file into memory, for comparison
NAME_compile_ms    from the file in memory to a training step ready to run (prepare_ms of onward bench)
"""
import argparse, json, os, subprocess, sys, time

BLOCKS, WIDTH = 8, 4000  # 512 MB
COMPILED = ("resnet18_32", "resnet18_224")

flags = argparse.ArgumentParser()
flags.add_argument("--build", default="build")
flags.add_argument("--work", required=True, help="a folder for the 500 MB")
flags.add_argument("--models", default="", help="the benchmark models")
a = flags.parse_args()
onward = a.build + "/onward"


def run(*command):
    """Milliseconds of a program, and its peak memory in MB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"startup.py: {' '.join(command)} failed")
    return 1e3 * (time.perf_counter() - start), usage.ru_maxrss / 1024


def read_ms(path):
    start = time.perf_counter()
    with open(path, "rb") as f:
        f.read()
    return 1e3 * (time.perf_counter() - start)


result = {"help_ms": min(run(onward, "--help")[0] for _ in range(20))}
large = os.path.join(a.work, "large.onnx")
try:
    run(a.build + "/benchmarks/make_chain", large, str(BLOCKS), str(WIDTH))
    result["file_mb"] = os.path.getsize(large) / 1048576
    result["read_ms"] = min(read_ms(large) for _ in range(3))
    result["inspect_ms"], result["inspect_peak_mb"] = min(run(onward, "inspect", large) for _ in range(3))
finally:
    if os.path.exists(large):
        os.remove(large)
for name in COMPILED:
    model = os.path.join(a.models, name + ".onnx")
    if not os.path.exists(model):
        print(f"SKIPPED compile time of {name}: no {model}", file=sys.stderr)
        continue
    line = subprocess.run([onward, "bench", model, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "adamw",
                           "--seconds", "0", "--json"], capture_output=True, text=True, check=True).stdout
    result[name + "_compile_ms"] = json.loads(line)["prepare_ms"]
print(json.dumps({k: round(v, 2) for k, v in result.items()}))
