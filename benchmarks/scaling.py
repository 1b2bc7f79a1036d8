#!/usr/bin/env python3
"""scaling.py --build DIR --work DIR --html FILE [--rounds 3] [--seconds 1]: how a step's time grows with batch and depth.

Sizes take turns, round after round, and the best round's median counts. Writes a page with a plot of each series and prints
one JSON line per series; `straight` says whether the largest size costs within 25 % of what the line through the two smallest
foretells.
"""
import argparse, html, json, subprocess

BATCHES = (16, 32, 64, 128, 256)
DEPTHS = (1, 2, 4, 8, 16)
WIDTH, BATCH = 512, 64  # of the models of different depth
TOLERANCE = 0.25

flags = argparse.ArgumentParser()
flags.add_argument("--build", default="build")
flags.add_argument("--work", required=True)
flags.add_argument("--html", required=True)
flags.add_argument("--rounds", type=int, default=3)
flags.add_argument("--seconds", default="1")
a = flags.parse_args()


def bench(model, batch):
    command = [a.build + "/onward", "bench", model, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "adamw",
               "--batch", str(batch), "--seconds", a.seconds, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(cases):
    """cases: size -> (model, batch). Returns the best round of each size."""
    best = {}
    for _ in range(a.rounds):
        for size, case in cases.items():
            result = bench(*case)
            if size not in best or result["median_ms"] < best[size]["median_ms"]:
                best[size] = result
    return best


def fit(xs, ys):
    """The line of least squares: intercept and slope."""
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
    return my - slope * mx, slope


def judge(what, best):
    xs, ys = list(best), [r["median_ms"] for r in best.values()]
    intercept, slope = fit(xs[:2], ys[:2])
    foretold = intercept + slope * xs[-1]
    return dict(series=what, sizes=xs, median_ms=ys, fit=fit(xs, ys), two_smallest=[intercept, slope], foretold_ms=foretold,
                deviation=ys[-1] / foretold - 1, straight=abs(ys[-1] - foretold) <= TOLERANCE * abs(foretold))


def sentence(s):
    sizes, verdict = s["sizes"], "within" if s["straight"] else "NOT within"
    return (f"{s['series']}: at {sizes[-1]} a step takes {s['median_ms'][-1]:.2f} ms, {s['deviation']:+.0%} from the line "
            f"through {sizes[0]} and {sizes[1]}: {verdict} {TOLERANCE:.0%}.")


def plot(s):
    width, height, left, bottom = 560, 340, 64, 44
    top_x = s["sizes"][-1] * 1.05
    top_y = max(*s["median_ms"], s["foretold_ms"]) * 1.08
    px = lambda x: left + x / top_x * (width - left - 12)
    py = lambda y: height - bottom - y / top_y * (height - bottom - 12)

    def line(k, style):
        y = lambda x: k[0] + k[1] * x
        return f'<line x1="{px(0):.1f}" y1="{py(y(0)):.1f}" x2="{px(top_x):.1f}" y2="{py(y(top_x)):.1f}" {style}/>'

    parts = [f'<svg width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="12">',
             f'<path d="M{left} 12V{height - bottom}H{width - 12}" fill="none" stroke="#888"/>']
    for x in s["sizes"]:
        parts.append(f'<text x="{px(x):.1f}" y="{height - bottom + 16}" text-anchor="middle">{x}</text>')
    for i in range(5):
        y = top_y * i / 4.5
        parts.append(f'<text x="{left - 6}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.{2 if top_y < 10 else 0}f}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">{html.escape(s["series"])}</text>')
    parts.append(f'<text x="14" y="{height / 2}" transform="rotate(-90 14 {height / 2})" text-anchor="middle">ms per step</text>')
    parts.append(line(s["fit"], 'stroke="#2a6fdb"'))
    parts.append(line(s["two_smallest"], 'stroke="#c60" stroke-dasharray="5 4"'))
    parts += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="4" fill="#2a6fdb"><title>{x}: {y:.3f} ms</title></circle>'
              for x, y in zip(s["sizes"], s["median_ms"])]
    return "\n".join(parts) + "</svg>"


def table(best):
    columns = ("median_ms", "prepare_ms", "arena_mb", "peak_mb")
    rows = [f"<tr><td>{size}</td>" + "".join(f"<td>{r[c]:.2f}</td>" for c in columns) + "</tr>" for size, r in best.items()]
    return "<table><tr><th>size</th>" + "".join(f"<th>{c}</th>" for c in columns) + "</tr>\n" + "\n".join(rows) + "</table>"


cnn = a.work + "/cnn.onnx"
subprocess.run([a.build + "/examples/make_cnn", cnn], check=True, stdout=subprocess.DEVNULL)
chains = {depth: f"{a.work}/chain{depth}.onnx" for depth in DEPTHS}
for depth, path in chains.items():
    subprocess.run([a.build + "/benchmarks/make_chain", path, str(depth), str(WIDTH)], check=True)
by_batch = measure({n: (cnn, n) for n in BATCHES})
by_depth = measure({depth: (path, BATCH) for depth, path in chains.items()})
results = [(judge("batch size", by_batch), by_batch), (judge("blocks of depth", by_depth), by_depth)]

page = ["<!doctype html><html lang=en><meta charset=utf-8><title>Onward: cost by batch and depth</title>",
        "<style>body{font:15px sans-serif;max-width:60em;margin:2em auto}td,th{text-align:right;padding:0 1em}</style>",
        "<h1>Cost of a training step by batch and depth</h1>",
        "<p>Dots: measured. Blue: the line of least squares. Dashed: the line through the two smallest sizes.</p>"]
for series, best in results:
    page += [f"<p>{html.escape(sentence(series))}</p>", plot(series), table(best)]
    print(json.dumps(dict(series, sentence=sentence(series))))
with open(a.html, "w") as f:
    f.write("\n".join(page) + "</html>\n")
