// SPDX-License-Identifier: Apache-2.0
// onward bench: milliseconds per training step or inference.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/random_feeds.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/profile.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

constexpr int kWarmups = 3;
constexpr int kProfiledRuns = 5;
constexpr int kFewestRuns = 5;

struct Bench {
  std::function<absl::Status(const RunOptions&)> once;
  size_t arena_bytes = 0, live_bytes = 0;
};

absl::StatusOr<Model> TrainableForBench(const Args& args, Model model,
                                        const Environment& environment) {
  if (model.has_training()) return model;
  AuthorOptions options;
  ONWARD_RETURN_IF_ERROR(ReadAuthorFlags(args, &options));
  if (args.Has("batch")) options.free_batch = true;
  ONWARD_ASSIGN_OR_RETURN(AuthorResult result, MakeTrainable(model, options, environment));
  return std::move(result.model);
}

int64_t Classes(const Graph& graph, const std::string& output) {
  const ValueType* type = graph.TypeOf(output);
  if (type == nullptr || type->rank() < 2 || !type->dims[1].known()) return 2;
  return type->dims[1].value;
}

absl::StatusOr<OpenSizes> ReadSizes(const Args& args, const std::vector<NamedType>& inputs) {
  OpenSizes sizes{.batch = args.Int("batch")};
  ONWARD_ASSIGN_OR_RETURN(sizes.named, ParseSizes(args.All("size")));
  ONWARD_RETURN_IF_ERROR(CheckSizes(sizes.named, inputs));
  return sizes;
}

absl::StatusOr<Bench> PrepareTraining(const Args& args, Model source,
                                      const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, TrainableForBench(args, std::move(source), environment));
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> created,
                          TrainingModel::Create(std::move(model), environment));
  std::shared_ptr<TrainingModel> training = std::move(created);
  std::vector<std::string> wanted;
  if (const std::string loss = training->model().Metadata(kMetaLoss); !loss.empty())
    wanted.push_back(loss);
  const std::vector<NamedType> inputs = training->StepInputs(-1, wanted);
  ONWARD_ASSIGN_OR_RETURN(const OpenSizes sizes, ReadSizes(args, inputs));
  ONWARD_ASSIGN_OR_RETURN(
      TensorMap feeds,
      RandomFeeds(inputs, training->lowered(0), sizes, training->model().Metadata(kMetaLabel),
                  Classes(training->lowered(0), training->model().Metadata(kMetaOutput))));
  Bench bench;
  for (int k = 0; k < training->entries(); ++k) {
    ONWARD_ASSIGN_OR_RETURN(Executor * executor, training->PrepareStep(k, feeds, wanted));
    bench.arena_bytes += executor->plan().arena_bytes;
    bench.live_bytes += executor->plan().live_bytes;
  }
  if (args.Has("plan")) {
    ONWARD_ASSIGN_OR_RETURN(Executor * executor, training->PrepareStep(0, feeds, wanted));
    std::cerr << executor->plan().ToText();
  }
  bench.once = [training, feeds, wanted](const RunOptions& options) -> absl::Status {
    if (!options.on_step) return training->Step(feeds, wanted, options.cancel).status();
    ONWARD_ASSIGN_OR_RETURN(Executor * executor, training->PrepareStep(0, feeds, wanted));
    return executor->Run(feeds, &training->variables(), options).status();
  };
  return bench;
}

absl::StatusOr<Bench> PrepareInference(const Args& args, const Model& model,
                                       const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, environment));
  ONWARD_ASSIGN_OR_RETURN(const OpenSizes sizes, ReadSizes(args, graph.FeedInputs()));
  ONWARD_ASSIGN_OR_RETURN(TensorMap feeds, RandomFeeds(graph.FeedInputs(), graph, sizes));
  CompileOptions options = environment.compile_options();
  auto session = std::make_shared<Session>(std::move(graph), options);
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
  Bench bench;
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, session->Prepare(types));
  bench.arena_bytes = executor->plan().arena_bytes;
  bench.live_bytes = executor->plan().live_bytes;
  if (args.Has("plan")) std::cerr << executor->plan().ToText();
  bench.once = [session, feeds](const RunOptions& run) {
    return session->Run(feeds, nullptr, run).status();
  };
  return bench;
}

