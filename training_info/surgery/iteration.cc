// SPDX-License-Identifier: Apache-2.0
#include "training_info/surgery/iteration.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"

namespace onward {
namespace {

ValueType TypeIn(const Graph& graph, const NamedType& value) {
  const ValueType* type = graph.TypeOf(value.name);
  return type != nullptr && type->known() ? *type : value.type;
}

ValueType TypeOfTensor(const Tensor& tensor) {
  return ValueType::Of(tensor.dtype(), tensor.shape());
}

// A value of this type without elements.
Node EmptyValue(const ValueType& type, std::string name) {
  Node node;
  node.outputs = {std::move(name)};
  if (type.is_tensor()) {
    node.op_type = "Constant";
    node.attributes["value"] = Tensor(type.dtype, {0});
  } else if (type.kind == ValueType::Kind::kSequence) {
    node.op_type = "SequenceEmpty";
    node.attributes["dtype"] = static_cast<int64_t>(type.leaf());
  } else {
    node.op_type = "Optional";
    node.attributes["type"].value = *type.element;
  }
  return node;
}

// Writes entries into one graph, one after the other.
class IterationWriter {
 public:
  IterationWriter(const TrainingSpec& spec, int64_t iteration)
      : spec_(spec),
        variables_(spec.StateVariables()),
        iteration_(iteration),
        builder_(&graph_, nullptr, "iteration", &names_) {
    for (const std::string& name : variables_) {
      names_.Reserve(name);
      present_[name] = name;
      graph_.types[name] = TypeOfTensor(*spec.FindInitializer(name));
    }
  }

  absl::StatusOr<IterationGraph> Write(const std::vector<EntryGraph>& entries) {
    for (const EntryGraph& e : entries) AddInputs(e.graph);
    const std::vector<std::vector<std::string>> names = NameOutputs(entries);
    for (size_t i = 0; i < entries.size(); ++i) {
      const EntryGraph& e = entries[i];
      if (e.rests && counter_.empty()) AddCounter();
      for (const auto& [name, facts] : e.graph.metadata) graph_.metadata.emplace(name, facts);
      ONWARD_RETURN_IF_ERROR(e.rests ? AddInTurn(e, names[i]) : AddAlways(e, names[i]));
    }
    ListOutputs(entries);
    LeaveOutTheRest();
    return IterationGraph{std::move(graph_), std::move(updates_)};
  }

 private:
  // A training graph as a function of its inputs and initializers, and the call of it.
  struct Call {
    Function function;
    Node node;
  };
  // What an entry that rests at times gives.
  struct Result {
    std::string inside;     // the value that it computes
    std::string name;       // the value of the iteration
    std::string otherwise;  // the value in its place when it rests; "": there is none
    ValueType type;
  };

  void AddInputs(const Graph& graph) {
    if (graph_.name.empty()) graph_.name = graph.name;
    graph_.opsets.insert(graph.opsets.begin(), graph.opsets.end());
    for (const NamedType& in : graph.inputs) {
      names_.Reserve(in.name);
      if (!graph_.IsInput(in.name)) graph_.inputs.push_back(in);
    }
  }

  // The last entry that gives an output has its name. "" for one that is an input or an
  // initializer itself: what that is called by then is not known yet.
  std::vector<std::vector<std::string>> NameOutputs(const std::vector<EntryGraph>& entries) {
    std::vector<std::vector<std::string>> names(entries.size());
    for (size_t i = entries.size(); i-- > 0;) {
      const Graph& graph = entries[i].graph;
      absl::flat_hash_set<std::string> computed;
      for (const Node& node : graph.nodes) {
        computed.insert(node.outputs.begin(), node.outputs.end());
      }
      for (const NamedType& out : graph.outputs) {
        if (!computed.contains(out.name)) {
          names[i].emplace_back();
          continue;
        }
        std::string name = names_.Unique(out.name);
        names[i].push_back(name == out.name ? name : NumberedName(entries[i], out.name));
      }
    }
    return names;
  }
  std::string NumberedName(const EntryGraph& e, const std::string& output) {
    return names_.Unique(absl::StrCat(output, "_entry", e.entry));
  }

  void AddCounter() {
    counter_ = names_.Unique("iteration");
    graph_.initializers[counter_] = Tensor::Scalar<int64_t>(iteration_);
    const Expr next =
        builder_.Named(builder_.Value(counter_) + builder_.Int(1), names_.Unique("iteration_next"));
    for (const std::string& name : {counter_, next.name()}) {
      graph_.types[name] = ValueType::Of(DType::kInt64, {});
    }
    graph_.inputs.push_back({counter_, graph_.types[counter_]});
    updates_[counter_] = next.name();
  }

