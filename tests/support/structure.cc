// SPDX-License-Identifier: Apache-2.0
#include "tests/support/structure.h"

#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace onward {
namespace {

// FNV-1a, which is nobody's to change.
class Digest {
 public:
  Digest& Add(absl::string_view bytes) {
    AddBytes(bytes);
    return AddNumber(bytes.size());
  }
  Digest& AddNumber(uint64_t number) {
    AddBytes({reinterpret_cast<const char*>(&number), sizeof number});
    return *this;
  }
  Digest& Add(const Tensor& t) {
    Add(absl::StrCat(DTypeName(t.dtype()), t.shape().ToString()));
    if (t.dtype() != DType::kString) {
      return Add(absl::string_view(static_cast<const char*>(t.raw()), t.bytes()));
    }
    for (const std::string& text : t.values<std::string>()) Add(text);
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  void AddBytes(absl::string_view bytes) {
    for (const char c : bytes) value_ = (value_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  uint64_t value_ = 0xcbf29ce484222325;
};

using Known = std::map<std::string, uint64_t>;

uint64_t OfBody(const Graph& body, Known known);

void AddAttribute(const Attribute& attribute, const Known& known, Digest* digest) {
  const auto add = [&]<typename T>(const T& v) {
    if constexpr (std::is_same_v<T, int64_t>) {
      digest->AddNumber(static_cast<uint64_t>(v));
    } else if constexpr (std::is_same_v<T, float>) {
      digest->Add(absl::string_view(reinterpret_cast<const char*>(&v), sizeof v));
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Tensor>) {
      digest->Add(v);
    } else if constexpr (std::is_same_v<T, ValueType>) {
      digest->Add(v.ToString());
    } else {
      digest->AddNumber(OfBody(*v, known));
    }
  };
  std::visit(
      [&]<typename T>(const T& v) {
        if constexpr (requires { v.begin(); } && !std::is_same_v<T, std::string>) {
          for (const auto& item : v) add(item);
        } else {
          add(v);
        }
      },
      attribute.value);
}

// Adds what the graph's nodes and initializers give.
void AddValues(const Graph& graph, Known* known) {
  for (const auto& [name, tensor] : graph.initializers) {
    if (!graph.IsInput(name)) (*known)[name] = Digest().Add("initializer").Add(tensor).value();
  }
  for (const Node& node : graph.nodes) {
    Digest digest;
    digest.Add(node.domain).Add(node.op_type);
    for (const auto& [name, attribute] : node.attributes) {
      digest.Add(name);
      AddAttribute(attribute, *known, &digest);
    }
    for (const std::string& input : node.inputs) {
      digest.AddNumber(input.empty() ? 0 : known->at(input));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      (*known)[node.outputs[k]] = Digest(digest).AddNumber(k).value();
    }
  }
}

uint64_t OfBody(const Graph& body, Known known) {
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    known[body.inputs[i].name] = Digest().Add("body input").AddNumber(i).value();
  }
  AddValues(body, &known);
  Digest digest;
  for (const NamedType& out : body.outputs) digest.AddNumber(known.at(out.name));
  return digest.value();
}

}  // namespace

std::map<std::string, uint64_t> StructureOf(const Graph& graph) {
  Known known;
  for (const NamedType& in : graph.inputs) {
    Digest digest;
    digest.Add("input").Add(in.name);
    if (graph.initializers.contains(in.name)) digest.Add(graph.initializers.at(in.name));
    known[in.name] = digest.value();
  }
  AddValues(graph, &known);
  std::map<std::string, uint64_t> outputs;
  for (const NamedType& out : graph.outputs) outputs[out.name] = known.at(out.name);
  return outputs;
}

}  // namespace onward
