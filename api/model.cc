// SPDX-License-Identifier: Apache-2.0
#include "onward/model.h"

#include "absl/strings/str_cat.h"
#include "api/access.h"
#include "training_info/export.h"
#include "training_info/validate.h"

namespace onward::api {

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(const Model& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Model::Model(Model&& other) noexcept = default;
Model& Model::operator=(const Model& other) {
  impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Model& Model::operator=(Model&& other) noexcept = default;
Model::~Model() = default;

Result<Model> Model::Read(const std::string& path) {
  return ConvertedModel([&] { return ReadModel(path); });
}

Result<Model> Model::Parse(const void* data, size_t size, const std::string& path) {
  return ConvertedModel(
      [&] { return ParseModel(std::string(static_cast<const char*>(data), size), path); });
}

Status Model::Write(const std::string& path, const WriteOptions& options) const {
  const onward::WriteOptions how = {.external_data = options.external_data};
  return Guarded([&] { return ToStatus(WriteModel(impl_->model, path, how)); });
}

std::string Model::path() const { return impl_->model.path(); }
int Model::ir_version() const { return impl_->model.ir_version(); }
std::map<std::string, int> Model::opsets() const { return impl_->model.opsets(); }
bool Model::has_training() const { return impl_->model.has_training(); }

Result<std::vector<ValueInfo>> Model::Inputs() const {
  return Converted<std::vector<ValueInfo>>(
      [&] { return InferenceGraph(impl_->model); },
      [](const Graph& graph) { return ToInfos(graph.FeedInputs()); });
}

Result<std::vector<ValueInfo>> Model::Outputs() const {
  return Converted<std::vector<ValueInfo>>(
      [&] { return InferenceGraph(impl_->model); },
      [](const Graph& graph) { return ToInfos(graph.outputs); });
}

Result<std::vector<std::string>> Model::Initializers() const {
  return Converted<std::vector<std::string>>([&] { return InferenceGraph(impl_->model); },
                                             [](const Graph& graph) {
                                               std::vector<std::string> names;
                                               for (const auto& [name, tensor] : graph.initializers)
                                                 names.push_back(name);
                                               return names;
                                             });
}

Result<Tensor> Model::Initializer(const std::string& name) const {
  return Converted<Tensor>(
      [&]() -> absl::StatusOr<onward::Tensor> {
        absl::StatusOr<Graph> graph = InferenceGraph(impl_->model);
        if (!graph.ok()) return graph.status();
        auto it = graph->initializers.find(name);
        if (it != graph->initializers.end()) return it->second;
        return absl::NotFoundError(absl::StrCat("'", path(), "' has no initializer '", name,
                                                "'; Model::Initializers lists the names"));
      },
      Access::ToTensor);
}

std::string Model::Metadata(const std::string& key) const { return impl_->model.Metadata(key); }

Status Model::SetMetadata(const std::string& key, const std::string& value) {
  return Guarded([&] {
    impl_->model.SetMetadata(key, value);
    return Status();
  });
}

Result<std::vector<Finding>> Model::Check(const Environment& environment) const {
  return Converted<std::vector<Finding>>(
      [&] { return CheckModel(impl_->model, Access::FromEnvironment(environment)); },
      [](const std::vector<onward::Finding>& found) {
        std::vector<Finding> out;
        for (const onward::Finding& f : found)
          out.push_back({f.rule, f.place, f.what, f.fix, IsRemark(f)});
        return out;
      });
}

Result<Model> InferenceModel(const Model& trained) {
  return Converted<Model>([&] { return ExportPlain(Access::FromModel(trained)); },
                          [](PlainModel plain) { return Access::ToModel(std::move(plain.model)); });
}

Result<Model> InferenceModelLike(const Model& trained, const Model& original,
                                 const Environment& environment) {
  return ConvertedModel([&] {
    return ExportLike(Access::FromModel(trained), Access::FromModel(original),
                      Access::FromEnvironment(environment));
  });
}

}  // namespace onward::api
