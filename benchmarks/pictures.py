#!/usr/bin/env python3
"""pictures.py --model MODEL.onnx --work DIR [--build DIR] [--count N] [--rounds R]: training from picture files beside
training from memory. MODEL classifies 3x32x32 pictures into 10 classes or more. Prints one JSON line.

N pictures are generated and written three times: a JPEG (where Pillow is installed) or PNG file each, in a folder for each
class, as a WebDataset archive, and in one compressed file that is held in memory. Runs take turns, so that a busy machine is
busy for all of them.

KIND_per_s     examples per second, the best of R runs of one epoch
KIND_ratio     that, of what memory gives
KIND_cpu_s     the least time of all threads together
KIND_peak_mb   peak memory; files_1000_peak_mb is that of 1,000 of the same files
"""
import argparse, gzip, io, json, os, re, struct, subprocess, sys, tarfile, zlib
import numpy as np

try:
    from PIL import Image
except ImportError:
    Image = None

SIDE, CLASSES = 32, 10

flags = argparse.ArgumentParser()
flags.add_argument("--model", required=True)
flags.add_argument("--work", required=True, help="a folder for the pictures")
flags.add_argument("--build", default="build")
flags.add_argument("--count", type=int, default=20000)
flags.add_argument("--batch", type=int, default=64)
flags.add_argument("--rounds", type=int, default=3)
a = flags.parse_args()


def picture(i):
    """A disc of its class's colour on a ramp with some noise, uint8 [SIDE, SIDE, 3]."""
    random = np.random.default_rng(i)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    ramp = (x * random.uniform(0, 4) + y * random.uniform(0, 4))[..., None] + random.normal(0, 6, (SIDE, SIDE, 3))
    cy, cx, r = random.uniform(8, 24, 2).tolist() + [random.uniform(4, 12)]
    colour = np.array([25 * (i % CLASSES), 255 - 20 * (i % CLASSES), 128])
    disc = ((y - cy) ** 2 + (x - cx) ** 2 < r * r)[..., None]
    return np.clip(np.where(disc, colour, ramp), 0, 255).astype(np.uint8)


def encoded(pixels):
    if Image is not None:
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=90)
        return out.getvalue(), "jpg"
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")), "png"


def write_all():
    """Specs by kind. What an earlier run has written is used again."""
    base = os.path.join(a.work, str(a.count))
    folder, shard, memory = (os.path.join(base, name) for name in ("folder", "shard.tar", "memory.bin.gz"))
    specs = {"memory": "cifar:" + memory, "files": "images:" + folder, "tar": "tar:" + shard}
    whole = os.path.join(base, "whole")
    if os.path.exists(whole):
        return specs
    os.makedirs(base, exist_ok=True)
    with tarfile.open(shard, "w") as tar, gzip.open(memory, "wb", compresslevel=1) as records:
        for c in range(CLASSES):
            os.makedirs(os.path.join(folder, str(c)), exist_ok=True)
        for i in range(a.count):
            pixels, label = picture(i), i % CLASSES
            data, ending = encoded(pixels)
            with open(os.path.join(folder, str(label), f"{i:06d}.{ending}"), "wb") as f:
                f.write(data)
            for name, body in ((f"{i:06d}.{ending}", data), (f"{i:06d}.cls", str(label).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
            records.write(bytes([label]) + pixels.transpose(2, 0, 1).tobytes())
            tar.members = []  # which would hold all of them
    open(whole, "w").close()
    return specs


def train(spec):
    """Examples per second, processor time and peak memory of an epoch."""
    out = os.path.join(a.work, "out.onnx")
    command = [os.path.join(a.build, "onward"), "train", a.model, "--data", spec, "-o", out, "--overwrite", "--quiet",
               "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.001", "--batch", str(a.batch), "--seed", "1"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    found = re.search(r"(\d+) examples/s", text)
    if child.returncode != 0 or not found:
        sys.exit(f"pictures.py: {' '.join(command)} failed: {text}")
    return float(found.group(1)), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


os.makedirs(a.work, exist_ok=True)
specs = write_all()
runs = {kind: [] for kind in specs}
for _ in range(a.rounds):
    for kind, spec in specs.items():
        runs[kind].append(train(spec))
result = {"count": a.count, "format": "JPEG" if Image is not None else "PNG"}
for kind, measured in runs.items():
    result[kind + "_per_s"] = max(speed for speed, _, _ in measured)
    result[kind + "_ratio"] = result[kind + "_per_s"] / result["memory_per_s"]
    result[kind + "_cpu_s"] = min(cpu for _, cpu, _ in measured)
    result[kind + "_peak_mb"] = max(peak for _, _, peak in measured)
result["files_1000_peak_mb"] = train(specs["files"] + "?limit=1000")[2]
print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in result.items()}))
