// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/insert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

class TargetFinder {
 public:
  TargetFinder(const Graph& root, const std::function<bool(const std::string&)>& is_tensor)
      : root_(root), is_tensor_(is_tensor) {}

  std::vector<Target> Run() {
    Visit(root_, nullptr);
    return std::move(targets_);
  }

 private:
  void Visit(const Graph& graph, const Sight* outer) {
    const Sight sight(graph, outer);
    for (const Node& node : graph.nodes) {
      ForEachBody(node, [&](const std::string&, const Graph& body) { Visit(body, &sight); });
      std::optional<Site> site = SiteOf(node, sight);
      if (!site.has_value() || !root_.ValueMetadata(site->key.source, kLoraPartKey).empty())
        continue;
      if (!seen_.insert(site->key).second) continue;
      site->chain.clear();
      const std::string& operand = site->key.operand;
      const std::string name = is_tensor_(operand) ? operand : site->key.source;
      const int use = uses_[name]++;
      targets_.push_back({*std::move(site), name, use});
    }
  }

  const Graph& root_;
  const std::function<bool(const std::string&)>& is_tensor_;
  std::set<Site::Key> seen_;
  std::map<std::string, int> uses_;
  std::vector<Target> targets_;
};

class Inserter {
 public:
  Inserter(const std::map<Site::Key, Adapter>& adapters, Graph* root)
      : adapters_(adapters), root_(root), names_(*root) {}

  void Run() { Visit(root_, nullptr); }

 private:
  void Visit(Graph* graph, const Sight* outer) {
    const Graph before = *graph;
    const Sight sight(before, outer);
    graph->nodes.clear();
    for (const Node& node : before.nodes) {
      Node copy = node;
      ChangeBodies(
          [&](const Graph& body) -> absl::StatusOr<Graph> {
            Graph changed = body;
            Visit(&changed, &sight);
            return changed;
          },
          &copy)
          .IgnoreError();
      const std::optional<Site> site = SiteOf(node, sight);
      auto adapter = site.has_value() ? adapters_.find(site->key) : adapters_.end();
      if (adapter == adapters_.end()) {
        graph->nodes.push_back(std::move(copy));
      } else {
        Write(*site, adapter->second, std::move(copy), graph);
      }
    }
  }

  // y = base(x, W)  becomes  base = base(x, W);  y = base + up(scale * down(dropout(x)))
  void Write(const Site& site, const Adapter& adapter, Node base, Graph* graph) {
    const std::string y = base.outputs[0];
    base.outputs[0] = names_.Unique(y + "__base");
    if (auto type = graph->types.find(y); type != graph->types.end())
      graph->types[base.outputs[0]] = ValueType(type->second);
    // Names of nodes are unique where onnxruntime reads them.
    const auto append = [&](const char* op, const char* role, std::vector<std::string> inputs,
                            const std::string& output, Attributes attributes = {}) {
      Node node;
      node.op_type = op;
      node.inputs = std::move(inputs);
      node.outputs = {output};
      node.attributes = std::move(attributes);
      if (!base.name.empty()) node.name = absl::StrCat(base.name, "__lora_", role);
      graph->nodes.push_back(std::move(node));
      return output;
    };
    const auto value = [&](const char* role) {
      return names_.Unique(absl::StrCat(y, "__lora_", role));
    };
    const bool left = site.key.form == Site::Form::kLeft, conv = site.key.form == Site::Form::kConv;
    const auto operands = [&](const std::string& x, const std::string& weight) {
      return left ? std::vector<std::string>{weight, x} : std::vector<std::string>{x, weight};
    };
    graph->nodes.push_back(base);
    std::string x = base.inputs[1 - site.input];
    if (adapter.dropout > 0) {
      x = append("Dropout", "input", {x, Number(adapter, "dropout", site.dtype, adapter.dropout)},
                 value("input"));
    }
    const char* product = base.Is("Gemm") ? "Gemm" : conv ? "Conv" : "MatMul";
    const std::string down =
        append(product, "down", operands(x, adapter.a), value("down"), DownAttributes(site, base));
    const std::string scaled =
        append("Mul", "scale", {down, Number(adapter, "scale", site.dtype, adapter.scale())},
               value("scaled"));
    const std::string up = append(conv ? "Conv" : "MatMul", "up", operands(scaled, adapter.b),
                                  value("up"), UpAttributes(site));
    append("Add", "add", {base.outputs[0], up}, y);
  }

