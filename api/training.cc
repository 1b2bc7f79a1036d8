// SPDX-License-Identifier: Apache-2.0
#include "onward/training.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/access.h"
#include "core/base/status.h"
#include "training_info/averages.h"
#include "training_info/export.h"
#include "training_info/step.h"

namespace onward::api {

struct TrainingSession::Impl {
  Environment environment;  // which the model refers to
  std::unique_ptr<TrainingModel> training;
  std::vector<ValueInfo> inputs;

  std::string where() const { return absl::StrCat("'", training->model().path(), "'"); }
  absl::StatusOr<onward::Tensor> Find(const std::string& name) const {
    const onward::Variables& variables = std::as_const(*training).variables();
    auto it = variables.find(name);
    if (it != variables.end()) return it->second;
    return absl::NotFoundError(absl::StrCat(
        where(), ": '", name, "' is no variable; TrainingSession::Variables lists them"));
  }
};

TrainingSession::TrainingSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrainingSession::TrainingSession(TrainingSession&&) noexcept = default;
TrainingSession& TrainingSession::operator=(TrainingSession&&) noexcept = default;
TrainingSession::~TrainingSession() = default;

Result<TrainingSession> TrainingSession::Create(const Model& model,
                                                const Environment& environment) {
  return Converted<TrainingSession>(
      [&]() -> absl::StatusOr<std::unique_ptr<Impl>> {
        const onward::Environment& own = Access::FromEnvironment(environment);
        ONWARD_RETURN_IF_ERROR(own.cpu().Usable());
        ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                                TrainingModel::Create(Access::FromModel(model), own));
        std::vector<ValueInfo> inputs = ToInfos(training->StepInputs());
        return std::unique_ptr<Impl>(new Impl{environment, std::move(training), std::move(inputs)});
      },
      [](std::unique_ptr<Impl> impl) { return TrainingSession(std::move(impl)); });
}

Status TrainingSession::Initialize() {
  return Guarded([&] { return ToStatus(Annotate(impl_->training->Initialize(), impl_->where())); });
}

Status TrainingSession::Reset(const Model& start) {
  return Guarded([&] {
    return ToStatus(Annotate(impl_->training->Reset(Access::FromModel(start)), impl_->where()));
  });
}

int TrainingSession::entries() const { return impl_->training->entries(); }

const std::vector<ValueInfo>& TrainingSession::inputs() const { return impl_->inputs; }

std::string TrainingSession::loss() const { return impl_->training->model().Metadata(kMetaLoss); }

Result<TensorMap> TrainingSession::Step(const TensorMap& feeds,
                                        const std::vector<std::string>& outputs) {
  return Converted<TensorMap>(
      [&]() -> absl::StatusOr<onward::TensorMap> {
        auto values = impl_->training->Step(FromTensors(feeds), outputs);
        if (!values.ok()) return Annotate(values.status(), impl_->where());
        return values;
      },
      [](onward::TensorMap tensors) { return ToTensors(std::move(tensors)); });
}

Result<TensorMap> TrainingSession::StepEntry(int entry, const TensorMap& feeds,
                                             const std::vector<std::string>& outputs) {
  return Converted<TensorMap>(
      [&]() -> absl::StatusOr<onward::TensorMap> {
        auto values = impl_->training->StepEntry(entry, FromTensors(feeds), outputs);
        if (!values.ok()) return Annotate(values.status(), impl_->where());
        return values;
      },
      [](onward::TensorMap tensors) { return ToTensors(std::move(tensors)); });
}

Result<TensorMap> TrainingSession::Evaluate(const TensorMap& feeds,
                                            const std::vector<std::string>& outputs) {
  return Converted<TensorMap>(
      [&]() -> absl::StatusOr<onward::TensorMap> {
        auto values = impl_->training->Evaluate(FromTensors(feeds), outputs);
        if (!values.ok()) return Annotate(values.status(), impl_->where());
        return values;
      },
      [](onward::TensorMap tensors) { return ToTensors(std::move(tensors)); });
}

Result<ValueMap> TrainingSession::StepValues(const ValueMap& feeds,
                                             const std::vector<std::string>& outputs) {
  return Converted<ValueMap>(
      [&]() -> absl::StatusOr<onward::ValueMap> {
        auto values = impl_->training->StepValues(FromValues(feeds), outputs);
        if (!values.ok()) return Annotate(values.status(), impl_->where());
        return values;
      },
      [](onward::ValueMap values) { return ToValues(std::move(values)); });
}

Result<TensorMap> TrainingSession::Infer(const TensorMap& feeds) {
  return Converted<TensorMap>(
      [&]() -> absl::StatusOr<onward::TensorMap> {
        auto values = impl_->training->Infer(FromTensors(feeds));
        if (!values.ok()) return Annotate(values.status(), impl_->where());
        return values;
      },
      [](onward::TensorMap tensors) { return ToTensors(std::move(tensors)); });
}

std::vector<std::string> TrainingSession::Variables() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : std::as_const(*impl_->training).variables())
    names.push_back(name);
  return names;
}

Result<Tensor> TrainingSession::Variable(const std::string& name) const {
  return Converted<Tensor>([&] { return impl_->Find(name); },
                           [](const onward::Tensor& t) { return Access::ToTensor(t.Clone()); });
}

Status TrainingSession::SetVariable(const std::string& name, const Tensor& value) {
  return Guarded([&] {
    absl::StatusOr<onward::Tensor> variable = impl_->Find(name);
    if (!variable.ok()) return ToStatus(variable.status());
    const onward::Tensor given = Access::FromTensor(value);
    if (given.dtype() != variable->dtype() || given.shape() != variable->shape()) {
      return Status(
          StatusCode::kInvalidArgument,
          absl::StrCat(impl_->where(), ": variable '", name, "' is ", DTypeName(variable->dtype()),
                       variable->shape().ToString(), ", the value given is ",
                       DTypeName(given.dtype()), given.shape().ToString()));
    }
    std::memcpy(impl_->training->variables().at(name).raw(), given.raw(), given.bytes());
    return Status();
  });
}

Result<Model> TrainingSession::Checkpoint() const {
  return ConvertedModel([&] { return impl_->training->Export(); });
}

Result<Model> TrainingSession::Inference(bool averages) const {
  return Converted<Model>(
      [&]() -> absl::StatusOr<PlainModel> {
        absl::StatusOr<onward::Model> trained = impl_->training->Export();
        if (!trained.ok()) return trained.status();
        if (averages) ONWARD_RETURN_IF_ERROR(UseAverages(&*trained));
        return ExportPlain(*trained);
      },
      [](PlainModel plain) { return Access::ToModel(std::move(plain.model)); });
}

}  // namespace onward::api
