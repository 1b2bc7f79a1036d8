// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/hold.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

class TensorWalk {
 public:
  explicit TensorWalk(const std::function<bool(const onnx::TensorProto&)>& visit) : visit_(visit) {}

  void Visit(const onnx::ModelProto& model) {
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
  void Visit(const onnx::TensorProto& tensor) { go_on_ = go_on_ && visit_(tensor); }

  const std::function<bool(const onnx::TensorProto&)>& visit_;
  bool go_on_ = true;
};

// Where the model's data may lie: beside the path it was read by or, if that is a link,
// beside what it leads to.
std::vector<std::string> DataFolders(const Model& model) {
  std::vector<std::string> folders = {model.folder()};
  std::error_code error;
  if (fs::is_symlink(model.path(), error)) {
    const fs::path real = fs::canonical(model.path(), error);
    if (!error) folders.push_back(real.parent_path().string());
  }
  return folders;
}

absl::Status Hold(const ExternalData& external, onnx::TensorProto* tensor, Weights* weights) {
  ONWARD_ASSIGN_OR_RETURN(std::optional<Weights::Bytes> bytes, OutsideBytes(*tensor, &external));
  if (bytes.has_value()) SetHeld(weights->Add(*std::move(bytes)), tensor);
  return absl::OkStatus();
}

}  // namespace

void ForEachTensor(const onnx::ModelProto& model,
                   const std::function<bool(const onnx::TensorProto&)>& visit) {
  TensorWalk(visit).Visit(model);
}

void ForEachTensor(onnx::ModelProto* model, const std::function<bool(onnx::TensorProto*)>& change) {
  const std::function<bool(const onnx::TensorProto&)> visit = [&](const onnx::TensorProto& tensor) {
    return change(const_cast<onnx::TensorProto*>(&tensor));  // part of `model`
  };
  TensorWalk(visit).Visit(*model);
}

bool HasExternalData(const Model& model) {
  bool found = false;
  ForEachTensor(model.proto(), [&](const onnx::TensorProto& tensor) {
    found = IsExternal(tensor);
    return !found;
  });
  return found;
}

absl::Status HoldExternalData(Model* model) {
  if (!HasExternalData(*model)) return absl::OkStatus();
  absl::Status first;
  std::vector<ExternalData> places;
  for (std::string& folder : DataFolders(*model)) places.emplace_back(std::move(folder));
  Weights& weights = model->weights();
  ForEachTensor(&model->proto(), [&](onnx::TensorProto* tensor) {
    if (!IsExternal(*tensor)) return true;
    absl::Status status;
    for (const ExternalData& external : places) {
      const absl::Status tried = Hold(external, tensor, &weights);
      if (status.ok() || tried.ok()) status = tried;
      if (status.code() != absl::StatusCode::kNotFound) break;
    }
    first.Update(status);
    return true;
  });
  return first;
}

absl::Status HoldLargeTensors(Model* model) {
  absl::Status status;
  Weights& weights = model->weights();
  ForEachTensor(&model->proto(), [&](onnx::TensorProto* tensor) {
    // An element takes a byte or more of the message.
    if (tensor->ByteSizeLong() < kHeldBytes / sizeof(double)) return true;
    if (HeldNumber(*tensor) || tensor->data_type() == onnx::TensorProto::STRING) return true;
    auto values = TensorFromProto(*tensor, nullptr);
    if (!values.ok()) {
      status = values.status();
    } else if (values->bytes() >= kHeldBytes) {
      ReplaceValues(*values, tensor, &weights);
    }
    return status.ok();
  });
  return status;
}

}  // namespace onward
