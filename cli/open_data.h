// SPDX-License-Identifier: Apache-2.0
// Data that meets a model: what was done to the data it was trained on is done to these, too.
#ifndef ONWARD_CLI_OPEN_DATA_H_
#define ONWARD_CLI_OPEN_DATA_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "trainer/make/make_model.h"
#include "training_info/author.h"

namespace onward {

// Data for evaluation or prediction.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataFor(const Model& model,
                                                           const std::string& spec, Split split,
                                                           DataContext context = {});

// Whether the examples of a spec are picture files.
bool ArePictures(const std::string& spec);

// A new model for data, with the preparation that suits it, and the data prepared so.
struct MadeModel {
  Model model;
  std::shared_ptr<const Dataset> data;
};
absl::StatusOr<MadeModel> MakeModelFor(const MadeSpec& spec, const std::string& data_spec,
                                       uint64_t seed, const Environment& environment);

struct TrainingInputs {
  Model model;                                // with the preparation that its data got
  std::shared_ptr<const Dataset> data, eval;  // eval may be null
  std::optional<MadeTraining> made;           // the model was made for the data
};

// What a run trains on and what it is evaluated on; "": on nothing.
struct TrainingSpecs {
  std::string data, eval;
};
// --data and --eval, or the part that --data leaves.
TrainingSpecs SpecsOf(const Args& args);

// MODEL (or OUT, where --resume goes on) and its data. A model that does not know how its
// data is prepared takes it from --data, and one is made for the data where MODEL is the word
// for one (trainer/make).
absl::StatusOr<TrainingInputs> OpenForTraining(const Args& args, const TrainingSpecs& specs,
                                               const Environment& environment);

// Optimizer and schedule of a model that was made for the data, where no flag says otherwise.
absl::Status UseUsualTraining(const Args& args, const MadeTraining& made, AuthorOptions* options);

}  // namespace onward

#endif  // ONWARD_CLI_OPEN_DATA_H_
