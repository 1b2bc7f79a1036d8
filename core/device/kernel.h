// SPDX-License-Identifier: Apache-2.0
// The contract between the runtime and a device's kernels. A factory sees a
// node with concrete types once, at compile time, and prepares everything; the
// prepared kernel then only runs.
#ifndef ONWARD_CORE_DEVICE_KERNEL_H_
#define ONWARD_CORE_DEVICE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/run_state.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace onward {

// How a buffer orders its elements. Null pointer: plain row-major. Otherwise
// opaque to everything but the library that made it; the logical shape of the
// value does not change.
class LayoutInfo {
 public:
  virtual ~LayoutInfo() = default;
  virtual bool Equals(const LayoutInfo& other) const = 0;
  virtual size_t bytes() const = 0;
  // True if the buffer holds exactly the elements, permuted: then element-wise
  // kernels may walk it as a flat array.
  virtual bool dense() const = 0;
  // True if it is plain but for the order of the axes: what a transpose left
  // behind, not what a kernel asked for.
  virtual bool permuted() const = 0;
  virtual std::string ToString() const = 0;
};
using Layout = std::shared_ptr<const LayoutInfo>;
bool SameLayout(const Layout& a, const Layout& b);

// A value as a kernel factory sees it.
struct ValueSpec {
  DType dtype = DType::kUndefined;  // undefined: omitted
  std::optional<Shape> shape;       // nullopt: known only at run time
  // Inputs: how it is produced. Outputs: what its only reader would like best,
  // which a kernel may ignore.
  Layout layout;
  const Tensor* constant = nullptr;  // plain row-major value, where it never changes
  bool present() const { return dtype != DType::kUndefined; }
};

// What a kernel on values of any kind is called with. Inputs may borrow their memory:
// what outlives the call is kept by Owned().
struct ValueCall {
  absl::Span<const Value* const> inputs;  // null: omitted
  absl::Span<Value* const> outputs;       // null: not wanted
};

class Arrangements;
class ConstantInput;

struct KernelRequest {
  const Node& node;
  absl::Span<const ValueSpec> inputs;
  absl::Span<const ValueSpec> outputs;
  const std::map<std::string, int>& opsets;
  Arrangements* arrangements = nullptr;  // what is shared with other plans; may be null

  bool HasInput(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i].present(); }
  bool HasOutput(int i) const {
    return i < static_cast<int>(outputs.size()) && outputs[i].present();
  }
  const Shape& in(int i) const { return *inputs[i].shape; }
  const Shape& out(int i) const { return *outputs[i].shape; }
  // Input `i` where it never changes (arrangements.h).
  ConstantInput ConstantAt(int i) const;
};

// What a kernel that writes over variables remembers of them from one run to the next.
struct UpdateNotes {
  bool hold = false;               // nobody else has written the variables since
  std::vector<double> magnitudes;  // largest absolute values, of what the kernel likes
};

struct KernelCall {
  // Memory of the kernel's device, but for inputs of which the shape alone counts
  // (OperatorSet::ShapeOnly): they may be anywhere. Null for omitted inputs/outputs. Tensors in an
  // opaque layout have their logical shape; raw() points at the reordered bytes.
  absl::Span<const Tensor* const> inputs;
  // Allocated, except where the spec had no shape: then the kernel assigns
  // *outputs[i] = Tensor(dtype, shape).
  absl::Span<Tensor* const> outputs;
  void* workspace = nullptr;
  RandomState random;
  UpdateNotes* notes = nullptr;  // where the outputs are variables
  // What the device calls the order of its work (a cudaStream_t): the kernel queues what it does
  // there and returns. Null on devices that work at once.
  void* stream = nullptr;
  // In the device's memory, and null where nobody cares:
  const RandomState* random_there = nullptr;  // instead of `random`, which queued work may outlive
  Fault* fault = nullptr;
  const uint32_t* stop = nullptr;  // where it is not zero, a kernel of phase two writes nothing
  uint32_t step = 0;               // for Fault
};

