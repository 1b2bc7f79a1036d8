// SPDX-License-Identifier: Apache-2.0
// A plan as it grows: values, steps, and the reorders between them.
#ifndef ONWARD_CORE_RUNTIME_PLAN_PLAN_BUILDER_H_
#define ONWARD_CORE_RUNTIME_PLAN_PLAN_BUILDER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/runtime/compile/compile_options.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class PlanBuilder {
 public:
  explicit PlanBuilder(const CompileOptions& options);

  Plan& plan() { return *plan_; }
  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<Plan>& shared() const { return plan_; }
  PlanValue& value(int id) { return plan_->values[id]; }
  const PlanValue& value(int id) const { return plan_->values[id]; }

  // By the name that the graph has for it; -1: there is none.
  int Find(const std::string& name) const;
  const absl::flat_hash_map<std::string, int>& ids() const { return ids_; }
  void Name(const std::string& name, int id) { ids_[name] = id; }

  int AddSource(const std::string& name, DType dtype, std::optional<Shape> shape,
                PlanValue::Storage storage);
  void AddConstant(const std::string& name, Tensor value);
  // A step whose outputs are made when it runs. It takes its inputs from where they are, or else
  // from the host.
  PlanStep& AddLate(const Node& node, Kernel kernel, std::shared_ptr<const Control> control,
                    const std::vector<int>& inputs, bool anywhere = false);
  // `device` is where it runs, `why` not on an accelerator that is wanted.
  absl::Status AddStep(const Node& node, Kernel kernel, const std::vector<int>& inputs,
                       const std::vector<ValueSpec>& outputs, int device = kHost,
                       std::string why = "");
  // The same value in another layout: a reorder step, made once per layout.
  absl::StatusOr<int> InLayout(int id, const Layout& layout);
  // The same value, plain, in the memory of a device: a transfer, made once per device.
  int At(int id, int device);
  int Plain(int id);  // where it is
  // Says that two values in the memory of different devices are the same.
  void Twin(int id, int other);
  // The values that are the same on other devices.
  const std::vector<int>& TwinsOf(int id) { return transferred_[id]; }
  int OnHost(int id) { return At(id, kHost); }
  // A copy of a value in memory of its own.
  int Materialize(int id);

 private:
  int NewValue(std::string name, DType dtype, std::optional<Shape> shape);
  bool CanView(int input, const ValueSpec& output) const;
  // Plain on an accelerator; in the given layout on the host.
  absl::StatusOr<int> InputAt(int id, int device, const Layout& layout);
  int Transfer(int id, int device);
  absl::Status ReorderConstant(const PlanValue& source, const Kernel& kernel, const Layout& layout,
                               int copy);

  const CompileOptions& options_;
  std::shared_ptr<Plan> plan_;
  absl::flat_hash_map<std::string, int> ids_;
  absl::flat_hash_map<int, std::vector<int>> reordered_;
  absl::flat_hash_map<int, std::vector<int>> transferred_;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_PLAN_BUILDER_H_
