// SPDX-License-Identifier: Apache-2.0
// Training traces that onnxruntime-training left: 20 steps of SGD and AdamW on
// real images; and the two-step test of its training API. Those of mnist-8 were
// made again (tests/golden/make_traces.py says why).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/value_file.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "trainer/run/feeding.h"
#include "training_info/author.h"
#include "training_info/step.h"

namespace onward::oracle_test {

// Losses this small are differences of nearly equal numbers: compared absolutely.
constexpr double kSmallLoss = 1e-2;
constexpr double kTolerance = 1e-4;

struct Trace {
  std::string json, model, optimizer, data, preprocess;
  double learning_rate = 0, epsilon = 0;
  int64_t batch = 0;
  std::vector<double> losses;
};

// The text behind "key": up to the next comma or bracket (numbers, strings).
std::string JsonText(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return "";
  const size_t begin = json.find_first_not_of(" \"", at + key.size() + 3);
  return json.substr(begin, json.find_first_of("\"\n", begin) - begin);
}

double JsonNumberOf(const std::string& json, const std::string& key) {
  double v = 0;
  EXPECT_TRUE(absl::SimpleAtod(std::string(absl::StripSuffix(JsonText(json, key), ",")), &v))
      << key;
  return v;
}

Trace ReadTrace(const std::string& path) {
  const std::string json = FileBytes(path);
  Trace t{json,
          JsonText(json, "model"),
          JsonText(json, "optimizer"),
          JsonText(json, "data"),
          JsonText(json, "preprocess"),
          JsonNumberOf(json, "learning_rate"),
          0,
          static_cast<int64_t>(JsonNumberOf(json, "batch_size")),
          {}};
  if (json.find("\"epsilon\":") != std::string::npos) t.epsilon = JsonNumberOf(json, "epsilon");
  const size_t begin = json.find('[', json.find("\"losses\":"));
  const std::string list = json.substr(begin + 1, json.find(']', begin) - begin - 1);
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    double v = 0;
    EXPECT_TRUE(absl::SimpleAtod(part, &v));
    t.losses.push_back(v);
  }
  return t;
}

// "x*A+B (x in 0..255)", "x/255" or "(x/255-mean)/std mean=[..] std=[..]" as
// options of a data spec.
std::string DataSpec(const Trace& t) {
  const bool mnist = t.data.rfind("mnist", 0) == 0;
  std::string spec =
      mnist ? "mnist:" + SharedPath("datasets/mnist") + "?split=train"
            : "cifar:" + SharedPath("datasets/cifar10-subset/train_4000.bin.gz") + "?offset=0";
  if (t.preprocess.rfind("x*", 0) == 0) {
    const size_t plus = t.preprocess.find('+');
    absl::StrAppend(&spec, "&scale=", t.preprocess.substr(2, plus - 2),
                    "&shift=", t.preprocess.substr(plus + 1, t.preprocess.find(' ') - plus - 1));
  } else if (const size_t mean = t.preprocess.find("mean=["); mean != std::string::npos) {
    auto list = [&](const std::string& key) {
      const size_t begin = t.preprocess.find(key + "=[") + key.size() + 2;
      std::string text = t.preprocess.substr(begin, t.preprocess.find(']', begin) - begin);
      std::erase(text, ' ');
      return text;
    };
    absl::StrAppend(&spec, "&mean=", list("mean"), "&std=", list("std"));
  }
  return spec;
}

absl::StatusOr<std::unique_ptr<TrainingModel>> Trainable(const Model& model,
                                                         const std::string& optimizer) {
  AuthorOptions options;
  auto spec = ParseOptimizer(optimizer);
  if (!spec.ok()) return spec.status();
  options.optimizer = *spec;
  auto authored = MakeTrainable(model, options, DefaultEnvironment());
  if (!authored.ok()) return authored.status();
  return TrainingModel::Create(std::move(authored->model), DefaultEnvironment());
}

// How far a trained initializer came in all, and the sum of its elements.
struct Journey {
  double l2_delta = 0, sum_after = 0;
};

Journey JourneyOf(const Tensor& before, const Tensor& after) {
  Journey j;
  for (int64_t i = 0; i < after.elements(); ++i) {
    const double a = after.data<float>()[i], b = before.data<float>()[i];
    j.l2_delta += (a - b) * (a - b);
    j.sum_after += a;
  }
  j.l2_delta = std::sqrt(j.l2_delta);
  return j;
}

