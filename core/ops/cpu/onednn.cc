// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/onednn.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/magnitude.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

constexpr auto kF32 = dnnl::memory::data_type::f32;

// Null where oneDNN cannot make one.
dnnl_stream_t ThreadStream() {
  thread_local const dnnl::stream stream = [] {
    dnnl_stream_t raw = nullptr;
    if (dnnl_stream_create(&raw, DnnlEngine().get(), dnnl_stream_default_flags) != dnnl_success) {
      raw = nullptr;
    }
    dnnl::stream s;
    s.reset(raw);
    return s;
  }();
  return stream.get(true);
}

// Whether walking the buffer from its start meets the elements in row-major
// order, without gaps. One level of blocks is understood.
bool IsRowMajor(const DnnlDesc& desc) {
  const dnnl::memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  if (desc.get_padded_dims() != dims || desc.get_inner_nblks() > 1) return false;
  const int rank = static_cast<int>(dims.size());
  int blocked = rank;
  int64_t block = 1;
  if (desc.get_inner_nblks() == 1) {
    blocked = static_cast<int>(desc.get_inner_idxs()[0]);
    block = desc.get_inner_blks()[0];
  }
  int64_t expected = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (i == blocked && expected != 1) return false;
    const int64_t outer = i == blocked ? dims[i] / block : dims[i];
    if (i == blocked) expected *= block;
    if (outer > 1 && strides[i] != expected) return false;
    expected *= outer;
  }
  return true;
}

absl::Status DnnlStatus(dnnl_status_t status) {
  if (status == dnnl_success) return absl::OkStatus();
  const std::string what = absl::StrCat("oneDNN failed with status ", static_cast<int>(status));
  return status == dnnl_out_of_memory ? absl::ResourceExhaustedError(what)
                                      : absl::InternalError(what);
}

Kernel CopyKernel(size_t bytes) {
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [bytes](const KernelCall& call) {
    constexpr int64_t kGrain = 1 << 20;
    const char* from = static_cast<const char*>(call.inputs[0]->raw());
    char* to = static_cast<char*>(call.outputs[0]->raw());
    ParallelFor(static_cast<int64_t>(bytes), kGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, end - begin);
    });
    return absl::OkStatus();
  };
  return kernel;
}

std::shared_ptr<DnnlCall> ReorderCall(const DnnlDesc& from, const DnnlDesc& to,
                                      WorkspacePlan& plan) {
  const dnnl::reorder::primitive_desc desc(DnnlEngine(), from, DnnlEngine(), to, DnnlAttributes());
  auto call = std::make_shared<DnnlCall>(dnnl::reorder(desc));
  call->Scratchpad(desc.scratchpad_desc(), plan);
  return call;
}

// Reorders only move bytes, so beside the primitive for the team there is one for one thread,
// to be used where a team would stall, and the only one where bytes are few.
Kernel ReorderKernel(const DnnlDesc& from, const DnnlDesc& to) {
  constexpr size_t kSmallBytes = 1 << 16;
  WorkspacePlan plan;
  const auto make = [&] {
    auto call = ReorderCall(from, to, plan);
    call->Input(DNNL_ARG_FROM, from, 0);
    call->Output(DNNL_ARG_TO, to, 0);
    return call;
  };
  if (Threads() == 1) return KernelOf(make(), plan);
  if (from.get_size() <= kSmallBytes) {
    const ScopedThreads one(1);
    auto alone = make();
    return OnOneThread(KernelOf(std::move(alone), plan));
  }
  auto team = make();
  const ScopedThreads one(1);
  auto alone = make();
  Kernel kernel;
  kernel.workspace_bytes = plan.bytes();
  kernel.run = [team, alone](const KernelCall& call) {
    if (TeamNow() > 1) return team->Run(call);
    const ScopedThreads one(1);
    return alone->Run(call);
  };
  return kernel;
}

// Between descriptors of different rank: by way of row-major.
Kernel TwoStepReorder(const Shape& shape, const DnnlDesc& from, const DnnlDesc& to) {
  WorkspacePlan plan;
  const DnnlDesc plain = PlainDesc(shape);
  const size_t middle = plan.Add(plain.get_size());
  const DnnlDesc plain_from = plain.reshape(from.get_dims());
  const DnnlDesc plain_to = plain.reshape(to.get_dims());
  auto first = ReorderCall(from, plain_from, plan);
  first->Input(DNNL_ARG_FROM, from, 0);
  first->Workspace(DNNL_ARG_TO, plain_from, middle);
  auto second = ReorderCall(plain_to, to, plan);
  second->Workspace(DNNL_ARG_FROM, plain_to, middle);
  second->Output(DNNL_ARG_TO, to, 0);
  Kernel kernel;
  kernel.workspace_bytes = plan.bytes();
  kernel.run = [first, second](const KernelCall& call) -> absl::Status {
    ONWARD_RETURN_IF_ERROR(first->Run(call));
    return second->Run(call);
  };
  return kernel;
}

