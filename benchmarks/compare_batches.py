#!/usr/bin/env python3
"""compare_batches.py --peers DIR --models DIR --onward PATH --names a,b --batches 1,8 [--mode infer] [--rounds 3] [--seconds 3]

What the peers' compare.py does, for the models that peer_batches.py exported: everyone in turn, round after round, the best
round's median counts, and the ratio is the best peer's over onward's. One JSON line per model and batch size.
"""
import argparse, json, os, pathlib, subprocess

here = pathlib.Path(__file__).resolve().parent
flags = argparse.ArgumentParser()
for name in ("--peers", "--models", "--onward", "--names", "--batches"):
    flags.add_argument(name, required=True)
flags.add_argument("--mode", default="train", choices=["train", "infer"])
flags.add_argument("--rounds", type=int, default=3)
flags.add_argument("--seconds", default="3")
a = flags.parse_args()

installed = pathlib.Path(os.environ.get("PEERS", os.path.expanduser("~/.cache/onward-peers")))
threads = os.environ.get("OMP_NUM_THREADS", "2")
plain = dict(os.environ, OMP_NUM_THREADS=threads)
# env.sh sets what PyTorch's and onnxruntime-training's libraries need.
sourced = ["bash", "-c", '[ ! -e "$0" ] || . "$0"; exec "$@"', installed / "env.sh"]


def contenders(name, batch):
    variant = f"{name}_b{batch}"
    model = f"{a.models}/{variant}.onnx"
    ort = [*sourced, installed / "ortt/bin/python"] if a.mode == "train" else [installed / "ort/bin/python"]
    return {
        "torch": [*sourced, installed / "torch/bin/python", here / "peer_batches.py", a.peers, name, batch, "run_torch.py",
                  variant, a.mode, a.seconds],
        "onnxruntime": [*ort, a.peers + "/run_ort.py", model, a.mode, a.seconds],
        "onward": [a.onward, "bench", model, "--mode", a.mode, "--loss", "cross_entropy", "--optimizer", "adamw",
                   "--seconds", a.seconds, "--json"],
    }


def measure(command):
    done = subprocess.run([str(c) for c in command], env=plain, capture_output=True, text=True)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return {"error": (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]}


for name in a.names.split(","):
    for batch in a.batches.split(","):
        best, errors = {}, {}
        commands = contenders(name, batch)
        for _ in range(a.rounds):
            for who, command in commands.items():
                result = measure(command)
                if "median_ms" in result:
                    best[who] = min(best.get(who, 1e30), result["median_ms"])
                else:
                    errors[who] = result.get("error")
        rivals = [ms for who, ms in best.items() if who != "onward"]
        ratio = round(min(rivals) / best["onward"], 3) if rivals and "onward" in best else None
        line = dict(model=f"{name}_b{batch}", mode=a.mode, ratio=ratio, **best)
        print(json.dumps(dict(line, errors=errors) if errors else line), flush=True)
