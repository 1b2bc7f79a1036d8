// SPDX-License-Identifier: Apache-2.0
// When checkpoints are written, and that writing them changes no number.
#include "trainer/run/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/classified.h"
#include "tests/support/far_training.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/rate.h"

namespace onward::loop_test {

using ::testing::ElementsAre;

namespace fs = std::filesystem;

constexpr int kExamples = 16, kBatch = 4;  // 4 steps an epoch

// Remembers, whenever a batch is taken, which step the file holds (-1: no file).
class Watching : public Dataset {
 public:
  // What is read before `*begun` is looked at beforehand.
  Watching(std::string file, const bool* begun) : file_(std::move(file)), begun_(begun) {}
  int64_t size() const override { return kExamples; }
  std::vector<FieldInfo> fields() const override {
    return {{"x", DType::kFloat, {2}, false}, {"y", DType::kInt64, {}, true}};
  }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    if (*begun_) Look();
    const int64_t n = static_cast<int64_t>(indices.size());
    *batch = {Tensor(DType::kFloat, {n, 2}), Tensor(DType::kInt64, {n})};
    for (int64_t i = 0; i < n; ++i) {
      (*batch)[0].data<float>()[2 * i] = static_cast<float>(indices[i] % 5);
      (*batch)[0].data<float>()[2 * i + 1] = *begun_ && indices[i] == bad_example ? NAN : 1;
      (*batch)[1].data<int64_t>()[i] = indices[i] % 2;
    }
    return absl::OkStatus();
  }
  int64_t classes() const override { return 2; }
  std::vector<std::string> class_names() const override { return {}; }
  const std::vector<int64_t>& held() const { return held_; }

  std::function<void(size_t)> before_batch;
  int64_t bad_example = -1;  // is no number from the first step on

 private:
  void Look() const {
    if (before_batch) before_batch(held_.size());
    const auto model = ReadModel(file_);
    held_.push_back(model.ok() ? std::atoll(model->Metadata(kMetaSteps).c_str()) : -1);
  }

  std::string file_;
  const bool* begun_;
  mutable std::vector<int64_t> held_;
};

// What a run told, a word for each event.
class Told : public RunListener {
 public:
  absl::Status OnStart(const RunFacts& facts) override {
    begun = true;
    return Add("start", facts.total_steps - facts.first_step);
  }
  absl::Status OnStep(const StepEvent& step) override {
    const absl::Status status = Add("step", step.step);
    return step.step == fails_at ? absl::DataLossError("the listener is full") : status;
  }
  absl::Status OnEvaluation(const EvaluationEvent& e) override { return Add("eval", e.epoch); }
  void OnCheckpoint(const CheckpointEvent& c) override { Add("saved", c.step).IgnoreError(); }
  absl::Status OnEnd(const EndEvent& end) override {
    return Add(end.status.ok() ? "end" : "failed", end.result.steps);
  }

  std::vector<std::string> words;
  bool begun = false;
  int64_t fails_at = -1;

 private:
  absl::Status Add(const char* event, int64_t number) {
    words.push_back(absl::StrCat(event, " ", number));
    return absl::OkStatus();
  }
};

