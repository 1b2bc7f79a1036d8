// SPDX-License-Identifier: Apache-2.0
// A node as plugins see it.
#ifndef ONWARD_ENVIRONMENT_NODE_CALL_H_
#define ONWARD_ENVIRONMENT_NODE_CALL_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"
#include "onward/plugin.h"

namespace onward {

// Between the types of both sides. The names of sizes become numbers below -1, and back.
class TypeTranslator {
 public:
  api::TensorType ToPlugin(const ValueType& type);
  // An error where no tensor has such a type.
  absl::StatusOr<ValueType> FromPlugin(const api::TensorType& type) const;

 private:
  std::vector<std::string> symbols_;
};

struct CallFacts {
  std::vector<api::TensorType> inputs, outputs;
  std::vector<const Tensor*> constants;  // of inputs; null: not known
};

// Implements api::Call, or what derives from it.
template <typename Interface>
class NodeCall : public Interface {
 public:
  NodeCall(const Node& node, CallFacts facts) : node_(node), facts_(std::move(facts)) {}

  std::string node() const override { return node_.Describe(); }
  int inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int outputs() const override { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const override { return i >= 0 && node_.HasInput(i); }
  bool has_output(int i) const override { return i >= 0 && node_.HasOutput(i); }
  api::TensorType input(int i) const override { return At(facts_.inputs, i); }
  api::TensorType output(int i) const override { return At(facts_.outputs, i); }
  bool constant(int i, std::vector<int64_t>* values) const override {
    const Tensor* tensor = At(facts_.constants, i);
    if (tensor == nullptr || tensor->dtype() != DType::kInt64) return false;
    values->assign(tensor->data<int64_t>(), tensor->data<int64_t>() + tensor->elements());
    return true;
  }
  int64_t Int(const std::string& name, int64_t otherwise) const override {
    return node_.Int(name, otherwise);
  }
  double Float(const std::string& name, double otherwise) const override {
    return node_.Has(name) ? node_.Float(name, static_cast<float>(otherwise)) : otherwise;
  }
  std::string String(const std::string& name, const std::string& otherwise) const override {
    return node_.String(name, otherwise);
  }
  std::vector<int64_t> Ints(const std::string& name) const override { return node_.Ints(name); }

 private:
  template <typename T>
  static T At(const std::vector<T>& list, int i) {
    return i >= 0 && i < static_cast<int>(list.size()) ? list[i] : T();
  }

  const Node& node_;
  const CallFacts facts_;
};

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_NODE_CALL_H_
