# SPDX-License-Identifier: Apache-2.0
"""Writes boosting.txt: how well scikit-learn's gradient boosting does on tables that `onward train mlp` is measured by.

    pip install scikit-learn==1.9.1 pandas==3.1.1
    python tests/golden/make_boosting.py table SHARED > tests/golden/houses.csv
    python tests/golden/make_boosting.py figures SHARED > tests/golden/boosting.txt

SHARED is the folder of models and data (CONTRIBUTING.md). houses.csv is every 23rd row of California housing, with the question whether a house
costs more than the median: some 900 rows of numbers and names with gaps, as the passengers of the Titanic are. A line of boosting.txt is

    TABLE LABEL METRIC FIGURE

the accuracy (or RMSE) of the better of GradientBoosting and HistGradientBoosting with their defaults, as the mean over five folds, for small tables
over five ways to divide them. Names are one-hot; what is empty is filled with the median for the first and left to the second.
"""
import pathlib
import sys

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

HOUSING = "datasets/california-housing/housing.csv.gz"
SMALL = 5000  # rows


def sample(shared):
    houses = pd.read_csv(shared / HOUSING)
    value = houses.pop("median_house_value")
    houses["expensive"] = np.where(value > value.median(), "yes", "no")
    return houses.iloc[::23]


def scikit_table(path):
    rows = pd.read_csv(path, header=None, skiprows=1)
    return rows.rename(columns={rows.columns[-1]: "-1"})


def figure(frame, label):
    frame = frame.copy()
    y = frame.pop(label).to_numpy()
    regression = y.dtype.kind == "f"
    x = pd.get_dummies(frame)
    kind = "Regressor" if regression else "Classifier"
    scoring = "neg_root_mean_squared_error" if regression else "accuracy"
    means = []
    for name, inputs in (("Gradient", x.fillna(x.median())), ("HistGradient", x)):
        model = getattr(ensemble, f"{name}Boosting{kind}")
        scores = []
        for seed in range(5 if len(x) < SMALL else 1):
            folds = (KFold if regression else StratifiedKFold)(5, shuffle=True, random_state=seed)
            scores.append(cross_val_score(model(random_state=0), inputs, y, cv=folds, scoring=scoring).mean())
        means.append(np.mean(scores))
    return ("rmse", -max(means)) if regression else ("accuracy", max(means))


def main():
    what, shared = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "table":
        sample(shared).to_csv(sys.stdout, index=False)
        return
    tables = [("houses.csv", "expensive", pd.read_csv(pathlib.Path(__file__).parent / "houses.csv"))]
    for name in ("breast_cancer.csv", "iris.csv", "wine_data.csv"):
        path = f"datasets/uci-tabular/{name}"
        tables.append((path, "-1", scikit_table(shared / path)))
    for label in ("ocean_proximity", "median_house_value"):
        tables.append((HOUSING, label, pd.read_csv(shared / HOUSING)))
    for path, label, frame in tables:
        metric, value = figure(frame, label)
        print(path, label, metric, f"{value:.6g}", flush=True)


main()
