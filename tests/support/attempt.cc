// SPDX-License-Identifier: Apache-2.0
#include "tests/support/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/guard.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kMaxFedElements = 1 << 12;
constexpr size_t kMaxBytes = size_t{512} << 20;

// Zeros for the inputs, where they are known and small; unknown sizes are 2.
absl::StatusOr<TensorMap> ZeroFeeds(const std::vector<NamedType>& inputs) {
  TensorMap feeds;
  for (const NamedType& in : inputs) {
    Shape shape;
    for (const Dim& d : in.type.dims) shape.push_back(d.known() ? d.value : 2);
    ONWARD_ASSIGN_OR_RETURN(int64_t elements, CheckedElements(shape.dims()));
    if (elements > kMaxFedElements || in.type.kind != ValueType::Kind::kTensor ||
        !IsKnownDType(static_cast<int32_t>(in.type.dtype))) {
      return absl::OutOfRangeError("node '': the test feeds small tensors only");
    }
    feeds[in.name] = Tensor::Zeros(in.type.dtype, shape);
  }
  return feeds;
}

absl::Status Infer(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, DefaultEnvironment()));
  ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, ZeroFeeds(graph.FeedInputs()));
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(std::move(graph), options);
  return session.Run(feeds, nullptr).status();
}

absl::Status Train(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(auto training, TrainingModel::Create(model, DefaultEnvironment()));
  ONWARD_RETURN_IF_ERROR(training->Initialize());
  ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, ZeroFeeds(training->StepInputs()));
  ONWARD_RETURN_IF_ERROR(training->Step(feeds).status());
  return training->Export().status();
}

}  // namespace

absl::Status AttemptBytes(const std::string& bytes, const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ParseModel(bytes, path));
  ONWARD_ASSIGN_OR_RETURN(std::vector<Finding> findings, CheckModel(model, DefaultEnvironment()));
  // A file with nothing but remarks is tried.
  std::erase_if(findings, IsRemark);
  ONWARD_RETURN_IF_ERROR(Annotate(FindingsToStatus(findings), "'" + path + "'"));
  ONWARD_RETURN_IF_ERROR(Infer(model));
  return model.has_training() ? Train(model) : absl::OkStatus();
}

absl::Status Attempt(const Model& model) {
  return AttemptBytes(Bytes(model), model.path().empty() ? "hostile.onnx" : model.path());
}

void PrintTo(const Hostile& h, std::ostream* out) { *out << h.name; }

void ExpectRefused(const Hostile& h) {
  const Model model = h.model();
  Guard guard;
  guard.Trying(h.name);
  const absl::Status status = Attempt(model);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(h.says));
  EXPECT_THAT(std::string(status.message()), AnyOf(HasSubstr("hostile.onnx"), HasSubstr("node '")));
  EXPECT_LT(guard.GrownBytes(), kMaxBytes);
}

}  // namespace onward
