// SPDX-License-Identifier: Apache-2.0
#include "onward/author.h"

#include "absl/strings/str_cat.h"
#include "api/access.h"
#include "core/base/status.h"
#include "training_info/author.h"

namespace onward::api {
namespace {

absl::StatusOr<onward::AuthorOptions> Parsed(const AuthorOptions& options) {
  onward::AuthorOptions out;
  ONWARD_ASSIGN_OR_RETURN(out.loss, ParseLoss(options.loss));
  for (const std::string& loss : options.losses) {
    ONWARD_ASSIGN_OR_RETURN(out.losses.emplace_back(), ParseLossTerm(loss));
  }
  ONWARD_ASSIGN_OR_RETURN(OptimizerChoice optimizer, ParseOptimizerChoice(options.optimizer));
  out.optimizer = std::move(optimizer.spec);
  out.optimizer_file = std::move(optimizer.file);
  out.optimizer_numbers = std::move(optimizer.numbers);
  for (const std::string& group : options.groups) {
    ONWARD_ASSIGN_OR_RETURN(out.groups.emplace_back(), ParseGroup(group));
  }
  out.no_decay = options.no_decay;
  for (const std::string& lora : options.lora) {
    ONWARD_ASSIGN_OR_RETURN(out.lora.emplace_back(), ParseLora(lora));
  }
  ONWARD_ASSIGN_OR_RETURN(out.init, ParseInit(options.init));
  out.freeze_statistics = options.freeze_statistics;
  ONWARD_ASSIGN_OR_RETURN(out.schedule, ParseSchedule(options.schedule));
  out.train = options.train;
  out.freeze = options.freeze;
  out.accumulate = options.accumulate;
  out.ema = options.ema;
  if (options.precision == "float16") {
    out.precision = DType::kFloat16;
  } else if (options.precision == "bfloat16") {
    out.precision = DType::kBFloat16;
  } else if (!options.precision.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("precision is '", options.precision, "'; it takes bfloat16 or float16"));
  }
  out.clip_norm = options.clip_norm;
  out.clip_value = options.clip_value;
  out.clip_adaptive = options.clip_adaptive;
  out.head_classes = options.head_classes;
  out.gradient = options.expand_gradient ? GradientForm::kExpanded : GradientForm::kOperator;
  out.label = options.label;
  out.more_labels = options.more_labels;
  out.output = options.output;
  out.free_batch = options.free_batch;
  out.seed = options.seed;
  return out;
}

}  // namespace

Result<AuthorResult> MakeTrainable(const Model& model, const AuthorOptions& options,
                                   const Environment& environment) {
  return Converted<AuthorResult>(
      [&]() -> absl::StatusOr<onward::AuthorResult> {
        ONWARD_ASSIGN_OR_RETURN(const onward::AuthorOptions parsed, Parsed(options));
        return onward::MakeTrainable(Access::FromModel(model), parsed,
                                     Access::FromEnvironment(environment));
      },
      [](onward::AuthorResult made) {
        return AuthorResult{Access::ToModel(std::move(made.model)), std::move(made.trained),
                            std::move(made.notes)};
      });
}

}  // namespace onward::api
