// SPDX-License-Identifier: Apache-2.0
#include "cli/open_data.h"

#include <filesystem>
#include <optional>

#include "core/base/status.h"
#include "data/data_options.h"
#include "trainer/prepare/stored.h"

namespace onward {
namespace {

absl::StatusOr<std::shared_ptr<const Dataset>> Open(const std::string& spec, Split split,
                                                    const DataContext& context) {
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> data, ParseDataSpec(spec, split, context));
  return std::shared_ptr<const Dataset>(std::move(data));
}

// Of the one input that takes pictures of a fixed size, planes or channels last.
std::optional<Shape> PictureSizeOf(const Model& model) {
  const auto graph = InferenceGraph(model);
  if (!graph.ok()) return std::nullopt;
  std::optional<Shape> found;
  for (const NamedType& in : graph->FeedInputs()) {
    if (in.type.rank() != 4) continue;
    const auto size = [&](int axis) { return in.type.dims[axis].value; };
    const auto is_channels = [&](int axis) { return size(axis) == 1 || size(axis) == 3; };
    const int height = is_channels(1) ? 2 : 1;
    if (found.has_value() || !(is_channels(1) || is_channels(3))) return std::nullopt;
    if (!in.type.dims[height].known() || !in.type.dims[height + 1].known()) return std::nullopt;
    found = Shape{size(height), size(height + 1)};
  }
  return found;
}

absl::Status OpenMade(const Args& args, const MadeSpec& spec, const std::string& data,
                      const Environment& environment, TrainingInputs* inputs) {
  ONWARD_ASSIGN_OR_RETURN(
      MadeModel made,
      MakeModelFor(spec, data, static_cast<uint64_t>(args.Int("seed")), environment));
  inputs->model = std::move(made.model);
  inputs->data = std::move(made.data);
  const auto given = [&](const char* flag) {
    return args.Has(flag) ? std::optional(args.Int(flag)) : std::nullopt;
  };
  inputs->made =
      TrainingFor(spec, *inputs->data, {given("batch"), given("epochs"), given("steps")});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataFor(const Model& model,
                                                           const std::string& spec, Split split,
                                                           DataContext context) {
  ONWARD_ASSIGN_OR_RETURN(const Preparation preparation, StoredPreparation(model));
  context.preparation = &preparation;
  context.picture_size = PictureSizeOf(model);
  return Open(spec, split, context);
}

bool ArePictures(const std::string& spec) {
  const auto parsed = SplitDataSpec(spec, Split::kTest);
  return parsed.ok() && (parsed->kind == "images" || parsed->kind == "tar");
}

absl::StatusOr<MadeModel> MakeModelFor(const MadeSpec& spec, const std::string& data_spec,
                                       uint64_t seed, const Environment& environment) {
  MadeModel made;
  ONWARD_ASSIGN_OR_RETURN(made.data, Open(data_spec, Split::kTrain, {.made_for_data = true}));
  ONWARD_ASSIGN_OR_RETURN(made.model, MakeModel(spec, *made.data, seed, environment));
  if (made.data->preparation() != nullptr) {
    StorePreparation(*made.data->preparation(), &made.model);
  }
  return made;
}

TrainingSpecs SpecsOf(const Args& args) {
  TrainingSpecs specs{args.String("data"), args.String("eval")};
  if (specs.eval.empty() && IsSplitSpec(specs.data)) specs.eval = specs.data;
  return specs;
}

absl::StatusOr<TrainingInputs> OpenForTraining(const Args& args, const TrainingSpecs& specs,
                                               const Environment& environment) {
  TrainingInputs inputs;
  const std::string file = args.Has("resume") ? args.String("output") : args.Argument("MODEL");
  std::optional<MadeSpec> made;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    ONWARD_ASSIGN_OR_RETURN(made, ParseMadeModel(file));
  }
  Preparation preparation;
  if (made) {
    ONWARD_RETURN_IF_ERROR(OpenMade(args, *made, specs.data, environment, &inputs));
  } else {
    ONWARD_ASSIGN_OR_RETURN(inputs.model, ReadModel(file));
    ONWARD_ASSIGN_OR_RETURN(preparation, StoredPreparation(inputs.model));
    ONWARD_ASSIGN_OR_RETURN(inputs.data, Open(specs.data, Split::kTrain,
                                              {.preparation = &preparation,
                                               .picture_size = PictureSizeOf(inputs.model)}));
  }
  if (inputs.data->preparation() != nullptr) {
    preparation = *inputs.data->preparation();
    StorePreparation(preparation, &inputs.model);
  }
  if (!specs.eval.empty()) {
    ONWARD_ASSIGN_OR_RETURN(inputs.eval,
                            Open(specs.eval, Split::kTest, {.preparation = &preparation}));
  }
  return inputs;
}

absl::Status UseUsualTraining(const Args& args, const MadeTraining& made, AuthorOptions* options) {
  if (!args.Has("optimizer")) {
    ONWARD_ASSIGN_OR_RETURN(options->optimizer, ParseOptimizer(made.optimizer));
  }
  if (!args.Has("schedule")) {
    ONWARD_ASSIGN_OR_RETURN(options->schedule, ParseSchedule(made.schedule));
  }
  return absl::OkStatus();
}

}  // namespace onward