// y within bounds; NaN stays.
void BoundAll(const ActivationBounds& bounds, float* y, int64_t floats) {
  constexpr int64_t kGrain = 32768;
  const Vec<float> low = Splat(bounds.low), high = Splat(bounds.high);
  const auto bound = [&](int64_t begin, int64_t end) {
    ForVecs<float>(end - begin, [&](int64_t i, int count) {
      float* at = y + begin + i;
      Store(at, Within(low, Load(at, count), high), count);
    });
  };
  // The end of y is in the caches.
  ParallelFor(floats, kGrain, bound, Walk::kBackwards);
}

// Whether sums of so many products of inputs 0 and 1, plus inputs 2 and kResidual, are
// finite, by the largest numbers among them.
class SumBound {
 public:
  SumBound(const KernelRequest& r, const std::vector<Layout>& layouts, int64_t products)
      : products_(static_cast<double>(products)) {
    for (int i : {0, 1, 2, kResidual}) {
      if (!r.HasInput(i)) continue;
      const bool opaque = i < static_cast<int>(layouts.size()) && layouts[i] != nullptr;
      const size_t bytes = opaque ? layouts[i]->bytes() : TensorBytes(DType::kFloat, r.in(i));
      floats_[i] = static_cast<int64_t>(bytes / sizeof(float));
    }
  }

  // To be looked at.
  int64_t floats() const { return std::accumulate(floats_.begin(), floats_.end(), int64_t{0}); }

  bool IsFinite(const KernelCall& call) const {
    std::array<double, kResidual + 1> largest{};
    for (size_t i = 0; i < floats_.size(); ++i) {
      if (floats_[i] == 0) continue;
      largest[i] = SharedLargestMagnitude(call.inputs[i]->data<float>(), floats_[i]);
    }
    return products_ * largest[0] * largest[1] + largest[2] + largest[kResidual] <
           std::numeric_limits<float>::max() / 2;
  }

 private:
  double products_;
  std::array<int64_t, kResidual + 1> floats_{};
};

bool SameLayouts(const std::vector<Layout>& a, const std::vector<Layout>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameLayout);
}

}  // namespace

