#!/usr/bin/env python3
"""zoo_data.py FOLDER [SET ...]: data that comes in no file of the form the recipes need, written to FOLDER/made.

letters   words of Shakespeare with masked vowels, in the tokens of g2p-bert-mlm
passages  parts of Shakespeare, in half of which a new speaker begins, for bert-toy
tones     spectra of synthetic notes with overtones and vibrato, a second voice and noise, for pitchnet
patches   parts of CIFAR-10's pictures and the same three times smaller, for espcn-subpixel
photos    a folder of pictures for each of four classes, and one of unknown ones, for docs/tutorial.md

Standard library only. The same files each time: every draw comes from one seed per set.
"""
import array
import cmath
import functools
import gzip
import io
import math
import pathlib
import random
import re
import struct
import sys
import zipfile
import zlib

IGNORED = -100  # a label that the loss passes over


def npy(kind, shape, values):
    """The bytes of a NumPy array; kind is 'f' (float32) or 'q' (int64)."""
    described = {"f": "<f4", "q": "<i8"}[kind]
    header = f"{{'descr': '{described}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(kind, values).tobytes()


def write_npz(path, **arrays):
    """arrays: name=(kind, shape, values). Zip entries carry no time, so that the bytes are the same each time."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        for name, parts in arrays.items():
            file.writestr(zipfile.ZipInfo(name + ".npy"), npy(*parts))
    path.write_bytes(held.getvalue())


def letters(text, out):
    # token2id.json of the package g2p-id-py; 0 fills up, 30 is the mask.
    ids = {c: i for i, c in enumerate("\0\1an\2irkmtugsbpldoehcyjwfv-z'q") if c > "\2"}
    words = sorted(set(re.findall(r"[a-z][a-z'-]{3,30}[a-z]", text.lower().replace("x", "ks"))))
    random.Random(1).shuffle(words)
    for part, chosen in (("test", words[:1500]), ("train", words[1500:])):
        x, y = [], []
        for word in chosen:
            fill = 32 - len(word)
            x += [30 if c in "aeiou" else ids[c] for c in word] + [0] * fill
            y += [ids[c] if c in "aeiou" else IGNORED for c in word] + [IGNORED] * fill
        shape = (len(chosen), 32)
        write_npz(out / f"letters-{part}.npz", input_1=("q", shape, x), y=("q", shape, y))


def passages(text, out):
    # Printable characters are 1 to 95, a line's end is 96. A blank line comes before every speaker.
    length, draw = 64, random.Random(2)
    border = len(text) * 9 // 10
    for part, first, last, count in (("train", 0, border, 6000), ("test", border, len(text), 1000)):
        x, y = [], []
        while len(y) < count:
            begin = draw.randrange(first, last - length)
            passage = text[begin:begin + length]
            speaks = int("\n\n" in passage)
            if speaks == len(y) % 2:
                x += [96 if c == "\n" else ord(c) - 31 for c in passage]
                y.append(speaks)
        shape = (count, length)
        write_npz(out / f"passages-{part}.npz", input_ids=("q", shape, x), y=("q", (count,), y),
                  token_type_ids=("q", shape, [0] * len(x)), input_mask=("q", shape, [1] * len(x)))


@functools.lru_cache(maxsize=None)
def turns(n):
    """The first half of the n-th roots of 1."""
    return [cmath.rect(1, -2 * math.pi * k / n) for k in range(n // 2)]


def fft(z):
    """The discrete Fourier transform of 2^k numbers."""
    n = len(z)
    if n == 1:
        return z
    even = fft(z[::2])
    turned = [t * v for t, v in zip(turns(n), fft(z[1::2]))]
    return [e + t for e, t in zip(even, turned)] + [e - t for e, t in zip(even, turned)]


def dct4(x):
    """sum_n x[n] cos(pi / N (n + 1/2) (k + 1/2)), by a complex transform of half the size."""
    n = len(x)
    turn = [cmath.rect(1, -math.pi * (8 * k + 1) / (8 * n)) for k in range(n // 2)]
    t = fft([complex(x[2 * k], x[n - 1 - 2 * k]) * turn[k] for k in range(n // 2)])
    result = [0.0] * n
    for k, value in enumerate(t):
        value *= turn[k]
        result[2 * k], result[n - 1 - 2 * k] = value.real, -value.imag
    return result


def note(draw, pitch):
    """A quarter of a second at 16 kHz of a note (69 is A4), somewhat out of tune."""
    frequency = 440 * 2 ** ((pitch - 69 + draw.uniform(-0.3, 0.3)) / 12)
    overtones = [(h, draw.uniform(0.2, 1) / h ** draw.uniform(0.3, 1.5), draw.uniform(0, 6.28))
                 for h in range(1, 6)]
    depth, speed = draw.uniform(0, 0.006), draw.uniform(4, 7)
    sin, samples = math.sin, [0.0] * 4096
    phases = [2 * math.pi * frequency * (t + depth * sin(2 * math.pi * speed * t) / speed)
              for t in (i / 16000 for i in range(4096))]
    for h, a, p in overtones:
        samples = [s + a * sin(h * phase + p) for s, phase in zip(samples, phases)]
    return samples


def heard(draw, pitch):
    """The note with a softer one above it, in noise."""
    first, second = note(draw, pitch), note(draw, draw.randrange(60, 84))
    share, noise = draw.uniform(0.2, 0.7), draw.uniform(0.2, 2)
    return [a + share * b + draw.gauss(0, noise) for a, b in zip(first, second)]


def tones(out):
    draw = random.Random(3)
    for part, count in (("train", 600), ("test", 300)):
        x, y = array.array("f"), []
        for i in range(count):
            pitch = 12 * draw.randrange(4, 6) + i % 12
            spectrum = [abs(v) for v in dct4(heard(draw, pitch))[:2048]]
            low, high = min(spectrum), max(spectrum)
            x.extend((v - low) / (high - low) for v in spectrum)
            y.append(pitch % 12)
        write_npz(out / f"tones-{part}.npz", mdct=("f", (count, 2048), x), y=("q", (count,), y))


def patches(cifar, out):
    draw = random.Random(4)
    for part, name in (("train", "train_4000.bin.gz"), ("test", "test_1000.bin.gz")):
        records = gzip.decompress((cifar / name).read_bytes())
        x, y, count = array.array("f"), array.array("f"), len(records) // 3073
        for i in range(count):
            top, left = draw.randrange(21), draw.randrange(21)
            for plane in range(3):
                begin = i * 3073 + 1 + plane * 1024 + top * 32 + left
                rows = [records[begin + 32 * r:begin + 32 * r + 12] for r in range(12)]
                for row in rows:
                    y.extend(v / 255 for v in row)
                x.extend(sum(sum(rows[3 * r + k][3 * c:3 * c + 3]) for k in range(3)) / (9 * 255)
                         for r in range(4) for c in range(4))
        write_npz(out / f"patches-{part}.npz", input=("f", (count, 3, 4, 4), x), y=("f", (count, 3, 12, 12), y))


def png(width, height, planes):
    """A picture of three planes as a PNG file."""
    rows = b"".join(b"\0" + bytes(planes[c * width * height + y * width + x] for x in range(width) for c in range(3))
                    for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def photos(cifar, out):
    names = {3: "cat", 5: "dog", 7: "horse", 8: "ship"}
    for part, each in (("train", 200), ("test", 5)):
        records = gzip.decompress(next(cifar.glob(part + "_*")).read_bytes())
        taken = dict.fromkeys(names, 0)
        for begin in range(0, len(records), 3073):
            label = records[begin]
            if taken.get(label, each) == each:
                continue
            taken[label] += 1
            known = part == "train"
            path = out / (f"photos/{names[label]}/{taken[label]:03}.png" if known else f"new-photos/{sum(taken.values()):02}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(32, 32, records[begin + 1:begin + 3073]))


# What each set is made from, and how.
TEXT, PICTURES = "datasets/tinyshakespeare/input.txt", "datasets/cifar10-subset"
SETS = {
    "letters": (TEXT, lambda path, out: letters(path.read_text(), out)),
    "passages": (TEXT, lambda path, out: passages(path.read_text(), out)),
    "tones": (None, lambda _, out: tones(out)),
    "patches": (PICTURES, patches),
    "photos": (PICTURES, photos),
}


def make(folder, names):
    out = folder / "made"
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        source, write = SETS[name]
        if not any(out.glob(name + "*")):
            write(source and folder / source, out)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(SETS):
        sys.exit(__doc__)
    make(pathlib.Path(sys.argv[1]), sys.argv[2:] or SETS)
