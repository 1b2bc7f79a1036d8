// SPDX-License-Identifier: Apache-2.0
// Conversions between ONNX's protobuf messages and Onward's values. Internal to
// core/onnx_io and training_info/{import,export}: it includes protobuf headers.
#ifndef ONWARD_CORE_ONNX_IO_PROTO_H_
#define ONWARD_CORE_ONNX_IO_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/onnx_io/external_data.h"
#include "onnx/onnx_pb.h"

namespace onward {

// Tensors. `external` resolves data outside the message; null refuses it.
absl::StatusOr<Tensor> TensorFromProto(const onnx::TensorProto& proto,
                                       const ExternalData* external);
absl::StatusOr<Tensor> SparseFromProto(const onnx::SparseTensorProto& proto,
                                       const ExternalData* external);
void TensorToProto(const Tensor& tensor, const std::string& name, onnx::TensorProto* proto);
// Other values of the same type and shape, inside the message; the rest of it stays.
void ReplaceValues(const Tensor& tensor, onnx::TensorProto* proto);

// Types.
ValueType TypeFromProto(const onnx::TypeProto& proto);
void TypeToProto(const ValueType& type, onnx::TypeProto* proto);

// Nodes, graphs, functions. Graph.opsets and .functions are the model's affair.
absl::StatusOr<Node> NodeFromProto(const onnx::NodeProto& proto, const ExternalData* external);
void NodeToProto(const Node& node, onnx::NodeProto* proto);
absl::StatusOr<Graph> GraphFromProto(const onnx::GraphProto& proto, const ExternalData* external);
void GraphToProto(const Graph& graph, onnx::GraphProto* proto);
absl::StatusOr<Function> FunctionFromProto(const onnx::FunctionProto& proto,
                                           const ExternalData* external);
void FunctionToProto(const FunctionKey& key, const Function& function, onnx::FunctionProto* proto);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_PROTO_H_