const dnnl::engine& DnnlEngine() {
  static const auto* const engine = [] {
    // With AVX-512 oneDNN lays channels in blocks of 16, which none of the own kernels shares:
    // reorders between the two cost more than the wider instructions give. It also
    // keeps results the same on every machine. Refused only once primitives exist.
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *engine;
}

bool DnnlLayout::Equals(const LayoutInfo& other) const {
  const auto* dnnl = dynamic_cast<const DnnlLayout*>(&other);
  return dnnl != nullptr && dnnl->desc_ == desc_;
}

bool DnnlLayout::dense() const {
  size_t bytes = sizeof(float);
  for (int64_t d : desc_.get_dims()) bytes *= d;
  return desc_.get_padded_dims() == desc_.get_dims() && desc_.get_size() == bytes;
}

std::string DnnlLayout::ToString() const {
  std::string text = absl::StrCat("dnnl[", absl::StrJoin(desc_.get_dims(), "x"), " strides ",
                                  absl::StrJoin(desc_.get_strides(), ","));
  for (int i = 0; i < desc_.get_inner_nblks(); ++i) {
    absl::StrAppend(&text, i == 0 ? " blocks " : ",", desc_.get_inner_blks()[i], "@",
                    desc_.get_inner_idxs()[i]);
  }
  return absl::StrCat(text, "]");
}

dnnl::memory::dims DnnlDims(const Shape& shape) {
  if (shape.rank() == 0) return {1};
  return {shape.begin(), shape.end()};
}

DnnlDesc PlainDesc(const Shape& shape) {
  const Shape::Dims strides = shape.Strides();
  if (shape.rank() == 0) return DnnlDesc({1}, kF32, dnnl::memory::dims{1});
  return DnnlDesc(DnnlDims(shape), kF32, dnnl::memory::dims(strides.begin(), strides.end()));
}

DnnlDesc AnyDesc(const Shape& shape) { return DnnlDesc(DnnlDims(shape), kF32, DnnlTag::any); }

DnnlDesc BlockedDesc(const Shape& shape, int block) {
  if (block == 1) return PlainDesc(shape);
  constexpr DnnlTag kTags[2][3] = {{DnnlTag::nCw8c, DnnlTag::nChw8c, DnnlTag::nCdhw8c},
                                   {DnnlTag::nCw16c, DnnlTag::nChw16c, DnnlTag::nCdhw16c}};
  return DnnlDesc(DnnlDims(shape), kF32, kTags[block == 16 ? 1 : 0][shape.rank() - 3]);
}

Layout LayoutOf(const DnnlDesc& desc) {
  if (IsRowMajor(desc)) return nullptr;
  return std::make_shared<DnnlLayout>(desc);
}

DnnlDesc DescOf(const Shape& shape, const Layout& layout) {
  const auto* dnnl = dynamic_cast<const DnnlLayout*>(layout.get());
  return dnnl == nullptr ? PlainDesc(shape) : dnnl->desc();
}

int ChannelBlock(const Shape& shape, const Layout& layout) {
  if (layout == nullptr) return 1;
  const auto* dnnl = dynamic_cast<const DnnlLayout*>(layout.get());
  if (dnnl == nullptr || shape.rank() < 3 || shape.rank() > 5) return 0;
  for (int block : {8, 16}) {
    if (dnnl->desc() == BlockedDesc(shape, block)) return block;
  }
  return 0;
}

DnnlDesc StridedDescOf(const Shape& shape, const Layout& layout) {
  const DnnlDesc desc = DescOf(shape, layout);
  const bool strided = desc.get_inner_nblks() == 0 && desc.get_padded_dims() == desc.get_dims() &&
                       desc.get_dims() == DnnlDims(shape);
  return strided ? desc : DnnlDesc();
}

Layout PermutedLayout(const Shape& shape, const Layout& layout, absl::Span<const int64_t> perm) {
  // oneDNN says where each old axis goes, ONNX where each new one comes from.
  std::vector<int> target(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) target[perm[i]] = static_cast<int>(i);
  return LayoutOf(StridedDescOf(shape, layout).permute_axes(target));
}

absl::StatusOr<Kernel> MakeDnnlReorder(DType dtype, const Shape& shape, const Layout& from,
                                       const Layout& to) {
  if (SameLayout(from, to)) {
    return CopyKernel(from == nullptr ? TensorBytes(dtype, shape) : from->bytes());
  }
  for (const Layout& layout : {from, to}) {
    if (layout != nullptr && dynamic_cast<const DnnlLayout*>(layout.get()) == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("no reorder for the layout ", layout->ToString()));
    }
  }
  if (dtype != DType::kFloat) {
    return absl::UnimplementedError(
        absl::StrCat("no layouts for values of type ", std::string(DTypeName(dtype))));
  }
  try {
    DnnlDesc source = DescOf(shape, from), target = DescOf(shape, to);
    if (source.get_dims() == target.get_dims()) return ReorderKernel(source, target);
    if (from == nullptr) return ReorderKernel(source.reshape(target.get_dims()), target);
    if (to == nullptr) return ReorderKernel(source, target.reshape(source.get_dims()));
    return TwoStepReorder(shape, source, target);
  } catch (const dnnl::error& e) {
    return absl::InternalError(absl::StrCat("reorder of ", shape.ToString(), ": ", e.what()));
  }
}

dnnl::primitive_attr DnnlAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::primitive_attr Followers(const KernelRequest& r, const DnnlDesc& result, bool activation) {
  dnnl::primitive_attr attributes = DnnlAttributes();
  dnnl::post_ops followers;
  if (r.HasInput(kResidual)) followers.append_binary(dnnl::algorithm::binary_add, result);
  const auto bounds = ReadActivation(r.node);
  if (activation && bounds.has_value()) {
    if (bounds->is_relu) {
      followers.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    } else {
      followers.append_eltwise(dnnl::algorithm::eltwise_clip, bounds->low, bounds->high);
    }
  }
  attributes.set_post_ops(followers);
  return attributes;
}