  std::string Number(const Adapter& adapter, const char* what, DType dtype, double value) {
    auto [it, made] = numbers_.try_emplace({adapter.a, what});
    if (made) {
      it->second = names_.Unique(absl::StrCat(adapter.target, ".lora_", what));
      const Tensor tensor = ScalarOf(dtype, value);
      root_->types[it->second] = ValueType::Of(dtype, {});
      root_->initializers.insert_or_assign(it->second, tensor);
    }
    return it->second;
  }

  const std::map<Site::Key, Adapter>& adapters_;
  Graph* const root_;
  NameScope names_;
  std::map<std::pair<std::string, std::string>, std::string> numbers_;
};

// The tensors of a new adapter, zero.
void AddTensors(const Target& target, NameScope* names, Graph* graph, Adapter* adapter) {
  const int64_t rank = target.site.UsefulRank(adapter->rank);
  const auto add = [&](const char* suffix, const Shape& shape) {
    const std::string name = names->Unique(target.name + suffix);
    graph->initializers.insert_or_assign(name, Tensor::Zeros(target.site.dtype, shape));
    graph->types[name] = ValueType::Of(target.site.dtype, shape);
    return name;
  };
  adapter->a = add(".lora_A", target.site.DownShape(rank));
  adapter->b = add(".lora_B", target.site.UpShape(rank));
  WriteMetadata(*adapter, graph);
}

absl::Status NoTarget(const std::string& pattern, const std::vector<Target>& targets) {
  std::set<std::string> names;
  for (const Target& t : targets) names.insert(t.name);
  return absl::InvalidArgumentError(
      absl::StrCat("lora: pattern '", pattern,
                   "' matches no weight of a MatMul, Gemm, Conv or MatMulNBits; there are: ",
                   names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace

Attributes DownAttributes(const Site& site, const Node& base) {
  if (site.key.form == Site::Form::kPacked) return {};
  Attributes attributes = base.attributes;
  attributes.erase("beta");
  attributes.erase(site.input == 0 ? "transA" : "transB");
  return attributes;
}

Attributes UpAttributes(const Site& site) {
  return site.key.form == Site::Form::kConv ? Attributes{{"group", site.key.groups}} : Attributes{};
}

std::vector<Target> FindTargets(const Graph& graph,
                                const std::function<bool(const std::string&)>& is_tensor) {
  return TargetFinder(graph, is_tensor).Run();
}

void InsertAdapters(const std::map<Site::Key, Adapter>& adapters, Graph* graph) {
  Inserter(adapters, graph).Run();
}

absl::StatusOr<AddedAdapters> AddAdapters(const std::vector<LoraSpec>& specs,
                                          const WeightChoice& weights,
                                          const std::vector<std::string>& outputs,
                                          const std::set<std::string>& whole, Graph* graph) {
  AddedAdapters added;
  Graph part = *graph;
  Prune(&part, outputs);
  std::vector<Target> targets =
      FindTargets(part, [&](const std::string& value) { return weights.StoodForTensor(value); });
  std::erase_if(targets, [&](const Target& t) { return whole.contains(t.site.key.source); });
  std::map<std::pair<std::string, int>, Adapter> present;
  for (Adapter& adapter : FindAdapters(*graph))
    present.emplace(std::pair(adapter.target, adapter.use), std::move(adapter));
  std::set<std::string> matched;  // patterns
  std::map<Site::Key, Adapter> inserted;
  NameScope names(*graph);
  for (const LoraSpec& spec : specs) ONWARD_RETURN_IF_ERROR(CheckLora(spec));
  for (const Target& target : targets) {
    const LoraSpec* first = nullptr;
    for (const LoraSpec& spec : specs) {
      if (!weights.Means(spec.pattern, target.site.key.source, *graph) &&
          !MatchesPattern(target.name, spec.pattern)) {
        continue;
      }
      matched.insert(spec.pattern);
      if (first == nullptr) first = &spec;
    }
    if (first == nullptr) continue;
    added.bases.insert(target.site.key.source);
    if (auto there = present.find({target.name, target.use}); there != present.end()) {
      added.notes.push_back(absl::StrCat("'", target.name, "' has an adapter already: it goes on"));
      added.adapters.push_back(there->second);
      continue;
    }
    Adapter adapter{target.name, target.use, first->rank, first->alpha, first->dropout, "", ""};
    AddTensors(target, &names, graph, &adapter);
    added.drawn.push_back(adapter.a);
    inserted.emplace(target.site.key, adapter);
    added.adapters.push_back(std::move(adapter));
  }
  for (const LoraSpec& spec : specs) {
    if (!matched.contains(spec.pattern)) return NoTarget(spec.pattern, targets);
  }
  InsertAdapters(inserted, graph);
  return added;
}

}  // namespace onward
