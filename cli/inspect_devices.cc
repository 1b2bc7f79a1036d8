// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_devices.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/random_feeds.h"
#include "core/base/status.h"
#include "core/runtime/session.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

constexpr int64_t kOtherSizes = 8;

absl::StatusOr<std::map<std::string, FeedType>> TypesOf(const std::vector<NamedType>& inputs,
                                                        int64_t batch) {
  std::map<std::string, FeedType> types;
  for (const NamedType& in : inputs) {
    ONWARD_ASSIGN_OR_RETURN(const Shape shape,
                            FixedShape(in, {.batch = batch, .other = kOtherSizes}));
    types[in.name] = {in.type.dtype, shape};
  }
  return types;
}

Placement FromPlan(std::string what, const Plan& plan) {
  Placement placement;
  placement.what = std::move(what);
  std::vector<int> graph_of(plan.compute.size(), 0);
  for (const Stretch& stretch : plan.stretches) {
    if (stretch.device == kHost) continue;
    ++placement.graphs;
    std::fill(graph_of.begin() + stretch.begin, graph_of.begin() + stretch.end, placement.graphs);
  }
  const auto add = [&](const PlanStep& step, int graph) {
    if (step.transfer) {
      ++placement.copies;
      return;
    }
    const std::string name = step.node.name.empty() && !step.node.outputs.empty()
                                 ? step.node.outputs[0]
                                 : step.node.name;
    placement.nodes.push_back({step.node.op_type, name,
                               plan.DeviceOf(step.bodies_there ? 1 : step.device).name(), step.why,
                               graph});
    ++placement.on[placement.nodes.back().device];
    if (!step.why.empty()) ++placement.reasons[step.why];
  };
  for (size_t s = 0; s < plan.compute.size(); ++s) add(plan.compute[s], graph_of[s]);
  for (const PlanStep& step : plan.commit) {
    add(step, plan.commits_in_stretch && step.device != kHost ? placement.graphs : 0);
  }
  if (plan.rest != nullptr) placement.behind_data = plan.rest->graph->nodes.size();
  return placement;
}

Placement Of(const std::string& what, absl::StatusOr<Executor*> executor) {
  if (executor.ok()) return FromPlan(what, (*executor)->plan());
  Placement placement;
  placement.what = what;
  placement.problem = std::string(executor.status().message());
  return placement;
}

absl::StatusOr<Executor*> Prepared(Session& session, const std::vector<NamedType>& inputs,
                                   int64_t batch) {
  ONWARD_ASSIGN_OR_RETURN(const auto types, TypesOf(inputs, batch));
  return session.Prepare(types);
}

Placement InferencePlacement(const Model& model, int64_t batch, const Environment& environment) {
  auto graph = RunnableGraph(model, environment);
  if (!graph.ok()) return Of("inference", graph.status());
  const std::vector<NamedType> inputs = graph->FeedInputs();
  Session session(*std::move(graph), environment.compile_options());
  return Of("inference", Prepared(session, inputs, batch));
}

// "3 small integers, 1 no kernel"
std::string Counts(const std::map<std::string, int>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second, " ", entry.first);
  });
}

}  // namespace

std::vector<Placement> PlacementsOf(const Model& model, int64_t batch,
                                    const Environment& environment) {
  std::vector<Placement> placements = {InferencePlacement(model, batch, environment)};
  if (!model.has_training() || model.training_damaged()) return placements;
  const absl::StatusOr<std::unique_ptr<TrainingModel>> training =
      TrainingModel::Create(model, environment);
  if (!training.ok()) {
    placements.push_back(Of("training_info", training.status()));
    return placements;
  }
  for (int k = 0; k < (*training)->entries(); ++k) {
    const auto types = TypesOf((*training)->StepInputs(k), batch);
    placements.push_back(Of(absl::StrCat("training_info[", k, "]"),
                            types.ok() ? (*training)->PrepareStep(k, *types, {}) : types.status()));
  }
  return placements;
}

void PrintPlacements(const std::vector<Placement>& placements) {
  for (const Placement& p : placements) {
    std::cout << "devices of " << p.what << ": ";
    if (!p.problem.empty()) {
      std::cout << "cannot be told: " << p.problem << "\n";
      continue;
    }
    std::cout << (p.on.empty() ? "nothing to run" : "");
    const char* separator = "";
    for (const auto& [device, count] : p.on) {
      std::cout << separator << count << " on " << device;
      separator = ", ";
    }
    std::cout << "; " << p.copies << (p.copies == 1 ? " copy, " : " copies, ") << p.graphs
              << (p.graphs == 1 ? " graph" : " graphs") << "\n";
    if (!p.reasons.empty()) std::cout << "  not on the device: " << Counts(p.reasons) << "\n";
    if (p.behind_data > 0) {
      std::cout << "  " << p.behind_data << " nodes behind shapes that only data can tell\n";
    }
    for (const PlacedNode& node : p.nodes) {
      std::cout << absl::StrFormat("  %-10s %s %s%s\n", node.device, node.op, node.name,
                                   node.why.empty() ? "" : " (" + node.why + ")");
    }
  }
}

void WritePlacements(const std::vector<Placement>& placements, JsonWriter* w) {
  w->Key("devices").BeginArray();
  for (const Placement& p : placements) {
    w->BeginObject().Field("graph", p.what).Field("problem", p.problem);
    w->Key("on").BeginObject();
    for (const auto& [device, count] : p.on) w->Field(device, count);
    w->EndObject().Key("reasons").BeginObject();
    for (const auto& [why, count] : p.reasons) w->Field(why, count);
    w->EndObject().Field("copies", p.copies).Field("graphs", p.graphs);
    w->Field("behind_data", p.behind_data).Key("nodes").BeginArray();
    for (const PlacedNode& node : p.nodes) {
      w->BeginObject()
          .Field("op", node.op)
          .Field("name", node.name)
          .Field("device", node.device)
          .Field("why", node.why)
          .Field("graph", node.graph)
          .EndObject();
    }
    w->EndArray().EndObject();
  }
  w->EndArray();
}

}  // namespace onward