// One operand of a run of elements: it advances with the output, or stays.
struct Operand {
  const void* data;
  bool repeats;
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

// Computes n contiguous elements of the output.
using RunBody = std::function<void(absl::Span<const Operand> operands, void* out, int64_t n)>;

// What an element-wise kernel computes, so that several can run as one pass.
struct Pointwise {
  RunBody body;             // on the host; empty where the device runs a chain as data (`code`)
  std::vector<int> inputs;  // of the node, in the order of the body's operands
  int64_t grain = 0;        // elements that are worth a thread
  // What the device itself calls the operator, and the numbers that its attributes give.
  int code = 0;
  std::vector<double> parameters = {};
};

// One operator of a chain of element-wise operators.
struct ChainStep {
  std::shared_ptr<const Pointwise> op;
  // Where its operands come from: k >= 0 is input k of the chain, ~k the result
  // of step k.
  std::vector<int> operands;
  DType dtype = DType::kUndefined;  // of the result
  int output = -1;                  // of the chain; -1: used inside only
};

// Inputs that are `leading` ones followed by `input_kinds` lists of n tensors
// each, outputs that are `output_kinds` lists: calls that share the leading inputs
// can become one with longer lists.
struct TensorLists {
  int leading, input_kinds, output_kinds;
};

struct Kernel {
  std::function<absl::Status(const KernelCall&)> run;
  // Instead of `run`, where sequences, optionals or maps go in or out.
  std::function<absl::Status(const ValueCall&)> run_values;
  // Wanted layouts of the inputs (missing = plain) and given ones of the
  // outputs (missing = plain). The runtime reorders.
  std::vector<Layout> input_layouts;
  std::vector<Layout> output_layouts;
  size_t workspace_bytes = 0;  // 64-byte aligned scratch, contents undefined
  // (output, input): the kernel may write this output over this input, element
  // for element. Used for updating variables in place.
  std::vector<std::pair<int, int>> in_place;
  // (output 0) is input 0's bytes under another shape or layout: no work at all.
  bool is_view = false;
  // Cannot fail at run time (finite arithmetic on prepared buffers).
  bool infallible = false;
  // Whether a run of this call would leave finite numbers only; if not, it sets bad[o] for
  // each output o that would hold others. Nothing else is written. Floating-point
  // variables are written in place only by kernels that can tell.
  std::function<bool(const KernelCall& call, bool* bad)> would_be_finite;
  // The same on a device with memory of its own, where it is queued: bad[o] (in the device's
  // memory) becomes 1 for each such output o. A kernel that has it heeds KernelCall::stop.
  std::function<absl::Status(const KernelCall& call, uint32_t* bad)> flag_infinite;
  // What a Fault of this kernel is called ("index", "label"); null: it finds none.
  const char* fault = nullptr;
  // Set by element-wise kernels with one output.
  std::shared_ptr<const Pointwise> pointwise;
  // Set where the number of tensors is free.
  std::optional<TensorLists> lists;
};

// Unimplemented means "not this variant": the next one in the table is tried.
using KernelFactory = std::function<absl::StatusOr<Kernel>(const KernelRequest&)>;

// The shape of an output, for a request whose inputs all have shapes: what a kernel made for it
// will write. An error where there is none, or where it takes the contents of inputs that are
// not constant.
using ShapeRule = std::function<absl::StatusOr<Shape>(const KernelRequest& request, int output)>;

class KernelTable {
  struct ByName {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const int domains = std::string_view(a.first).compare(b.first);
      return domains != 0 ? domains < 0 : a.second < b.second;
    }
  };

 public:
  struct Entry {
    std::string provider;  // "onednn", "eigen", "reference"
    int since = 1;         // lowest schema version this entry serves
    KernelFactory factory;
    std::string types;  // for `onward ops`: "float, double"
    // The factory makes kernels that run on values. It sees no types: they are there
    // when the kernel runs.
    bool on_values = false;
    // Of the operator, whichever of its entries has it; null: the standard is asked.
    ShapeRule shape = nullptr;
  };
  // Entries are tried in the order they were added.
  void Add(std::string_view op, Entry entry, std::string_view domain = "");
  const std::vector<Entry>* Find(std::string_view op, std::string_view domain) const;
  // Null where no entry of the operator has one.
  const ShapeRule* FindShape(std::string_view op, std::string_view domain) const;
  using Entries = std::map<std::pair<std::string, std::string>, std::vector<Entry>, ByName>;
  const Entries& all() const { return entries_; }

 private:
  Entries entries_;  // by (domain, op)
};

// "node 'conv1' (Conv): message" with code InvalidArgument / Unimplemented.
absl::Status NodeError(const Node& node, std::string_view message);
absl::Status NodeUnimplemented(const Node& node, std::string_view message);

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_KERNEL_H_