  Call CallOf(const Graph& graph) {
    Call call;
    call.function.body = graph;
    call.function.body.inputs.clear();
    const auto add = [&](const std::string& formal, std::string actual) {
      call.function.body.inputs.push_back({formal, {}});
      call.node.inputs.push_back(std::move(actual));
    };
    for (const NamedType& in : graph.inputs) {
      if (!graph.initializers.contains(in.name)) add(in.name, in.name);
    }
    for (const auto& [name, tensor] : graph.initializers) {
      add(name, PresentName(name, graph.IsInput(name), tensor));
    }
    return call;
  }
  std::string PresentName(const std::string& name, bool is_input, const Tensor& tensor) {
    if (variables_.contains(name)) {
      graph_.initializers.emplace(name, tensor);
      return present_.at(name);
    }
    const auto known = graph_.initializers.find(name);
    if (known != graph_.initializers.end() && Identical(known->second, tensor)) return name;
    // Something of another entry may have the name.
    const std::string own = is_input ? name : names_.Unique(name);
    graph_.initializers.emplace(own, tensor);
    graph_.types[own] = TypeOfTensor(tensor);
    return own;
  }

  // The nodes of an entry; their types go to `typed`.
  absl::StatusOr<std::vector<Node>> NodesOf(const EntryGraph& e, const Call& call, Graph* typed) {
    const std::string prefix = first_ ? "" : absl::StrCat("entry", e.entry, "__");
    first_ = false;
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes,
                            ExpandCall(call.function, call.node, prefix, &names_));
    for (size_t i = 0; i < e.graph.nodes.size(); ++i) {
      const Node& from = e.graph.nodes[i];
      for (size_t k = 0; k < from.outputs.size(); ++k) {
        const ValueType* type = e.graph.TypeOf(from.outputs[k]);
        if (type != nullptr) typed->types[nodes[i].outputs[k]] = *type;
      }
    }
    return nodes;
  }

  absl::Status AddAlways(const EntryGraph& e, const std::vector<std::string>& names) {
    Call call = CallOf(e.graph);
    for (size_t i = 0; i < names.size(); ++i) {
      const NamedType& out = e.graph.outputs[i];
      std::string name = names[i];
      // What goes in and out under its own name is there.
      const bool same = name.empty() && ActualOf(call, out.name) == out.name;
      if (name.empty()) name = same ? out.name : NumberedName(e, out.name);
      call.node.outputs.push_back(same ? "" : name);
      graph_.types[name] = TypeIn(e.graph, out);
      given_[out.name] = name;
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, NodesOf(e, call, &graph_));
    for (Node& node : nodes) graph_.nodes.push_back(std::move(node));
    for (const Binding& b : BindingsOf(e)) Assign(b.variable, given_.at(b.value));
    return absl::OkStatus();
  }
  static std::string ActualOf(const Call& call, const std::string& formal) {
    const std::vector<NamedType>& formals = call.function.body.inputs;
    for (size_t i = 0; i < formals.size(); ++i) {
      if (formals[i].name == formal) return call.node.inputs[i];
    }
    return "";
  }
  const std::vector<Binding>& BindingsOf(const EntryGraph& e) const {
    return spec_.entries[static_cast<size_t>(e.entry)].update_bindings;
  }
  void Assign(const std::string& variable, const std::string& value) {
    present_[variable] = value;
    updates_[variable] = value;
  }

  absl::Status AddInTurn(const EntryGraph& e, const std::vector<std::string>& names) {
    const EntryRate& rate = spec_.entries[static_cast<size_t>(e.entry)].rate;
    const Expr due = Equal(builder_.Op("Mod", {builder_.Value(counter_), builder_.Int(rate.every)}),
                           builder_.Int(rate.phase));
    Call call = CallOf(e.graph);
    const std::vector<Result> results = ResultsOf(e, names, &call.node);
    Graph turn, rest;
    turn.name = absl::StrCat("entry", e.entry);
    rest.name = absl::StrCat("entry", e.entry, "_rests");
    ONWARD_ASSIGN_OR_RETURN(turn.nodes, NodesOf(e, call, &turn));
    Node branch;
    branch.op_type = "If";
    branch.name = turn.name;
    branch.inputs = {due.name()};
    absl::flat_hash_set<std::string> listed;
    for (const Result& r : results) {
      const std::string value =
          listed.insert(r.inside).second ? r.inside : Copy(r.inside, r.name, &turn);
      turn.outputs.push_back({value, r.type});
      ONWARD_RETURN_IF_ERROR(AddResting(e, r, &rest));
      branch.outputs.push_back(r.name);
      graph_.types[r.name] = rest.outputs.back().type == r.type ? r.type : WithoutShape(r.type);
    }
    branch.attributes["then_branch"] = std::make_shared<const Graph>(std::move(turn));
    branch.attributes["else_branch"] = std::make_shared<const Graph>(std::move(rest));
    graph_.nodes.push_back(std::move(branch));
    return absl::OkStatus();
  }