// Compares the trained initializers with what the trace says of them.
void ExpectSameJourneys(const Trace& t, const Model& start, const Variables& end) {
  const Graph graph = InferenceGraph(start).value();
  const std::string parameters = t.json.substr(t.json.find("\"parameters\":"));
  int compared = 0;
  for (const auto& [name, tensor] : graph.initializers) {
    const size_t at = parameters.find("\"" + name + "\":");
    if (at == std::string::npos || !end.contains(name)) continue;
    const std::string entry = parameters.substr(at, parameters.find('}', at) - at);
    const Journey j = JourneyOf(tensor, end.at(name));
    const double delta = JsonNumberOf(entry, "l2_delta"), sum = JsonNumberOf(entry, "sum_after");
    EXPECT_NEAR(j.l2_delta, delta, kTolerance * delta) << name;
    // Where even the first loss is small, rounding decides the signs of many gradients.
    if (t.losses[0] > kSmallLoss) {
      EXPECT_NEAR(j.sum_after, sum, kTolerance * std::max(std::abs(sum), delta)) << name;
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

absl::StatusOr<std::vector<double>> Follow(const Trace& t) {
  auto model = ReadModel(SharedPath("models/" + t.model + "/model.onnx"));
  if (!model.ok()) return model.status();
  auto training = Trainable(*model, t.optimizer == "SGD"
                                        ? absl::StrCat("sgd:lr=", t.learning_rate)
                                        : absl::StrCat("adamw:weight_decay=0,lr=", t.learning_rate,
                                                       ",epsilon=", t.epsilon));
  if (!training.ok()) return training.status();
  auto data = ParseDataSpec(DataSpec(t), Split::kTrain);
  if (!data.ok()) return data.status();
  auto feeding = Feeding::Create(**data, (*training)->StepInputs(-1, {"loss"}), "label");
  if (!feeding.ok()) return feeding.status();
  std::vector<double> losses;
  std::vector<Tensor> batch;
  for (size_t step = 0; step < t.losses.size(); ++step) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < t.batch; ++i)
      indices.push_back(static_cast<int64_t>(step) * t.batch + i);
    if (absl::Status s = (*data)->Fill(indices, &batch); !s.ok()) return s;
    auto feeds = feeding->Feeds(batch);
    if (!feeds.ok()) return feeds.status();
    auto outputs = (*training)->Step(*feeds, {"loss"});
    if (!outputs.ok()) return outputs.status();
    losses.push_back(*outputs->at("loss").data<float>());
  }
  ExpectSameJourneys(t, *model, (*training)->variables());
  return losses;
}

TEST(TrainingOracle, EveryTraceIsFollowed) {
  const std::string folder = SharedPath("peer_cases/ort-training-oracle");
  if (folder.empty()) GTEST_SKIP() << "shared peer_cases/ort-training-oracle is absent";
  int count = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    if (e.path().extension() != ".json") continue;
    ++count;
    const std::string again = absl::StrCat(GoldenFolder(), "/", e.path().filename().string());
    const Trace t = ReadTrace(std::filesystem::exists(again) ? again : e.path().string());
    SCOPED_TRACE(e.path().filename().string());
    auto losses = Follow(t);
    ASSERT_TRUE(losses.ok()) << losses.status();
    for (size_t i = 0; i < t.losses.size(); ++i) {
      EXPECT_NEAR((*losses)[i], t.losses[i],
                  kTolerance * std::max(std::abs(t.losses[i]), kSmallLoss))
          << "step " << i;
    }
  }
  EXPECT_EQ(count, 28);
}

TEST(TrainingOracle, TrainingApiTestIsFollowed) {
  const std::string folder = SharedPath("peer_cases/ort-training-api");
  if (folder.empty()) GTEST_SKIP() << "shared peer_cases/ort-training-api is absent";
  // The model computes its loss and takes its weights as inputs: cut the one off, fill in the
  // others.
  Graph graph = InferenceGraph(ReadModel(folder + "/eval_model.onnx").value()).value();
  const Node loss = graph.nodes.back();
  ASSERT_EQ(loss.op_type, "SoftmaxCrossEntropyLoss");
  graph.nodes.pop_back();
  graph.types.clear();
  graph.outputs = {{loss.inputs[0], ValueType::Unranked(DType::kFloat)}};
  const std::string input = graph.inputs[0].name;
  for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
    graph.initializers[name] =
        ReadTensorFile(absl::StrCat(folder, "/params/", name, ".pb")).value();
  }
  std::erase_if(graph.inputs, [&](const NamedType& in) { return in.name != input; });
  auto training =
      Trainable(ModelFromGraph(graph, 8, "test"), "adamw:lr=1e-3,epsilon=1e-6,weight_decay=0");
  ASSERT_TRUE(training.ok()) << training.status();
  const TensorMap feeds = {
      {input, ReadTensorFile(folder + "/input_0.pb").value()},
      {"label",
       ConvertTensor(ReadTensorFile(folder + "/labels.pb").value(), DType::kInt64).value()}};
  for (const double expected :
       {2.1786246299743652, 0.36050945520401, 0.051253221929073334, 0.009041625075042248}) {
    auto outputs = (*training)->Step(feeds, {"loss"});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_NEAR(*outputs->at("loss").data<float>(), expected, 1e-5 * expected + 1e-7);
  }
}

}  // namespace onward::oracle_test
