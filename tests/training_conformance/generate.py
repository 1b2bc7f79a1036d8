#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of the training conformance kit.

    generate.py            writes cases/ anew, and the lists of cases in docs/training-info.md
    generate.py --check    exit 1 if that would change a byte of the cases

Needs the packages onnx (1.23.2) and numpy, and nothing else.
"""
import filecmp
import importlib
import os
import re
import shutil
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from generator import kit  # noqa: E402

DOCUMENT = os.path.join(HERE, '..', '..', 'docs', 'training-info.md')
GROUPS = [f[:-3] for f in sorted(os.listdir(os.path.join(HERE, 'generator')))
          if f.endswith('.py') and f not in ('kit.py', '__init__.py')]


def write_all(folder):
    for group in GROUPS:
        importlib.import_module('generator.' + group)
    for group, name, rules, expect, findings, function in kit.CASES:
        case = kit.Case(os.path.join(folder, group, name))
        try:
            function(case)
            case.write(rules, expect, findings, ' '.join(function.__doc__.split()))
        except Exception as error:
            raise SystemExit(f'{group}/{name}: {error}') from error
    return len(kit.CASES)


def write_lists():
    """After each rule of the document its cases."""
    cases = {}
    for group, name, rules, _, _, _ in kit.CASES:
        for rule in rules:
            cases.setdefault(rule, []).append(f'`{group}/{name}`')
    lines, rule = [], None
    with open(DOCUMENT) as f:
        text = f.read().split('\n')

    def finish():
        if rule in cases:
            lines.extend(textwrap.wrap('Kit: ' + ', '.join(cases[rule]) + '.', 148, initial_indent='  ', subsequent_indent='  ', break_on_hyphens=False))
    in_list = False
    for line in text:
        if line.startswith('  Kit: '):
            in_list = True
        if in_list and line.startswith('  '):
            continue
        in_list = False
        if rule is not None and not line.startswith('  '):
            finish()
            rule = None
        found = re.match(r'- \*\*(T-[A-Z]+-[0-9]+)\*\*', line)
        rule = found.group(1) if found else rule
        lines.append(line)
    with open(DOCUMENT, 'w') as f:
        f.write('\n'.join(lines))


def differences(a, b):
    compared = filecmp.dircmp(a, b)
    found = [os.path.join(a, f) for f in compared.left_only + compared.diff_files + compared.funny_files]
    found += [os.path.join(b, f) for f in compared.right_only]
    for sub in compared.common_dirs:
        found += differences(os.path.join(a, sub), os.path.join(b, sub))
    return found


def main():
    target = os.path.join(HERE, 'cases')
    with tempfile.TemporaryDirectory() as scratch:
        count = write_all(scratch)
        if '--check' in sys.argv[1:]:
            found = differences(target, scratch)
            print('\n'.join(found) if found else f'{count} cases are as generated')
            return 1 if found else 0
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(scratch, target)
    write_lists()
    print(f'{count} cases in {target}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
