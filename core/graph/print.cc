// SPDX-License-Identifier: Apache-2.0
// Graphs as text: for people, for messages and for comparing bodies.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/graph/graph.h"

namespace onward {
namespace {

constexpr int kMaxPrintedElements = 8;

std::string TensorText(const Tensor& t) {
  std::string text = absl::StrCat(std::string(DTypeName(t.dtype())), t.shape().ToString());
  auto ints = ToInts(t);
  auto doubles = ToDoubles(t);
  if (t.elements() > kMaxPrintedElements) return text + " {...}";
  if (ints.ok()) return absl::StrCat(text, " {", absl::StrJoin(*ints, ", "), "}");
  if (doubles.ok()) {
    return absl::StrCat(
        text, " {",
        absl::StrJoin(*doubles, ", ", [](std::string* out, double v) { absl::StrAppend(out, v); }),
        "}");
  }
  return text;
}

struct AttributeValueText {
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(float v) const { return absl::StrCat(v); }
  std::string operator()(const std::string& v) const { return absl::StrCat("\"", v, "\""); }
  std::string operator()(const Tensor& v) const { return TensorText(v); }
  std::string operator()(const ValueType& v) const { return v.ToString(); }
  std::string operator()(const Attribute::Body& v) const { return "{\n" + ToText(*v) + "}"; }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> texts;
    for (const T& v : list) texts.push_back((*this)(v));
    return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
  }
};

std::string AttributeText(const Attribute& a) {
  return a.ref.empty() ? std::visit(AttributeValueText{}, a.value) : "@" + a.ref;
}

std::string JoinTypes(const std::vector<NamedType>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const NamedType& v) {
    absl::StrAppend(out, v.type.ToString(), " ", v.name);
  });
}

}  // namespace

std::string ToText(const Node& node) {
  std::string text = absl::StrCat(absl::StrJoin(node.outputs, ", "), " = ",
                                  node.domain.empty() ? "" : node.domain + ".", node.op_type);
  if (!node.attributes.empty()) {
    absl::StrAppend(&text, " <",
                    absl::StrJoin(node.attributes, ", ",
                                  [](std::string* out, const auto& a) {
                                    absl::StrAppend(out, a.first, " = ", AttributeText(a.second));
                                  }),
                    ">");
  }
  absl::StrAppend(&text, " (", absl::StrJoin(node.inputs, ", "), ")");
  return text;
}

std::string ToText(const Graph& graph) {
  std::string text =
      absl::StrCat(graph.name.empty() ? "graph" : graph.name, " (", JoinTypes(graph.inputs),
                   ") => (", JoinTypes(graph.outputs), ")\n");
  for (const auto& [name, tensor] : graph.initializers) {
    absl::StrAppend(&text, "  ", name, ": ", TensorText(tensor), "\n");
  }
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, "  ", ToText(node));
    if (!node.outputs.empty()) {
      if (const ValueType* t = graph.TypeOf(node.outputs[0]); t != nullptr) {
        absl::StrAppend(&text, "  # ", t->ToString());
      }
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace onward
