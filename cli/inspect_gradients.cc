// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_gradients.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

using Flow = GradientReport::Flow;

constexpr size_t kMostNamed = 12;

const char* FlowName(Flow flow) {
  switch (flow) {
    case Flow::kFlows: return "flows";
    case Flow::kZero: return "zero";
    case Flow::kBlocked: return "blocked";
  }
  return "";
}

std::vector<MissingOperator> Missing(const Graph& graph, const Environment& environment) {
  std::vector<MissingOperator> missing =
      FindUnknown(graph, environment.operators(), environment.cpu());
  for (MissingOperator& m : FindWithoutKernel(graph, environment.operators(), environment.cpu())) {
    missing.push_back(std::move(m));
  }
  return missing;
}

}  // namespace

KernelFacts GatherKernelFacts(const Graph& canonical, const Environment& environment) {
  KernelFacts facts;
  facts.missing = Missing(canonical, environment);
  for (const NamedType& out : canonical.outputs) {
    Graph part = canonical;
    Prune(&part, {out.name});
    if (Missing(part, environment).empty()) facts.outputs.push_back(out.name);
  }
  return facts;
}

void PrintKernelFacts(const KernelFacts& facts) {
  if (facts.missing.empty()) return;
  std::cout << "cannot run\n";
  for (const MissingOperator& m : facts.missing) {
    std::cout << "  " << Describe(m)
              << (m.defined ? ": there is no kernel" : ": nobody defines it (--plugin LIB.so)")
              << "\n";
  }
  std::cout << "  outputs that do without: "
            << (facts.outputs.empty()
                    ? "none"
                    : absl::StrCat(absl::StrJoin(facts.outputs, ", "), " (run --only NAME)"))
            << "\n";
}

void WriteKernelFacts(const KernelFacts& facts, JsonWriter* w) {
  w->Key("cannot_run").BeginArray();
  for (const MissingOperator& m : facts.missing) {
    w->BeginObject().Field("operator", m.name).Field("version", m.version);
    w->Field("defined", m.defined).Key("nodes").Values(m.nodes).EndObject();
  }
  w->EndArray().Key("outputs_that_run").Values(facts.outputs);
}

void PrintReport(const GradientReport& report) {
  const std::vector<std::string> flowing = report.Of(Flow::kFlows);
  std::cout << "gradients of '" << absl::StrJoin(report.ys, "', '") << "': " << flowing.size()
            << " of " << report.xs.size() << " weights get one";
  if (flowing.size() == report.xs.size()) std::cout << ", all operators have one";
  std::cout << "\n";
  // Weights that share a fate share a line.
  std::vector<std::pair<std::string, std::vector<std::string>>> fates;
  for (const GradientReport::OfX& x : report.xs) {
    if (x.flow == Flow::kFlows) continue;
    const std::string fate = absl::StrCat(x.flow == Flow::kZero ? "zero, " : "none, ", x.reason);
    auto it =
        std::find_if(fates.begin(), fates.end(), [&](const auto& f) { return f.first == fate; });
    if (it == fates.end()) it = fates.insert(fates.end(), {fate, {}});
    it->second.push_back(x.x);
  }
  for (const auto& [fate, names] : fates) {
    std::cout << "  " << Listed(names, kMostNamed) << ": " << fate << "\n";
  }
  if (report.obstacles.empty()) return;
  std::cout << "gradients: blocked\n" << ObstacleText(report) << "\n";
}

void WriteReport(const GradientReport& report, JsonWriter* w) {
  w->Key("gradient_of").Values(report.ys).Key("gradients").BeginArray();
  for (const GradientReport::OfX& x : report.xs) {
    w->BeginObject().Field("name", x.x).Field("gradient", FlowName(x.flow));
    w->Field("reason", x.reason).EndObject();
  }
  w->EndArray().Key("obstacles").BeginArray();
  for (const Obstacle& o : report.obstacles) {
    w->BeginObject().Field("node", o.node).Field("operator", o.op).Field("inside", o.inside);
    w->Field("reason", o.reason).Field("path", o.path).Key("blocks").Values(o.blocks).EndObject();
  }
  w->EndArray();
}

}  // namespace onward
