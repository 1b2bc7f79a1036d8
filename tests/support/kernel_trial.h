// SPDX-License-Identifier: Apache-2.0
// One kernel of the table on one call, whatever the table would have chosen: asked for as the
// runtime asks, with inputs in a given layout, and run on memory full of NaN.
#ifndef ONWARD_TESTS_SUPPORT_KERNEL_TRIAL_H_
#define ONWARD_TESTS_SUPPORT_KERNEL_TRIAL_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace onward {

struct KernelInputs {
  Node node;
  std::vector<Tensor> values;  // plain; undefined where omitted
  std::vector<bool> constant;  // known to the kernel when it is made
  std::vector<ValueSpec> outputs;
};

// How the values of a call lie in memory.
struct Placing {
  std::string name;
  // The layout that input i comes in; null: plain.
  std::function<Layout(int i, DType dtype, const Shape& shape)> inputs;
  // What the reader of an output would like.
  std::function<Layout(DType dtype, const Shape& shape)> wish;
};

// Plain, channels in blocks of 8 and 16, some inputs plain and some not, channels last, and
// plain inputs with a reader that wants the last axis first.
const std::vector<Placing>& Placings();

// What the nodes of the tables are written for.
const std::map<std::string, int>& TrialOpsets();

class KernelTrial {
 public:
  KernelTrial(const KernelTable::Entry& entry, const KernelInputs& inputs, const Placing& placing);

  // Unimplemented: not this variant.
  const absl::Status& status() const { return kernel_.status(); }
  // Whether any value lies otherwise than in the plain placing.
  bool moved() const { return moved_; }
  // Outputs, plain. An error too if the padding of a layout is not zero.
  absl::StatusOr<std::vector<Tensor>> Run() { return Run(-1, -1); }
  // With an output in the memory of an input, for each pair that the kernel allows.
  const std::vector<std::pair<int, int>>& overwrites() const { return overwrites_; }
  absl::StatusOr<std::vector<Tensor>> Run(int output, int over_input);

 private:
  const KernelInputs& inputs_;
  std::vector<Layout> given_;
  absl::StatusOr<Kernel> kernel_;
  bool moved_ = false;
  std::vector<std::pair<int, int>> overwrites_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_KERNEL_TRIAL_H_
