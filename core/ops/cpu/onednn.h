// SPDX-License-Identifier: Apache-2.0
// oneDNN in this code base: the engine, its memory descriptors as layouts, and
// primitives prepared at compile time. Only float goes through oneDNN.
#ifndef ONWARD_CORE_OPS_CPU_ONEDNN_H_
#define ONWARD_CORE_OPS_CPU_ONEDNN_H_

#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/kernel.h"
#include "core/device/plan/followers.h"
#include "core/ops/cpu/adapt.h"

namespace onward {

using DnnlDesc = dnnl::memory::desc;
using DnnlTag = dnnl::memory::format_tag;

const dnnl::engine& DnnlEngine();

// A layout that oneDNN describes. The descriptor may have another rank than the
// value (weights of a grouped convolution have one more); the row-major order
// of its dims is that of the value.
class DnnlLayout final : public LayoutInfo {
 public:
  explicit DnnlLayout(DnnlDesc desc) : desc_(std::move(desc)) {}
  const DnnlDesc& desc() const { return desc_; }

  bool Equals(const LayoutInfo& other) const override;
  size_t bytes() const override { return desc_.get_size(); }
  bool dense() const override;
  bool permuted() const override { return desc_.get_inner_nblks() == 0; }
  std::string ToString() const override;

 private:
  DnnlDesc desc_;
};

dnnl::memory::dims DnnlDims(const Shape& shape);
// Row-major.
DnnlDesc PlainDesc(const Shape& shape);
// Left to the primitive to choose.
DnnlDesc AnyDesc(const Shape& shape);
// Channels per block of AVX2's kernels, oneDNN's and our own.
inline constexpr int kChannelBlock = 8;
// [N, C, spatial...] with channels in blocks of 8 or 16 (innermost), the last
// one padded with zeros; for ranks 3 to 5. A block of 1 is PlainDesc.
DnnlDesc BlockedDesc(const Shape& shape, int block);

// The layout a descriptor stands for: null where its bytes are row-major.
Layout LayoutOf(const DnnlDesc& desc);
// The descriptor of a value of this shape in this layout.
DnnlDesc DescOf(const Shape& shape, const Layout& layout);
// 1 for the plain layout, 8 or 16 for that of BlockedDesc(shape, .), else 0.
int ChannelBlock(const Shape& shape, const Layout& layout);

// The descriptor of a value whose bytes are in no blocks: plain, or a permuted
// view of something plain. Empty for others.
DnnlDesc StridedDescOf(const Shape& shape, const Layout& layout);
// The layout that a value of this layout has after a transpose of its axes that
// moves no bytes.
Layout PermutedLayout(const Shape& shape, const Layout& layout, absl::Span<const int64_t> perm);

// Copies a value from one layout to another. Types other than float have the
// plain layout only.
absl::StatusOr<Kernel> MakeDnnlReorder(DType dtype, const Shape& shape, const Layout& from,
                                       const Layout& to);

// Attributes of every primitive: scratchpads come from the kernel's workspace.
dnnl::primitive_attr DnnlAttributes();

// Attributes of a primitive that also does what a fused node adds to it: input kResidual,
// stored as `result`, and, if asked for, an activation, in oneDNN's way: NaN becomes a bound.
inline constexpr int kResidualArgument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
dnnl::primitive_attr Followers(const KernelRequest& request, const DnnlDesc& result,
                               bool activation);

// A convolution or product and the activation that its node states, so that NaN stays NaN.
// make(activation) gives the kernel with oneDNN's activation, or with none. Each number of
// the result, stored as `result`, is the sum of so many products of inputs 0 and 1, of a bias
// (input 2) and of a residual. oneDNN's activation serves where the largest of these, if they
// are quickly found, say that the sum is finite; else the result is bounded afterwards.
absl::StatusOr<Kernel> WithActivation(
    const KernelRequest& request, const DnnlDesc& result, int64_t products,
    absl::FunctionRef<absl::StatusOr<Kernel>(bool activation)> make);

// A primitive with its arguments bound once. Run points them at the tensors of
// a call and executes; concurrent calls wait for each other.
class DnnlCall {
 public:
  explicit DnnlCall(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  void Input(int argument, const DnnlDesc& desc, int input);
  void Output(int argument, const DnnlDesc& desc, int output);
  void Workspace(int argument, const DnnlDesc& desc, size_t offset);
  // DNNL_ARG_SCRATCHPAD of the given size, taken from `plan`.
  void Scratchpad(const DnnlDesc& desc, WorkspacePlan& plan);

  absl::Status Run(const KernelCall& call);

 private:
  enum class Source { kInput, kOutput, kWorkspace };
  struct Binding {
    Source source;
    size_t index;  // of the input or output; offset in the workspace
    dnnl::memory memory;
  };
  void Bind(int argument, const DnnlDesc& desc, Source source, size_t index);

  dnnl::primitive primitive_;
  std::vector<Binding> bindings_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::mutex mutex_;
};

// A kernel that is one primitive.
Kernel KernelOf(std::shared_ptr<DnnlCall> call, const WorkspacePlan& plan);

// oneDNN's last resort for a descriptor is a loop over scalars, far slower than
// our own plain kernels.
template <typename PrimitiveDesc>
bool IsSlowDnnl(const PrimitiveDesc& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") != std::string_view::npos;
}

// The same on one thread, whatever the team. Made under ScopedThreads(1): a primitive keeps the
// number of threads it was made for.
Kernel OnOneThread(Kernel kernel);

// Whether oneDNN's kernels, which count in int, may be given this shape: no
// dimension is zero and there are fewer than 2^31 elements.
bool FitsDnnl(const Shape& shape);

// An error if output i is declared with another shape than its inputs give.
absl::Status CheckOutputShape(const KernelRequest& request, int i, const Shape& expected);

// Runs `make`, which returns StatusOr<Kernel>; what oneDNN throws becomes
// "not this variant".
template <typename F>
absl::StatusOr<Kernel> TryDnnl(const Node& node, const F& make) {
  try {
    return make();
  } catch (const dnnl::error& e) {
    return NodeUnimplemented(node, std::string("oneDNN: ") + e.what());
  }
}

// Multiplications that start a second thread.
inline constexpr int64_t kSmallDnnlWork = 1 << 18;

// The same for a primitive of so many multiplications; few of them stay on one thread.
template <typename F>
absl::StatusOr<Kernel> TryDnnl(const Node& node, int64_t multiplications, const F& make) {
  if (Threads() == 1 || multiplications > kSmallDnnlWork) return TryDnnl(node, make);
  const ScopedThreads one(1);
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, TryDnnl(node, make));
  return OnOneThread(std::move(kernel));
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_ONEDNN_H_
