// SPDX-License-Identifier: Apache-2.0
// Putting values into messages: shared by the files export*.cc.
#ifndef ONWARD_TRAINING_INFO_EXPORT_PROTO_H_
#define ONWARD_TRAINING_INFO_EXPORT_PROTO_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/onnx_io/proto.h"
#include "core/runtime/session.h"

namespace onward {

// Replaces the values, keeping name, type, shape and documentation.
absl::Status SetValues(const Tensor& value, onnx::TensorProto* proto, Weights* held);

// The same for every initializer that `variables` name; adds those to `done`.
absl::Status SetInitializers(const Variables& variables, onnx::GraphProto* graph, Weights* held,
                             std::set<std::string>* done);

// An error that lists the variables which are not in `done`.
absl::Status RequirePlaces(const Variables& variables, const std::set<std::string>& done,
                           const char* where);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_EXPORT_PROTO_H_
