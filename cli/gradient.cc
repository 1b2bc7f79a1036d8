// SPDX-License-Identifier: Apache-2.0
// onward gradient: models that compute derivatives beside their own outputs.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "training_info/gradient_model.h"

namespace onward {
namespace {

std::vector<std::string> Names(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

absl::StatusOr<GradientRequest> ReadRequest(const Args& args) {
  GradientRequest request;
  request.ys = Names(args.String("of"));
  request.xs = Names(args.String("wrt"));
  request.order = args.Int("order");
  request.stop = Names(args.String("stop"));
  request.hessian_vector = args.Has("hessian-vector");
  for (const std::string& text : args.All("seed")) {
    const std::pair<std::string, std::string> seed = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (seed.first.empty() || seed.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--seed ", text,
                       ": expected Y=NAME, NAME being a value of the model or a "
                       "new input"));
    }
    request.seeds[seed.first] = seed.second;
  }
  return request;
}

absl::StatusOr<int> RunGradient(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const GradientRequest request, ReadRequest(args));
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(GradientModel made, MakeGradientModel(model, request, environment));
  ONWARD_RETURN_IF_ERROR(
      WriteChecked(made.model, args.String("output"), ReadWriteFlags(args), environment));
  std::cout << args.String("output") << ": outputs";
  for (const std::string& name : made.gradients) std::cout << " " << name;
  for (const std::string& name : made.products) std::cout << " " << name;
  if (!made.vectors.empty()) std::cout << "; new inputs";
  for (const std::string& name : made.vectors) std::cout << " " << name;
  std::cout << "\n";
  return 0;
}

}  // namespace

Command GradientCommand() {
  return InEnvironment(
      {.name = "gradient",
       .summary = "writes a model that also outputs gradients, in standard operators",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags =
           {Flag::Value("of", "Y,Z",
                        "the values to differentiate (summed if they are no scalars), those of a "
                        "training graph, such as the loss, too")
                .Required(),
            Flag::Value("wrt", "A,B", "inputs, initializers or inner values").Required(),
            Flag::Count("order", "K", "2 differentiates each gradient again", 1,
                        kHighestGradientOrder)
                .Default("1"),
            Flag::Value("seed", "Y=NAME",
                        "start the gradient of Y from NAME instead of ones: a value of the model, "
                        "or a new input of that name")
                .Repeated(),
            Flag::Value("stop", "U,V", "hand no gradient on past these values"),
            Flag::Switch("hessian-vector",
                         "also output A__hvp, B__hvp: the Hessian by A and B together times the "
                         "new inputs A__vector, B__vector"),
            Flag::Value("output", "OUT", "the file to write")
                .Short('o')
                .Names(FlagNames::kResult)
                .Required(),
            OverwriteFlag(), ExternalDataFlag()},
       .example = "onward gradient model.onnx --of y --wrt x,fc1.weight -o gradient.onnx"},
      RunGradient);
}

}  // namespace onward
