// SPDX-License-Identifier: Apache-2.0
// Every weight of every shared model gets a finite gradient. known_failures.txt lists the
// models where some do not ("gradients/MODEL: reason"), exact in both directions.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/value_file.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/known_failures.h"
#include "tests/support/paths.h"
#include "training_info/author.h"
#include "training_info/surgery/surgery.h"

namespace onward::gradients_test {

namespace fs = std::filesystem;

absl::StatusOr<ValueMap> ReadFeeds(const fs::path& folder, const Graph& graph) {
  ValueMap feeds;
  const std::vector<NamedType> inputs = graph.FeedInputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string file = (folder / absl::StrCat("input_", i, ".pb")).string();
    ONWARD_ASSIGN_OR_RETURN(feeds[inputs[i].name], ReadValueFile(file, inputs[i].type));
  }
  return feeds;
}

absl::Status CheckFinite(const std::string& name, const Value& value) {
  const Tensor* tensor = value.tensor();
  if (tensor == nullptr) return absl::InternalError(absl::StrCat(name, " is no tensor"));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> numbers, ToDoubles(*tensor));
  for (double number : numbers) {
    if (!std::isfinite(number)) return absl::OutOfRangeError(absl::StrCat(name, " is not finite"));
  }
  return absl::OkStatus();
}

// Derives the output that would be trained by all weights, on the model's own test data.
absl::Status CheckGradients(const fs::path& folder, int* weights) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel((folder / "model.onnx").string()));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  ONWARD_ASSIGN_OR_RETURN(graph, InlineFunctions(graph));
  const std::string output = DefaultOutput(graph);
  std::vector<std::string> xs;
  for (const WeightDecision& d : DecideWeights(graph, {output})) {
    if (d.trains) xs.push_back(d.name);
  }
  *weights = static_cast<int>(xs.size());
  if (xs.empty()) return absl::OkStatus();
  LiftConstants(&graph, {xs.begin(), xs.end()});
  ONWARD_ASSIGN_OR_RETURN(graph, Canonicalize(graph));
  ONWARD_ASSIGN_OR_RETURN(const ValueMap feeds, ReadFeeds(folder / "test_data_set_0", graph));
  const Environment& environment = DefaultEnvironment();
  DifferentiateOptions options;
  options.operators = &environment.operators();
  options.rules = &environment.rules();
  ONWARD_ASSIGN_OR_RETURN(Gradients gradients, Differentiate(graph, output, xs, options));
  CompileOptions compile;
  compile.device = &environment.cpu();
  compile.operators = &environment.operators();
  compile.outputs = gradients.values;
  Session session(std::move(gradients.graph), compile);
  ONWARD_ASSIGN_OR_RETURN(const ValueMap results, session.RunValues(feeds, nullptr));
  for (const std::string& name : gradients.values) {
    ONWARD_RETURN_IF_ERROR(CheckFinite(name, results.at(name)));
  }
  return absl::OkStatus();
}

TEST(Gradients, EveryWeightOfEverySharedModelGetsAFiniteOne) {
  const std::string models = SharedPath("models");
  if (models.empty()) GTEST_SKIP() << "shared models are absent";
  std::vector<KnownFailure> known = ReadKnownFailures(KnownFailuresFile(), "gradients");
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(models)) folders.insert(entry.path());
  int trainable = 0;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    int weights = 0;
    const absl::Status status = CheckGradients(folder, &weights);
    const Expected expected = ExpectedOf(name, known);
    EXPECT_TRUE(status.ok() ? expected.pass : expected.fail) << name << ": " << status;
    trainable += weights > 0 ? 1 : 0;
  }
  ExpectAllMatched("gradients", known);
  EXPECT_GE(trainable, 45);
}

}  // namespace onward::gradients_test