  // Its outputs, and variables whose new value is another one than such an output when it rests:
  // where two share theirs, or an entry before gave an output of that name. `call` gets the names
  // inside.
  std::vector<Result> ResultsOf(const EntryGraph& e, const std::vector<std::string>& names,
                                Node* call) {
    std::vector<Result> results;
    std::map<std::string, size_t> numbers;
    for (size_t i = 0; i < names.size(); ++i) {
      const NamedType& out = e.graph.outputs[i];
      const std::string name = names[i].empty() ? NumberedName(e, out.name) : names[i];
      call->outputs.push_back(names_.Unique(absl::StrCat(name, "__turn")));
      const auto before = given_.find(out.name);
      numbers[out.name] = results.size();
      results.push_back({call->outputs.back(), name, before == given_.end() ? "" : before->second,
                         TypeIn(e.graph, out)});
    }
    for (const Binding& b : BindingsOf(e)) {
      size_t number = numbers.at(b.value);
      if (!results[number].otherwise.empty()) {
        const Result again = results[number];
        number = results.size();
        results.push_back(again);
        results.back().name = names_.Unique(absl::StrCat(b.variable, "_new"));
      }
      results[number].otherwise = present_.at(b.variable);
      results[number].type = *graph_.TypeOf(b.variable);
      Assign(b.variable, results[number].name);
    }
    for (const auto& [output, number] : numbers) given_[output] = results[number].name;
    return results;
  }

  // A value of its own for another output of the branch.
  std::string Copy(const std::string& value, const std::string& hint, Graph* body) {
    GraphBuilder inside(body, nullptr, "copy", &names_);
    return inside.Named(inside.Value(value), names_.Unique(absl::StrCat(hint, "__turn"))).name();
  }
  absl::Status AddResting(const EntryGraph& e, const Result& result, Graph* rest) {
    const std::string kept = names_.Unique(absl::StrCat(result.name, "__kept"));
    GraphBuilder inside(rest, nullptr, "kept", &names_);
    if (!result.otherwise.empty()) {
      inside.Named(inside.Value(result.otherwise), kept);
      rest->outputs.push_back({kept, graph_.types[result.otherwise]});
      return absl::OkStatus();
    }
    if (!result.type.known()) {
      return absl::InvalidArgumentError(
          absl::StrCat("training_info[", e.entry, "]: the type of output '", result.name,
                       "' is not known, so it cannot be left out when the entry rests; declare "
                       "it in the algorithm's outputs, or write the entry alone"));
    }
    inside.Append(EmptyValue(result.type, kept));
    rest->outputs.push_back(
        {kept, result.type.is_tensor() ? ValueType::Of(result.type.dtype, {0}) : result.type});
    return absl::OkStatus();
  }
  static ValueType WithoutShape(const ValueType& type) {
    return type.is_tensor() ? ValueType::Unranked(type.dtype) : type;
  }

  void ListOutputs(const std::vector<EntryGraph>& entries) {
    absl::flat_hash_set<std::string> listed;
    const auto list = [&](const std::string& name) {
      if (listed.insert(name).second) graph_.outputs.push_back({name, graph_.types[name]});
    };
    for (const EntryGraph& e : entries) {
      for (const NamedType& out : e.graph.outputs) list(given_.at(out.name));
    }
    for (const auto& [variable, value] : updates_) list(value);
  }

  // Leaves what the outputs need: variables that are read or updated, inputs that are read.
  void LeaveOutTheRest() {
    std::vector<std::string> wanted;
    for (const NamedType& out : graph_.outputs) wanted.push_back(out.name);
    for (const auto& [variable, value] : updates_) {
      wanted.push_back(variable);
      if (variables_.contains(variable))
        graph_.initializers.emplace(variable, *spec_.FindInitializer(variable));
    }
    Prune(&graph_, wanted);
    absl::flat_hash_set<std::string> needed(wanted.begin(), wanted.end());
    for (const Node& node : graph_.nodes) {
      for (std::string& in : AllInputs(node)) needed.insert(std::move(in));
    }
    std::erase_if(graph_.inputs, [&](const NamedType& in) { return !needed.contains(in.name); });
    for (const std::string& name : variables_) {
      if (graph_.initializers.contains(name) && !graph_.IsInput(name))
        graph_.inputs.push_back({name, graph_.types[name]});
    }
  }

  const TrainingSpec& spec_;
  const std::set<std::string> variables_;
  const int64_t iteration_;
  Graph graph_;
  NameScope names_;
  GraphBuilder builder_;
  bool first_ = true;
  std::string counter_;                         // "": every entry is in every iteration
  std::map<std::string, std::string> present_;  // variable -> the value that it has by now
  std::map<std::string, std::string> given_;    // output of an entry -> the last value of it
  std::map<std::string, std::string> updates_;
};

}  // namespace

absl::StatusOr<IterationGraph> JoinEntries(const TrainingSpec& spec,
                                           std::vector<EntryGraph> entries, int64_t iteration) {
  return IterationWriter(spec, iteration).Write(entries);
}

}  // namespace onward
