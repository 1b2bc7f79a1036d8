#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes plateau.txt: what PyTorch's ReduceLROnPlateau makes of series of figures (tests/trainer/watch_test.cc).

A line is: the schedule, the base rate, then pairs FIGURE:RATE, the rate being that after the figure was seen.
"""
import pathlib
import random

import torch

CASES = [
    ('', {}),
    ('patience=2', {'patience': 2}),
    ('patience=0,factor=0.5', {'patience': 0, 'factor': 0.5}),
    ('patience=1,cooldown=3', {'patience': 1, 'cooldown': 3}),
    ('patience=1,min_lr=0.003', {'patience': 1, 'min_lr': 0.003}),
    ('patience=1,eps=0.02', {'patience': 1, 'eps': 0.02}),
    ('patience=2,threshold=0.05', {'patience': 2, 'threshold': 0.05}),
    ('patience=2,threshold=0.05,threshold_mode=abs', {'patience': 2, 'threshold': 0.05, 'threshold_mode': 'abs'}),
    ('patience=2,mode=max', {'patience': 2, 'mode': 'max'}),
    ('patience=1,mode=max,threshold=0.1,threshold_mode=abs,factor=0.3', {
        'patience': 1, 'mode': 'max', 'threshold': 0.1, 'threshold_mode': 'abs', 'factor': 0.3}),
]
BASE = 0.1


def main():
    lines = []
    for number, (text, options) in enumerate(CASES):
        draw = random.Random(number)
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        pairs = []
        for step in range(40):
            figure = round(2.0 / (1 + step) ** 0.5 + draw.uniform(-0.3, 0.3), 4)
            scheduler.step(figure)
            pairs.append(f'{figure!r}:{optimizer.param_groups[0]["lr"]!r}')
        name = 'reduce_on_plateau' + (':' + text if text else '')
        lines.append(' '.join([name, repr(BASE)] + pairs))
    path = pathlib.Path(__file__).with_name('plateau.txt')
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
