// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/embed.h"

#include <filesystem>
#include <vector>

#include "core/base/status.h"
#include "core/onnx_io/proto.h"

namespace onward {
namespace {

// Every tensor of a model that has its data outside, wherever it stands.
class ExternalTensors {
 public:
  explicit ExternalTensors(const onnx::ModelProto& model) {
    Visit(model.graph());
    for (const auto& info : model.training_info()) {
      Visit(info.initialization());
      Visit(info.algorithm());
    }
    for (const auto& function : model.functions()) {
      for (const auto& node : function.node()) Visit(node);
      for (const auto& attribute : function.attribute_proto()) Visit(attribute);
    }
  }
  const std::vector<const onnx::TensorProto*>& found() const { return found_; }

 private:
  void Visit(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) Visit(tensor);
    for (const auto& sparse : graph.sparse_initializer()) Visit(sparse);
    for (const auto& node : graph.node()) Visit(node);
  }
  void Visit(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) Visit(attribute);
  }
  void Visit(const onnx::AttributeProto& attribute) {
    if (attribute.has_t()) Visit(attribute.t());
    if (attribute.has_sparse_tensor()) Visit(attribute.sparse_tensor());
    if (attribute.has_g()) Visit(attribute.g());
    for (const auto& tensor : attribute.tensors()) Visit(tensor);
    for (const auto& sparse : attribute.sparse_tensors()) Visit(sparse);
    for (const auto& graph : attribute.graphs()) Visit(graph);
  }
  void Visit(const onnx::SparseTensorProto& sparse) {
    Visit(sparse.values());
    Visit(sparse.indices());
  }
  void Visit(const onnx::TensorProto& tensor) {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) found_.push_back(&tensor);
  }

  std::vector<const onnx::TensorProto*> found_;
};

}  // namespace

bool HasExternalData(const Model& model) { return !ExternalTensors(model.proto()).found().empty(); }

std::set<std::string> ExternalFiles(const Model& model) {
  std::set<std::string> files;
  const ExternalTensors outside(model.proto());
  for (const onnx::TensorProto* tensor : outside.found()) {
    for (const auto& entry : tensor->external_data()) {
      if (entry.key() == "location") {
        files.insert((std::filesystem::path(model.folder()) / entry.value()).string());
      }
    }
  }
  return files;
}

absl::Status EmbedExternalData(Model* model) {
  if (!HasExternalData(*model)) return absl::OkStatus();
  const ExternalData external(model->folder());
  onnx::ModelProto& own = model->proto();
  const ExternalTensors outside(own);
  for (const onnx::TensorProto* tensor : outside.found()) {
    ONWARD_ASSIGN_OR_RETURN(const Tensor value, TensorFromProto(*tensor, &external));
    // It is part of `own`, which may be changed.
    ReplaceValues(value, const_cast<onnx::TensorProto*>(tensor));
  }
  return absl::OkStatus();
}

}  // namespace onward
