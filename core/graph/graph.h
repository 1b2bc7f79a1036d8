// SPDX-License-Identifier: Apache-2.0
// Graphs as plain values: nodes refer to values by name, as in ONNX. Nothing
// here depends on protobuf; core/onnx_io converts from and to files.
//
// Invariants of a verified graph (see verify.h): every value has one producer
// (an input, an initializer or a node), nodes stand in topological order, and
// the empty name means "omitted".
#ifndef ONWARD_CORE_GRAPH_GRAPH_H_
#define ONWARD_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value_type.h"

namespace onward {

// The domain of Onward's own functions; each has a body in standard operators.
inline constexpr std::string_view kOnwardDomain = "ai.onward";
// Counts what its functions mean. A file says which version it was written with
// (opset_import); one of another version is run by the bodies it carries.
inline constexpr int kOnwardVersion = 2;
inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";
// The opset that kernels and rules think in.
inline constexpr int kCanonicalOpset = 28;

struct Graph;

// An attribute's value, or (inside a function body) the name of the attribute
// of the call that it stands for.
struct Attribute {
  using Body = std::shared_ptr<const Graph>;
  using Value = std::variant<int64_t, float, std::string, Tensor, Body, ValueType,
                             std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                             std::vector<Tensor>, std::vector<Body>, std::vector<ValueType>>;
  Value value;
  std::string ref;   // not empty: the value comes from the caller
  int ref_kind = 0;  // ONNX AttributeProto.AttributeType of a reference

  Attribute() = default;
  Attribute(int64_t v) : value(v) {}
  Attribute(int v) : value(static_cast<int64_t>(v)) {}
  Attribute(float v) : value(v) {}
  Attribute(double v) : value(static_cast<float>(v)) {}
  Attribute(const char* v) : value(std::string(v)) {}
  Attribute(std::string v) : value(std::move(v)) {}
  Attribute(Tensor v) : value(std::move(v)) {}
  Attribute(Body v) : value(std::move(v)) {}
  Attribute(std::vector<int64_t> v) : value(std::move(v)) {}
  Attribute(std::vector<float> v) : value(std::move(v)) {}
  Attribute(std::vector<std::string> v) : value(std::move(v)) {}
};
using Attributes = absl::btree_map<std::string, Attribute>;

struct Node {
  std::string op_type;
  std::string domain;  // "" is ai.onnx
  std::string name;
  std::string overload;              // of the function called; usually ""
  std::vector<std::string> inputs;   // "" = omitted
  std::vector<std::string> outputs;  // "" = not wanted
  Attributes attributes;
  // Metadata that is not in any file: where an expanded node came from.
  std::string origin;

  bool Is(std::string_view op, std::string_view in_domain = "") const {
    return op_type == op && domain == in_domain;
  }
  bool HasInput(int i) const { return i < static_cast<int>(inputs.size()) && !inputs[i].empty(); }
  bool HasOutput(int i) const {
    return i < static_cast<int>(outputs.size()) && !outputs[i].empty();
  }
  bool Has(std::string_view attribute) const;
  // The attribute, or the default where it is absent or of another kind.
  int64_t Int(std::string_view attribute, int64_t otherwise) const;
  float Float(std::string_view attribute, float otherwise) const;
  std::string String(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> Ints(std::string_view attribute, std::vector<int64_t> otherwise = {}) const;
  std::vector<std::string> Strings(std::string_view attribute) const;
  const Tensor* TensorAttribute(std::string_view attribute) const;
  const Graph* Subgraph(std::string_view attribute) const;

  // "node 'fc1' (Gemm)", for messages; unnamed nodes show their first output.
  std::string Describe() const;
};

struct NamedType {
  std::string name;
  ValueType type;
};

// A model-local function: `body.inputs` and `body.outputs` are its formal
// parameters (untyped), `attributes` the formal attributes with their defaults.
struct Function;

struct FunctionKey {
  std::string domain, name, overload;
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;
};

struct Graph {
  std::string name;
  std::vector<NamedType> inputs;
  std::vector<NamedType> outputs;
  absl::btree_map<std::string, Tensor> initializers;
  std::vector<Node> nodes;
  // Declared or inferred types of any value (inputs and outputs included).
  absl::flat_hash_map<std::string, ValueType> types;
  // What a file says of values beside their types (metadata_props), by name of the value.
  absl::flat_hash_map<std::string, std::map<std::string, std::string>> metadata;
  // Domain -> version ("" is ai.onnx). Subgraphs leave it empty.
  std::map<std::string, int> opsets;
  std::map<FunctionKey, std::shared_ptr<const Function>> functions;

  int opset() const {
    auto it = opsets.find("");
    return it == opsets.end() ? 0 : it->second;
  }
  const ValueType* TypeOf(const std::string& value) const {
    auto it = types.find(value);
    return it == types.end() ? nullptr : &it->second;
  }
  // One entry of `metadata`; "" if there is none.
  std::string ValueMetadata(const std::string& value, const std::string& key) const;
  bool IsInput(std::string_view value) const;
  bool IsOutput(std::string_view value) const;
  // The inputs a caller has to feed: those without an initializer.
  std::vector<NamedType> FeedInputs() const;
};

struct Function {
  Graph body;
  std::vector<std::string> required_attributes;
  Attributes default_attributes;
};

// Adds what calls of this domain need to the graph's operator sets.
void ImportDomain(const std::string& domain, Graph* graph);

// Visits the bodies that a node carries (If, Loop, Scan), those in lists included.
void ForEachBody(const Node& node,
                 absl::FunctionRef<void(const std::string& attribute, const Graph& body)> visit);
// Puts what `change` makes of each body in its place.
absl::Status ChangeBodies(absl::FunctionRef<absl::StatusOr<Graph>(const Graph& body)> change,
                          Attribute* attribute);
absl::Status ChangeBodies(absl::FunctionRef<absl::StatusOr<Graph>(const Graph& body)> change,
                          Node* node);

// The names of outer values that `graph`'s nodes read (for If/Loop/Scan
// bodies), nested bodies included, in order of first use.
std::vector<std::string> CapturedValues(const Graph& graph);
// The values a node reads, captured ones of its subgraphs included.
std::vector<std::string> AllInputs(const Node& node);

// Readable text: one line per node, types where known.
std::string ToText(const Graph& graph);
std::string ToText(const Node& node);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_GRAPH_H_
