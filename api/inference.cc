// SPDX-License-Identifier: Apache-2.0
#include "onward/inference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/access.h"
#include "core/base/status.h"
#include "training_info/lower.h"

namespace onward::api {

struct InferenceSession::Impl {
  Environment environment;  // which the session refers to
  std::string path;
  std::vector<NamedType> feeds;
  std::vector<ValueInfo> inputs, outputs;
  Session session;

  absl::StatusOr<onward::ValueMap> Run(onward::ValueMap given);
};

InferenceSession::InferenceSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InferenceSession::InferenceSession(InferenceSession&&) noexcept = default;
InferenceSession& InferenceSession::operator=(InferenceSession&&) noexcept = default;
InferenceSession::~InferenceSession() = default;

const std::vector<ValueInfo>& InferenceSession::inputs() const { return impl_->inputs; }
const std::vector<ValueInfo>& InferenceSession::outputs() const { return impl_->outputs; }

Result<InferenceSession> InferenceSession::Create(const Model& model,
                                                  const Environment& environment) {
  return Converted<InferenceSession>(
      [&]() -> absl::StatusOr<std::unique_ptr<Impl>> {
        const onward::Environment& own = Access::FromEnvironment(environment);
        ONWARD_RETURN_IF_ERROR(own.cpu().Usable());
        ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(Access::FromModel(model), own));
        CompileOptions options = own.compile_options();
        options.looked_at = Access::FromModel(model).weights().PageReleaser();
        std::vector<NamedType> feeds = graph.FeedInputs();
        std::vector<ValueInfo> inputs = ToInfos(feeds), outputs = ToInfos(graph.outputs);
        return std::unique_ptr<Impl>(new Impl{environment, model.path(), std::move(feeds),
                                              std::move(inputs), std::move(outputs),
                                              Session(std::move(graph), std::move(options))});
      },
      [](std::unique_ptr<Impl> impl) { return InferenceSession(std::move(impl)); });
}

namespace {

// Every input is there and fits, and nothing else is.
absl::Status CheckFeeds(const std::vector<NamedType>& inputs, const onward::ValueMap& feeds) {
  for (const NamedType& in : inputs) {
    auto it = feeds.find(in.name);
    if (it == feeds.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", in.name, "' (", in.type.ToString(), ") is missing"));
    }
    ONWARD_RETURN_IF_ERROR(CheckFeed(in, it->second));
  }
  if (feeds.size() == inputs.size()) return absl::OkStatus();
  for (const auto& [name, value] : feeds) {
    const auto named = [&](const NamedType& in) { return in.name == name; };
    if (std::none_of(inputs.begin(), inputs.end(), named)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has no input '", name, "'; inputs() lists what it takes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<onward::ValueMap> InferenceSession::Impl::Run(onward::ValueMap given) {
  const std::string where = absl::StrCat("'", path, "'");
  for (const NamedType& in : feeds) {
    if (in.type.kind == ValueType::Kind::kOptional) given.try_emplace(in.name);
  }
  ONWARD_RETURN_IF_ERROR(Annotate(CheckFeeds(feeds, given), where));
  auto results = session.RunValues(given, nullptr);
  if (!results.ok()) return Annotate(results.status(), where);
  return results;
}

Result<TensorMap> InferenceSession::Run(const TensorMap& feeds) {
  return Converted<TensorMap>(
      [&]() -> absl::StatusOr<onward::TensorMap> {
        ONWARD_ASSIGN_OR_RETURN(onward::ValueMap results,
                                impl_->Run(onward::ToValues(FromTensors(feeds))));
        return onward::ToTensors(std::move(results));
      },
      [](onward::TensorMap tensors) { return ToTensors(std::move(tensors)); });
}

Result<ValueMap> InferenceSession::RunValues(const ValueMap& feeds) {
  return Converted<ValueMap>([&] { return impl_->Run(FromValues(feeds)); },
                             [](onward::ValueMap values) { return ToValues(std::move(values)); });
}

}  // namespace onward::api
