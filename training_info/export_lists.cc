// SPDX-License-Identifier: Apache-2.0
#include "training_info/export_lists.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

using Changes = std::vector<std::string>;
using Texts = std::map<std::string, std::string>;  // name -> bytes

template <typename Items>
bool HasNamed(const Items& items, const std::string& name) {
  return std::any_of(items.begin(), items.end(),
                     [&](const auto& item) { return item.name() == name; });
}

template <typename Items>
Texts TextsOf(const Items& items) {
  Texts texts;
  for (const auto& item : items) texts.emplace(item.name(), item.SerializeAsString());
  return texts;
}

// Keeps the items of a list that `drop` does not want to be without.
template <typename Items>
void DropItems(Items* items, absl::FunctionRef<bool(const typename Items::value_type&)> drop) {
  int kept = 0;
  for (int i = 0; i < items->size(); ++i) {
    if (!drop(items->Get(i))) items->SwapElements(i, kept++);
  }
  items->DeleteSubrange(kept, items->size() - kept);
}

// Items of a list with the same bytes.
template <typename Items>
void DropRepeated(Items* items,
                  absl::FunctionRef<std::string(const typename Items::value_type&)> what,
                  const std::string& place, Changes* changes) {
  std::set<std::string> seen;
  DropItems(items, [&](const auto& item) {
    if (seen.insert(item.SerializeAsString()).second) return false;
    changes->push_back(absl::StrCat("dropped the second ", what(item), place));
    return true;
  });
}

void DropRepeated(const std::string& place, onnx::GraphProto* graph, Changes* changes) {
  const std::string from = absl::StrCat(" from ", place);
  DropRepeated(
      graph->mutable_input(),
      [](const onnx::ValueInfoProto& input) { return absl::StrCat("input '", input.name(), "'"); },
      from, changes);
  DropRepeated(
      graph->mutable_initializer(),
      [](const onnx::TensorProto& t) { return absl::StrCat("initializer '", t.name(), "'"); }, from,
      changes);
  DropRepeated(
      graph->mutable_node(),
      [](const onnx::NodeProto& node) {
        return absl::StrCat(node.op_type(), " node that computes '",
                            node.output_size() > 0 ? node.output(0) : "", "'");
      },
      from, changes);
}

// What the model has, and an algorithm again.
template <typename Items>
void DropRepeated(const Texts& held, const char* what, int entry, Items* items, Changes* changes) {
  DropItems(items, [&](const auto& item) {
    const auto it = held.find(item.name());
    if (it == held.end() || it->second != item.SerializeAsString()) return false;
    changes->push_back(absl::StrCat("dropped ", what, " '", item.name(), "' from training_info[",
                                    entry, "].algorithm: the model has the same"));
    return true;
  });
}

bool HasValue(const onnx::GraphProto& graph, const std::string& value) {
  return Computes(graph, value) || HasNamed(graph.input(), value) ||
         HasNamed(graph.initializer(), value);
}

// Such an algorithm has inputs and values of its own: of the model's graph it sees initializers.
bool CallsGraph(const onnx::GraphProto& algorithm) {
  return std::any_of(algorithm.node().begin(), algorithm.node().end(),
                     [](const onnx::NodeProto& node) { return node.op_type() == "GraphCall"; });
}

const onnx::TensorProto* VariableOf(const onnx::ModelProto& model, const std::string& name) {
  const auto find = [&](const onnx::GraphProto& graph) -> const onnx::TensorProto* {
    for (const auto& tensor : graph.initializer()) {
      if (tensor.name() == name) return &tensor;
    }
    return nullptr;
  };
  if (const onnx::TensorProto* tensor = find(model.graph())) return tensor;
  for (const auto& info : model.training_info()) {
    if (const onnx::TensorProto* tensor = find(info.algorithm())) return tensor;
  }
  return nullptr;
}

// An output of the variable's type and shape, which it has to have.
void AddOutput(const onnx::TensorProto& variable, const std::string& value,
               const std::string& place, onnx::GraphProto* graph, Changes* changes) {
  onnx::ValueInfoProto* output = graph->add_output();
  output->set_name(value);
  onnx::TypeProto::Tensor* type = output->mutable_type()->mutable_tensor_type();
  type->set_elem_type(variable.data_type());
  for (const int64_t size : variable.dims()) type->mutable_shape()->add_dim()->set_dim_value(size);
  if (variable.dims_size() == 0) type->mutable_shape();
  changes->push_back(
      absl::StrCat("listed '", value, "' among the outputs of ", place, ": a binding names it"));
}

}  // namespace

bool Computes(const onnx::GraphProto& graph, const std::string& value) {
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto& node) {
    return std::find(node.output().begin(), node.output().end(), value) != node.output().end();
  });
}

void DropWhatStandsTwice(onnx::ModelProto* model, Changes* changes) {
  DropRepeated(
      model->mutable_functions(),
      [](const onnx::FunctionProto& f) {
        return absl::StrCat("function ", f.domain(), ".", f.name());
      },
      "", changes);
  DropRepeated("the graph", model->mutable_graph(), changes);
  const Texts inputs = TextsOf(model->graph().input());
  const Texts initializers = TextsOf(model->graph().initializer());
  for (int k = 0; k < model->training_info_size(); ++k) {
    onnx::TrainingInfoProto* info = model->mutable_training_info(k);
    const std::string place = absl::StrCat("training_info[", k, "].");
    if (info->has_initialization())
      DropRepeated(place + "initialization", info->mutable_initialization(), changes);
    if (!info->has_algorithm()) continue;
    onnx::GraphProto* algorithm = info->mutable_algorithm();
    DropRepeated(place + "algorithm", algorithm, changes);
    if (!CallsGraph(*algorithm))
      DropRepeated(inputs, "input", k, algorithm->mutable_input(), changes);
    DropRepeated(initializers, "initializer", k, algorithm->mutable_initializer(), changes);
  }
}

void ListBoundValues(onnx::ModelProto* model, Changes* changes) {
  for (int k = 0; k < model->training_info_size(); ++k) {
    onnx::TrainingInfoProto* info = model->mutable_training_info(k);
    const std::string place = absl::StrCat("training_info[", k, "].");
    for (const auto& binding : info->update_binding()) {
      const std::string& value = binding.value();
      const onnx::TensorProto* variable = VariableOf(*model, binding.key());
      const bool listed =
          HasNamed(model->graph().output(), value) || HasNamed(info->algorithm().output(), value);
      if (listed || variable == nullptr) continue;
      const bool sees_model = !CallsGraph(info->algorithm());
      if (HasValue(info->algorithm(), value) || (sees_model && HasValue(model->graph(), value)))
        AddOutput(*variable, value, place + "algorithm", info->mutable_algorithm(), changes);
    }
    for (const auto& binding : info->initialization_binding()) {
      const std::string& value = binding.value();
      const onnx::TensorProto* variable = VariableOf(*model, binding.key());
      const onnx::GraphProto& graph = info->initialization();
      if (variable == nullptr || HasNamed(graph.output(), value) || !HasValue(graph, value))
        continue;
      AddOutput(*variable, value, place + "initialization", info->mutable_initialization(),
                changes);
    }
  }
}

}  // namespace onward