class LoopTest : public ::testing::Test {
 protected:
  static std::unique_ptr<TrainingModel> Trainable(
      const Environment& environment = TestEnvironment()) {
    AuthorOptions author;
    author.loss = {"cross_entropy", {}};
    auto authored = MakeTrainable(TextModel(LinearClassifier(2, 2)), author, DefaultEnvironment());
    EXPECT_TRUE(authored.ok()) << authored.status();
    // So that a run may go back with half the rate.
    EXPECT_TRUE(AddRateFactor(DefaultEnvironment(), &authored->model).ok());
    return Open(authored->model, environment);
  }
  // The steps that the file held at each batch.
  std::vector<int64_t> Run(const std::string& name, TrainOptions options,
                           std::function<void(size_t)> before_batch = nullptr) {
    const auto model = Trainable();
    options.output = scratch_.Path(name);
    options.batch = kBatch;
    told_.begun = false;
    auto data = std::make_shared<Watching>(options.output, &told_.begun);
    data->before_batch = std::move(before_batch);
    const auto result = Train(model.get(), data, nullptr, options, &told_, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return data->held();
  }
  Scratch scratch_;
  Told told_;
};

TEST_F(LoopTest, TellsWhatHappens) {
  TrainOptions options;
  options.epochs = 2;
  options.save_every = 2;
  Run("m.onnx", options);
  EXPECT_THAT(told_.words,
              ElementsAre("start 8", "step 1", "step 2", "saved 2", "step 3", "step 4", "saved 4",
                          "step 5", "step 6", "saved 6", "step 7", "step 8", "saved 8", "end 8"));
}

TEST_F(LoopTest, AListenerThatFailsEndsTheRunAndTheStateIsSaved) {
  told_.fails_at = 2;
  TrainOptions options;
  options.output = scratch_.Path("m.onnx");
  options.batch = kBatch;
  auto model = Trainable();
  const auto result = Train(model.get(), std::make_shared<Watching>(options.output, &told_.begun),
                            nullptr, options, &told_, nullptr);
  EXPECT_EQ(result.status().message(), "the listener is full");
  EXPECT_THAT(told_.words, ElementsAre("start 4", "step 1", "step 2", "saved 2", "failed 2"));
}

// While a device works on a step the next batch is read; a run that ends there goes on with it.
TEST_F(LoopTest, IsSavedBehindTheLastStepWhereItReadsAhead) {
  const Far far({FarOptions{}});
  told_.fails_at = 2;
  TrainOptions options;
  options.output = scratch_.Path("m.onnx");
  options.batch = kBatch;
  auto model = Trainable(*far.environment);
  const auto data = std::make_shared<Watching>(options.output, &told_.begun);
  const auto result = Train(model.get(), data, nullptr, options, &told_, nullptr);
  EXPECT_EQ(result.status().message(), "the listener is full");
  EXPECT_EQ(data->held().size(), 3u);
  const Model saved = ReadModel(options.output).value();
  EXPECT_EQ(saved.Metadata(kMetaSteps), "2");
  EXPECT_EQ(saved.Metadata(kMetaIndex), absl::StrCat(2 * kBatch));
}

// What was read ahead of a step that fails comes next, is dropped or is met again, as the run is
// told to go on: errors, events and files are those of a run that reads nothing ahead.
TEST_F(LoopTest, ReadingAheadChangesNoPolicy) {
  const Far far({FarOptions{}});
  for (const OnNan policy : {OnNan::kStop, OnNan::kSkip, OnNan::kBack}) {
    std::vector<std::vector<std::string>> seen;
    for (const Environment* environment : {&DefaultEnvironment(), far.environment.get()}) {
      Told told;
      TrainOptions options;
      options.output = scratch_.Path("m.onnx");
      options.epochs = 3;
      options.batch = kBatch;
      options.save_every = 3;
      options.on_nan = policy;
      fs::remove(options.output);
      auto model = Trainable(*environment);
      const auto data = std::make_shared<Watching>(options.output, &told.begun);
      data->bad_example = 9;
      const auto result = Train(model.get(), data, nullptr, options, &told, nullptr);
      EXPECT_EQ(result.ok(), policy == OnNan::kSkip) << result.status();
      seen.push_back(told.words);
      seen.back().emplace_back(result.status().message());
      const Model saved = ReadModel(options.output).value();
      for (const char* key : {kMetaSteps, kMetaEpoch, kMetaIndex, kMetaSkipped}) {
        seen.back().push_back(saved.Metadata(key));
      }
      seen.back().push_back(scratch_.Read("m.onnx"));
    }
    EXPECT_EQ(seen[0], seen[1]);
  }
}

TEST_F(LoopTest, EveryEpochIsSaved) {
  TrainOptions options;
  options.epochs = 2;
  EXPECT_THAT(Run("m.onnx", options), ElementsAre(-1, -1, -1, -1, 4, 4, 4, 4));
}

TEST_F(LoopTest, ALongEpochIsSavedInBetween) {
  TrainOptions options;
  options.save_seconds = 0;
  EXPECT_THAT(Run("m.onnx", options), ElementsAre(-1, 1, 2, 3));
  options.save_seconds = 600;
  options.save_every = 2;
  EXPECT_THAT(Run("n.onnx", options), ElementsAre(-1, -1, 2, 2));
}

// A place that cannot be written for a while costs no more than the saves of that while.
TEST_F(LoopTest, GoesOnWhereASaveFails) {
  const fs::path folder = scratch_.Path("disk"), away = scratch_.Path("away");
  fs::create_directory(folder);
  TrainOptions options;
  options.save_seconds = 0;
  options.epochs = 2;
  const auto held = Run("disk/m.onnx", options, [&](size_t batch) {
    if (batch == 2) fs::rename(folder, away);
    if (batch == 5) fs::rename(away, folder);
  });
  EXPECT_THAT(held, ElementsAre(-1, 1, -1, -1, -1, 2, 6, 7));
  EXPECT_EQ(ReadModel(scratch_.Path("disk/m.onnx")).value().Metadata(kMetaSteps), "8");
}

TEST_F(LoopTest, SavingChangesNoNumber) {
  TrainOptions often, seldom;
  often.epochs = seldom.epochs = 3;
  often.save_seconds = 0;
  Run("often.onnx", often);
  Run("seldom.onnx", seldom);
  EXPECT_EQ(scratch_.Read("often.onnx"), scratch_.Read("seldom.onnx"));
}

}  // namespace onward::loop_test