absl::StatusOr<Kernel> WithActivation(
    const KernelRequest& r, const DnnlDesc& result, int64_t products,
    absl::FunctionRef<absl::StatusOr<Kernel>(bool activation)> make) {
  ONWARD_ASSIGN_OR_RETURN(Kernel plain, make(false));
  const std::optional<ActivationBounds> bounds = ReadActivation(r.node);
  if (!bounds.has_value()) return plain;
  const bool keeps_zero = bounds->low <= 0 && bounds->high >= 0;
  if (!keeps_zero && result.get_padded_dims() != result.get_dims()) {
    return NodeUnimplemented(r.node, "bounds that the padding of channel blocks is not within");
  }
  const auto floats = static_cast<int64_t>(result.get_size() / sizeof(float));
  plain.run = [run = std::move(plain.run), floats,
               bounds = *bounds](const KernelCall& call) -> absl::Status {
    ONWARD_RETURN_IF_ERROR(run(call));
    BoundAll(bounds, call.outputs[0]->data<float>(), floats);
    return absl::OkStatus();
  };
  const SumBound sum(r, plain.input_layouts, products);
  if (sum.floats() > 2 * floats) return plain;
  absl::StatusOr<Kernel> fused = make(true);
  if (!fused.ok() || !SameLayouts(fused->input_layouts, plain.input_layouts)) return plain;
  Kernel kernel = *fused;
  kernel.workspace_bytes = std::max(fused->workspace_bytes, plain.workspace_bytes);
  kernel.run = [sum, fused = std::move(fused->run),
                plain = std::move(plain.run)](const KernelCall& call) {
    return sum.IsFinite(call) ? fused(call) : plain(call);
  };
  return kernel;
}

void DnnlCall::Bind(int argument, const DnnlDesc& desc, Source source, size_t index) {
  bindings_.push_back({source, index, dnnl::memory(desc, DnnlEngine(), DNNL_MEMORY_NONE)});
  arguments_.push_back({argument, bindings_.back().memory.get()});
}

void DnnlCall::Input(int argument, const DnnlDesc& desc, int input) {
  Bind(argument, desc, Source::kInput, input);
}

void DnnlCall::Output(int argument, const DnnlDesc& desc, int output) {
  Bind(argument, desc, Source::kOutput, output);
}

void DnnlCall::Workspace(int argument, const DnnlDesc& desc, size_t offset) {
  Bind(argument, desc, Source::kWorkspace, offset);
}

void DnnlCall::Scratchpad(const DnnlDesc& desc, WorkspacePlan& plan) {
  if (desc.get_size() > 0) Workspace(DNNL_ARG_SCRATCHPAD, desc, plan.Add(desc.get_size()));
}

absl::Status DnnlCall::Run(const KernelCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Binding& b : bindings_) {
    // oneDNN reads inputs only; its handles are not const.
    void* data = b.source == Source::kInput    ? const_cast<void*>(call.inputs[b.index]->raw())
                 : b.source == Source::kOutput ? call.outputs[b.index]->raw()
                                               : At<void>(call.workspace, b.index);
    ONWARD_RETURN_IF_ERROR(DnnlStatus(dnnl_memory_set_data_handle(b.memory.get(), data)));
  }
  const dnnl_stream_t stream = ThreadStream();
  if (stream == nullptr) return DnnlStatus(dnnl_out_of_memory);
  ONWARD_RETURN_IF_ERROR(DnnlStatus(dnnl_primitive_execute(
      primitive_.get(), stream, static_cast<int>(arguments_.size()), arguments_.data())));
  return DnnlStatus(dnnl_stream_wait(stream));
}

Kernel KernelOf(std::shared_ptr<DnnlCall> call, const WorkspacePlan& plan) {
  Kernel kernel;
  kernel.workspace_bytes = plan.bytes();
  kernel.run = [call = std::move(call)](const KernelCall& c) { return call->Run(c); };
  return kernel;
}

Kernel OnOneThread(Kernel kernel) {
  kernel.run = [run = std::move(kernel.run)](const KernelCall& call) {
    const ScopedThreads one(1);
    return run(call);
  };
  return kernel;
}

absl::Status CheckOutputShape(const KernelRequest& r, int i, const Shape& expected) {
  if (!r.HasOutput(i) || !r.outputs[i].shape.has_value() || r.out(i) == expected) {
    return absl::OkStatus();
  }
  return NodeError(r.node,
                   absl::StrCat("output ", i, " is declared with shape ", r.out(i).ToString(),
                                ", its inputs give ", expected.ToString()));
}

bool FitsDnnl(const Shape& shape) {
  for (int64_t d : shape) {
    if (d == 0) return false;
  }
  return shape.elements() <= std::numeric_limits<int32_t>::max();
}

}  // namespace onward
