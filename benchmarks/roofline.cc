// SPDX-License-Identifier: Apache-2.0
// roofline MODEL.onnx train|infer [BATCH [SECONDS]]: how near each kind of
// kernel comes to what the machine can do.
//
// Per operator of the compiled plan: milliseconds (each step's best run),
// GFLOP and megabytes as benchmarks/cost.h counts them, and
//   roof = sum of max(flops / peak flops, bytes / bandwidth) / time.
// More than 100 % is possible and right: Winograd's convolutions do fewer
// multiplications than the plain count, and values still in the caches are read
// faster than memory is.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "benchmarks/cost.h"
#include "benchmarks/machine.h"
#include "cli/random_feeds.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "environment/environment.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

constexpr int kFewestRuns = 5;
constexpr size_t kNameWidth = 48;

// A compiled model with something to run it on. `model` or `session` owns the
// executor.
struct Subject {
  std::unique_ptr<TrainingModel> model;
  std::unique_ptr<Session> session;
  TensorMap feeds;
  Executor* executor = nullptr;

  absl::Status Run(const RunOptions& options) {
    return executor->Run(feeds, model != nullptr ? &model->variables() : nullptr, options).status();
  }
};

// Cross entropy and AdamW where the file says nothing; its first entry.
absl::StatusOr<Subject> PrepareTraining(Model model, int64_t batch) {
  if (!model.has_training()) {
    ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, {}, DefaultEnvironment()));
    model = std::move(result.model);
  }
  Subject s;
  ONWARD_ASSIGN_OR_RETURN(s.model, TrainingModel::Create(std::move(model), DefaultEnvironment()));
  std::vector<std::string> wanted;
  const std::string loss = s.model->model().Metadata(kMetaLoss);
  if (!loss.empty()) wanted.push_back(loss);
  ONWARD_ASSIGN_OR_RETURN(s.feeds, RandomFeeds(s.model->StepInputs(0, wanted), s.model->lowered(0),
                                               {.batch = batch, .other = batch}));
  ONWARD_ASSIGN_OR_RETURN(s.executor, s.model->PrepareStep(0, s.feeds, wanted));
  return s;
}

absl::StatusOr<Subject> PrepareInference(const Model& model, int64_t batch) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, DefaultEnvironment()));
  Subject s;
  ONWARD_ASSIGN_OR_RETURN(s.feeds,
                          RandomFeeds(graph.FeedInputs(), graph, {.batch = batch, .other = batch}));
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  s.session = std::make_unique<Session>(std::move(graph), options);
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : s.feeds) types[name] = {tensor.dtype(), tensor.shape()};
  ONWARD_ASSIGN_OR_RETURN(s.executor, s.session->Prepare(types));
  return s;
}

using StepTimes = std::map<const PlanStep*, double>;  // best seconds

absl::StatusOr<StepTimes> MeasureSteps(Subject* subject, double seconds) {
  StepTimes times;
  RunOptions options;
  options.on_step = [&](const PlanStep& step, int64_t ns) {
    const double t = static_cast<double>(ns) * 1e-9;
    const auto [it, first] = times.emplace(&step, t);
    it->second = std::min(it->second, t);
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < kFewestRuns || std::chrono::steady_clock::now() < end; ++i) {
    ONWARD_RETURN_IF_ERROR(subject->Run(options));
  }
  return times;
}

struct Row {
  int steps = 0;
  double seconds = 0, flops = 0, bytes = 0, roof = 0;

  void Add(const Row& other) {
    steps += other.steps;
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
    roof += other.roof;
  }
};

void PrintRow(std::string name, const Row& row) {
  if (name.size() > kNameWidth) name = name.substr(0, kNameWidth - 3) + "...";
  std::cout << absl::StrFormat("%-*s %5d %9.3f %9.3f %9.1f %8.1f %7.1f %6.0f %%\n", kNameWidth,
                               name, row.steps, row.seconds * 1e3, row.flops * 1e-9,
                               row.bytes * 1e-6, row.flops * 1e-9 / row.seconds,
                               row.bytes * 1e-9 / row.seconds, 100 * row.roof / row.seconds);
}

void PrintTable(const Plan& plan, const StepTimes& times, const Machine& machine) {
  std::map<std::string, Row> kinds;
  Row all;
  for (const auto& [step, seconds] : times) {
    const double flops = Flops(plan, *step), bytes = Bytes(plan, *step);
    const Row row{1, std::max(seconds, 1e-9), flops, bytes,
                  std::max(flops / machine.flops, bytes / machine.bandwidth)};
    kinds[step->node.op_type].Add(row);
    all.Add(row);
  }
  std::vector<std::pair<std::string, Row>> rows(kinds.begin(), kinds.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::cout << absl::StrFormat("%-*s %5s %9s %9s %9s %8s %7s %8s\n", kNameWidth, "kernel", "steps",
                               "ms", "GFLOP", "MB", "GFLOP/s", "GB/s", "roof");
  for (const auto& [name, row] : rows) PrintRow(name, row);
  PrintRow("all", all);
}

absl::Status Roofline(const std::string& path, bool train, int64_t batch, double seconds) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(path));
  ONWARD_ASSIGN_OR_RETURN(Subject subject, train ? PrepareTraining(std::move(model), batch)
                                                 : PrepareInference(model, batch));
  // Before and after, because other programs can only lower a measurement.
  const Machine before = MeasureMachine();
  ONWARD_ASSIGN_OR_RETURN(StepTimes times, MeasureSteps(&subject, seconds));
  const Machine after = MeasureMachine();
  const Machine machine{std::max(before.flops, after.flops),
                        std::max(before.bandwidth, after.bandwidth)};
  std::cout << absl::StrFormat("%s %s: %d threads, peak %.0f GFLOP/s, memory %.1f GB/s\n", path,
                               train ? "train" : "infer", Threads(), machine.flops * 1e-9,
                               machine.bandwidth * 1e-9);
  PrintTable(subject.executor->plan(), times, machine);
  return absl::OkStatus();
}

}  // namespace
}  // namespace onward

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "";
  const int64_t batch = argc > 3 ? std::atoll(argv[3]) : 1;
  const double seconds = argc > 4 ? std::atof(argv[4]) : 2;
  if (argc > 5 || (mode != "train" && mode != "infer") || batch < 1) {
    std::cerr << "usage: roofline MODEL.onnx train|infer [BATCH [SECONDS]]\n";
    return 2;
  }
  const absl::Status status = onward::Roofline(argv[1], mode == "train", batch, seconds);
  if (!status.ok()) std::cerr << "roofline: " << status.message() << "\n";
  return status.ok() ? 0 : 2;
}
