// SPDX-License-Identifier: Apache-2.0
// Mending the lists of a file: what stands twice in them, and what is missing.
#ifndef ONWARD_TRAINING_INFO_EXPORT_LISTS_H_
#define ONWARD_TRAINING_INFO_EXPORT_LISTS_H_

#include <string>
#include <vector>

namespace onnx {
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace onward {

// Whether a node of the graph has an output of this name.
bool Computes(const onnx::GraphProto& graph, const std::string& value);

// Drops functions, initializers, nodes and inputs that stand twice, byte for byte, and what an
// algorithm repeats of the model's initializers and inputs. Adds a sentence for each to `changes`.
void DropWhatStandsTwice(onnx::ModelProto* model, std::vector<std::string>* changes);

// Lists values that bindings name, and that are there, among the outputs.
void ListBoundValues(onnx::ModelProto* model, std::vector<std::string>* changes);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_EXPORT_LISTS_H_
