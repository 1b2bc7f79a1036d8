"""make_sklearn.py OUT: a scikit-learn classifier through skl2onnx, with its loss curve; see make_torch.py for the files.

Made with scikit-learn 1.9.1, skl2onnx 1.20.0. The first output is the label, the second the probabilities that are trained.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
x, y = np.random.RandomState(0).rand(4, 8).astype("f"), np.arange(4)
model = MLPClassifier(hidden_layer_sizes=(16,), activation="tanh", solver="sgd", momentum=0, nesterovs_momentum=False,
                      learning_rate_init=0.05, alpha=0, batch_size=4, random_state=0, shuffle=False)
model.partial_fit(x, y, classes=y)
proto = to_onnx(model, x[:1], options={id(model): {"zipmap": False}}, target_opset=17)
open(f"{out}/sklearn_mlp.skl2onnx.onnx", "wb").write(proto.SerializeToString())
losses = []
for _ in range(20):
    model.partial_fit(x, y)
    losses.append(float(f"{model.loss_:.8g}"))
np.save(f"{out}/sklearn_mlp.x.npy", x)
np.save(f"{out}/sklearn_mlp.y.npy", y)
json.dump({"loss": "cross_entropy:logits=probabilities", "sgd:lr=0.05": losses}, open(f"{out}/sklearn_mlp.json", "w"))
