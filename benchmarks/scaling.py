#!/usr/bin/env python3
"""scaling.py --build DIR --work DIR --html FILE [--rounds 8] [--seconds 0.5]: how a step's time grows with batch and depth.

Sizes take turns, round after round, and the fastest step of all rounds counts: other work on the machine only ever adds to it,
and meets long steps and short ones differently. Writes a page with a plot of each series and prints one JSON line per series;
`straight` says whether every size costs within 15 % of the line that fits them best (least squares of the relative distances).
"""
import argparse, html, json, subprocess

BATCHES = (16, 32, 64, 128, 256)
DEPTHS = (1, 2, 4, 8, 16)
WIDTH, BATCH = 512, 64  # of the models of different depth
TOLERANCE = 0.15

flags = argparse.ArgumentParser()
flags.add_argument("--build", default="build")
flags.add_argument("--work", required=True)
flags.add_argument("--html", required=True)
flags.add_argument("--rounds", type=int, default=8)
flags.add_argument("--seconds", default="0.5")
a = flags.parse_args()


def bench(model, batch):
    command = [a.build + "/onward", "bench", model, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "adamw",
               "--batch", str(batch), "--seconds", a.seconds, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(cases):
    """cases: size -> (model, batch). Returns the round with the fastest step of each size."""
    best = {}
    for _ in range(a.rounds):
        for size, case in cases.items():
            result = bench(*case)
            if size not in best or result["min_ms"] < best[size]["min_ms"]:
                best[size] = result
    return best


def fit(xs, ys):
    """Intercept and slope of the line with the least squares of (y - line) / y."""
    w = [1 / (y * y) for y in ys]
    mean = lambda vs: sum(k * v for k, v in zip(w, vs)) / sum(w)
    mx, my = mean(xs), mean(ys)
    slope = mean([(x - mx) * (y - my) for x, y in zip(xs, ys)]) / mean([(x - mx) ** 2 for x in xs])
    return my - slope * mx, slope


def judge(what, best):
    xs, ys = list(best), [r["min_ms"] for r in best.values()]
    intercept, slope = fit(xs, ys)
    deviations = [y / (intercept + slope * x) - 1 for x, y in zip(xs, ys)]
    return dict(series=what, sizes=xs, min_ms=ys, fit=[intercept, slope], deviations=deviations,
                straight=max(map(abs, deviations)) <= TOLERANCE)


def sentence(s):
    worst = max(range(len(s["sizes"])), key=lambda i: abs(s["deviations"][i]))
    verdict = "within" if s["straight"] else "NOT within"
    return (f"{s['series']}: the line is {s['fit'][0]:.2f} + {s['fit'][1]:.4f} * n ms; the farthest from it, at {s['sizes'][worst]}, lies "
            f"{s['deviations'][worst]:+.0%}: {verdict} {TOLERANCE:.0%}.")


def plot(s):
    width, height, left, bottom = 560, 340, 64, 44
    top_x = s["sizes"][-1] * 1.05
    top_y = max(s["min_ms"]) * 1.08
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
    parts += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="4" fill="#2a6fdb"><title>{x}: {y:.3f} ms</title></circle>'
              for x, y in zip(s["sizes"], s["min_ms"])]
    return "\n".join(parts) + "</svg>"


def table(best):
    columns = ("min_ms", "median_ms", "prepare_ms", "arena_mb", "peak_mb")
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
        "<p>Dots: the fastest step. Line: the one that fits them best.</p>"]
for series, best in results:
    page += [f"<p>{html.escape(sentence(series))}</p>", plot(series), table(best)]
    print(json.dumps(dict(series, sentence=sentence(series))))
with open(a.html, "w") as f:
    f.write("\n".join(page) + "</html>\n")