absl::Status RunProfile(const Bench& bench, const std::string& trace) {
  Profile profile;
  RunOptions options;
  options.cancel = &Interrupted();
  options.on_step = [&](const PlanStep& step, int64_t ns) { profile.Add(step, ns); };
  for (int i = 0; i < kProfiledRuns && !Interrupted(); ++i) {
    profile.BeginRun();
    ONWARD_RETURN_IF_ERROR(bench.once(options));
  }
  profile.Print(std::cerr);
  ONWARD_RETURN_IF_ERROR(profile.WriteTrace(trace));
  std::cerr << "trace: " << trace << " (open in chrome://tracing or Perfetto)\n";
  return absl::OkStatus();
}

absl::StatusOr<int> RunBench(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  const std::string name = std::filesystem::path(args.Argument("MODEL")).stem().string();
  const auto begin = std::chrono::steady_clock::now();
  ONWARD_ASSIGN_OR_RETURN(Bench bench, args.String("mode") == "train"
                                           ? PrepareTraining(args, std::move(model), environment)
                                           : PrepareInference(args, model, environment));
  const double prepared =
      1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RunOptions run;
  run.cancel = &Interrupted();
  for (int i = 0; i < kWarmups; ++i) ONWARD_RETURN_IF_ERROR(bench.once(run));
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&](auto since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  };
  while ((times.size() < kFewestRuns || seconds(start) < args.Double("seconds")) &&
         !Interrupted()) {
    const auto t = std::chrono::steady_clock::now();
    const absl::Status done = bench.once(run);
    if (absl::IsCancelled(done)) break;
    ONWARD_RETURN_IF_ERROR(done);
    times.push_back(1e3 * seconds(t));
  }
  if (times.empty()) return absl::CancelledError("stopped before the first measurement");
  if (args.Has("profile")) {
    ONWARD_RETURN_IF_ERROR(
        RunProfile(bench, args.Has("trace") ? args.String("trace") : name + ".trace.json"));
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const double peak = static_cast<double>(PeakBytes()) / 1048576;
  if (args.Has("json")) {
    JsonWriter w;
    w.BeginObject()
        .Field("model", name)
        .Field("mode", args.String("mode"))
        .Field("median_ms", median);
    w.Field("min_ms", times.front())
        .Field("n", times.size())
        .Field("threads", Threads())
        .Field("peak_mb", peak);
    w.Field("arena_mb", static_cast<double>(bench.arena_bytes) / 1048576);
    w.Field("live_mb", static_cast<double>(bench.live_bytes) / 1048576)
        .Field("prepare_ms", prepared)
        .EndObject();
    std::cout << w.text() << "\n";
  } else {
    std::cout << absl::StrFormat(
        "%s %s: median %.3f ms, best %.3f ms (%d runs, %d threads; prepared in %.0f ms, peak %.0f "
        "MB)\n",
        name, args.String("mode"), median, times.front(), times.size(), Threads(), prepared, peak);
  }
  return 0;
}

}  // namespace

Command BenchCommand() {
  std::vector<Flag> flags = {
      Flag::Choice("mode", {"train", "infer"}, "a training step or an inference").Default("train"),
      Flag::Number("seconds", "S", "how long to measure", 0, 1e6).Default("3"),
      Flag::Count("batch", "N", "where the model leaves it open", 1).Default("1"),
      Flag::Value("size", "NAME=N",
                  "another size that the model leaves open, by its name or as INPUT.AXIS")
          .Repeated(),
      Flag::Switch("profile", "print time per operator to standard error and write a trace"),
      Flag::Value("trace", "FILE", "where --profile writes its trace (default MODEL.trace.json)")
          .Names(FlagNames::kResult),
      Flag::Switch("plan", "print the compiled plan to standard error"),
      Flag::Switch("json", "print one JSON object")};
  for (Flag& f : AuthorFlags()) flags.push_back(std::move(f));
  return Computing(
      {.name = "bench",
       .summary = "milliseconds per training step or inference, on random data",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags = std::move(flags),
       .example = "onward bench model.onnx --mode train --loss cross_entropy --optimizer adamw "
                  "--seconds 3 --json",
       .check = CheckAuthorFlags},
      RunBench);
}

}  // namespace onward
