"""make_peers.py PEERS MODELS: small twins of the benchmark models, as tests/golden/peers/NAME.onnx.

PEERS holds models.py, MODELS what its export.py wrote. A twin is the same source with smaller numbers in it, exported by the
same call, and has the same operators; the script ends with an error where it has not. Needs torch and onnx.
"""
import os
import sys
import warnings

import onnx
import torch

warnings.filterwarnings("ignore")
peers, models = sys.argv[1:3]
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")

# What stands in models.py, and what stands in the twins' source.
SMALLER = [
    ("784,512", "16,12"), ("512,256);", "12,8);"), ("256,10)", "8,10)"),  # MLP, and LSTM's classifier
    ("1,32,3", "1,4,3"), ("32,64,3", "4,6,3"), ("64*7*7,128", "6*2*2,8"), ("128,10", "8,10"),  # LeNet
    ("Conv2d(3,64", "Conv2d(3,4"), ("BatchNorm2d(64)", "BatchNorm2d(4)"), ("i=64", "i=4"),  # ResNet18
    ("((64,1),(128,2),(256,2),(512,2))", "((4,1),(5,2),(6,2),(7,2))"), ("512,n", "7,n"),
    ("Conv2d(3,32,", "Conv2d(3,4,"), ("BatchNorm2d(32)", "BatchNorm2d(4)"), ("i=32", "i=4"),  # MobileNetV2
    ("((1,16,1,1),(6,24,2,2),(6,32,3,2),(6,64,4,2),(6,96,3,1),(6,160,3,2),(6,320,1,1))",
     "((1,3,1,1),(2,4,2,2),(2,5,2,2))"), ("1280", "8"),
    ("V=8000,T=128,d=256,L=4,h=4,n=2", "V=20,T=6,d=8,L=2,h=2,n=2"),  # TinyBert
    ("nn.LSTM(64,256", "nn.LSTM(4,8"),
]
EXAMPLES = {
    "mlp": lambda: torch.randn(4, 1, 4, 4),
    "lenet": lambda: torch.randn(4, 1, 8, 8),
    "resnet18_32": lambda: torch.randn(4, 3, 32, 32),
    "resnet18_224": lambda: torch.randn(4, 3, 64, 64),
    "mobilenetv2_96": lambda: torch.randn(4, 3, 16, 16),
    "tinybert": lambda: torch.randint(0, 20, (2, 6)),
    "lstm": lambda: torch.randn(5, 3, 4),
}


def operators(file):
    return sorted({node.op_type for node in onnx.load(file).graph.node})


source = open(f"{peers}/models.py").read()
for large, small in SMALLER:
    assert large in source, large
    source = source.replace(large, small)
twins = {}
exec(source, twins)
os.makedirs(out, exist_ok=True)
for name, example in EXAMPLES.items():
    torch.manual_seed(0)
    file = f"{out}/{name}.onnx"
    torch.onnx.export(twins["MODELS"][name][0]().eval(), (example(),), file, opset_version=15, dynamo=False, input_names=["x"],
                      output_names=["y"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    full, twin = operators(f"{models}/{name}.onnx"), operators(file)
    if full != twin:
        sys.exit(f"{name}: has {twin}, the model has {full}")
    print(name, os.path.getsize(file), twin)
