#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node cases of the installed onnx package: node_cases.py FOLDER makes FOLDER/node/test_*."""
import argparse
import sys

import numpy
from onnx.backend.test import cmd_tools
from onnx.backend.test.case import node

# Cases are computed while their modules are imported, in the order of their names.
numpy.random.seed(0)
# The tool writes what this module collects: the cases of models unless told otherwise.
cmd_tools.model_test = node
cmd_tools.generate_data(argparse.Namespace(output=sys.argv[1]))
