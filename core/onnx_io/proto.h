// SPDX-License-Identifier: Apache-2.0
// Conversions between ONNX's protobuf messages and Onward's values. Internal to
// core/onnx_io and training_info/{import,export}: it includes protobuf headers.
#ifndef ONWARD_CORE_ONNX_IO_PROTO_H_
#define ONWARD_CORE_ONNX_IO_PROTO_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/onnx_io/external_data.h"
#include "onnx/onnx_pb.h"

namespace onward {

// Tensors. `external` resolves data outside the message; null refuses it. In the other
// direction `held` takes large tensors in, which are then shared, not copied; null: all go
// into the message.
absl::StatusOr<Tensor> TensorFromProto(const onnx::TensorProto& proto,
                                       const ExternalData* external);
absl::StatusOr<Tensor> SparseFromProto(const onnx::SparseTensorProto& proto,
                                       const ExternalData* external);
void TensorToProto(const Tensor& tensor, const std::string& name, onnx::TensorProto* proto,
                   Weights* held = nullptr);
// Other values of the same type and shape; the rest of the message stays.
void ReplaceValues(const Tensor& tensor, onnx::TensorProto* proto, Weights* held = nullptr);
// The number of the weight that the message stands for; null if it has its values itself.
std::optional<int64_t> HeldNumber(const onnx::TensorProto& proto);
void SetHeld(int64_t number, onnx::TensorProto* proto);
// Whether the values are in a file beside the model.
inline bool IsExternal(const onnx::TensorProto& proto) {
  return proto.data_location() == onnx::TensorProto::EXTERNAL;
}
// The bytes that are not in the message: weights held, or in a file beside the model. Null if
// the message has its values itself. Checked for the tensor's type and shape.
absl::StatusOr<std::optional<Weights::Bytes>> OutsideBytes(const onnx::TensorProto& proto,
                                                           const ExternalData* external);

// Types.
ValueType TypeFromProto(const onnx::TypeProto& proto);
void TypeToProto(const ValueType& type, onnx::TypeProto* proto);

// "ai.onnx" is "".
std::string CanonicalDomain(const std::string& domain);

// Nodes, graphs, functions. Graph.opsets and .functions are the model's affair.
absl::StatusOr<Node> NodeFromProto(const onnx::NodeProto& proto, const ExternalData* external);
void NodeToProto(const Node& node, onnx::NodeProto* proto, Weights* held = nullptr);
absl::StatusOr<Graph> GraphFromProto(const onnx::GraphProto& proto, const ExternalData* external);
void GraphToProto(const Graph& graph, onnx::GraphProto* proto, Weights* held = nullptr);
absl::StatusOr<Function> FunctionFromProto(const onnx::FunctionProto& proto,
                                           const ExternalData* external);
void FunctionToProto(const FunctionKey& key, const Function& function, onnx::FunctionProto* proto,
                     Weights* held = nullptr);
// A model around `graph`, its functions included.
onnx::ModelProto GraphToModelProto(const Graph& graph, int ir_version, const std::string& producer,
                                   Weights* held = nullptr);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_PROTO_H_
