// SPDX-License-Identifier: Apache-2.0
// Convolutions of floats through oneDNN. Layouts are left to oneDNN, with one
// preference: activations and their gradients are plain or in channel blocks,
// so that neighbours agree without reorders.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/conv/conv.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

using Forward = dnnl::convolution_forward::primitive_desc;
using Data = dnnl::convolution_backward_data::primitive_desc;
using Weights = dnnl::convolution_backward_weights::primitive_desc;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
// Windows and pads beyond this are left to the plain kernels: oneDNN computes
// byte offsets from them in int.
constexpr int64_t kMaxExtent = 1 << 16;

// A geometry in oneDNN's words.
struct Problem {
  Shape x, w, y;  // w has a leading axis for groups, if there are several
  int64_t out_channels;
  dnnl::memory::dims strides, dilates, pads_begin, pads_end;

  explicit Problem(const ConvGeometry& g) : x(g.x()), w(g.w()), y(g.y()) {
    out_channels = g.out_channels;
    if (g.groups > 1) {
      const Shape flat = w;
      w = Shape{g.groups, flat[0] / g.groups};
      for (int i = 1; i < flat.rank(); ++i) w.push_back(flat[i]);
    }
    const Window& win = g.window;
    for (int i = 0; i < win.rank(); ++i) {
      strides.push_back(win.strides[i]);
      dilates.push_back(win.dilations[i] - 1);
      pads_begin.push_back(win.pads_begin[i]);
      // oneDNN wants the output size to follow from the pads; that of a
      // ConvTranspose need not.
      const int64_t rest = win.pads_end[i] - win.reached_pad_end(i);
      const bool follows = rest >= 0 && rest < win.strides[i];
      pads_end.push_back(follows ? win.pads_end[i] : win.reached_pad_end(i));
    }
  }

  DnnlDesc bias(bool wanted) const { return wanted ? PlainDesc({out_channels}) : DnnlDesc(); }

  Forward MakeForward(const DnnlDesc& dx, const DnnlDesc& dy, bool with_bias,
                      const dnnl::primitive_attr& attributes = DnnlAttributes()) const {
    return Forward(DnnlEngine(), dnnl::prop_kind::forward_training, kDirect, dx, AnyDesc(w),
                   bias(with_bias), dy, strides, dilates, pads_begin, pads_end, attributes,
                   /*allow_empty=*/true);
  }
  // A backward descriptor takes a forward one as a hint.
  Forward Hint() const { return MakeForward(AnyDesc(x), AnyDesc(y), false); }
  Data MakeData(const DnnlDesc& dx, const DnnlDesc& dy, const Forward& hint) const {
    return Data(DnnlEngine(), kDirect, dx, AnyDesc(w), dy, strides, dilates, pads_begin, pads_end,
                hint, DnnlAttributes(), /*allow_empty=*/true);
  }
  Weights MakeWeights(const DnnlDesc& dx, const DnnlDesc& dy, bool with_bias,
                      const Forward& hint) const {
    return Weights(DnnlEngine(), kDirect, dx, AnyDesc(w), bias(with_bias), dy, strides, dilates,
                   pads_begin, pads_end, hint, DnnlAttributes(), /*allow_empty=*/true);
  }
};

int64_t Multiplications(const ConvGeometry& g) {
  return g.y().elements() / g.out_channels * g.w().elements();
}

DnnlDesc XOf(const Forward& d) { return d.src_desc(); }
DnnlDesc YOf(const Forward& d) { return d.dst_desc(); }
DnnlDesc XOf(const Data& d) { return d.diff_src_desc(); }
DnnlDesc YOf(const Data& d) { return d.diff_dst_desc(); }
DnnlDesc XOf(const Weights& d) { return d.src_desc(); }
DnnlDesc YOf(const Weights& d) { return d.diff_dst_desc(); }

template <typename PrimitiveDesc>
bool IsFast(const PrimitiveDesc& desc) {
  return desc.get(true) != nullptr && !IsSlowDnnl(desc);
}

// make(x, y) gives the primitive descriptor for these activation descriptors.
// oneDNN's free choice is taken if it is plain or blocked; otherwise (its
// channels-last kernels) blocks are tried. The result may be empty.
template <typename Make>
auto Choose(const Problem& p, const Make& make) {
  auto chosen = make(AnyDesc(p.x), AnyDesc(p.y));
  if (!IsFast(chosen)) return decltype(chosen)();
  if (ChannelBlock(p.x, LayoutOf(XOf(chosen))) != 0 &&
      ChannelBlock(p.y, LayoutOf(YOf(chosen))) != 0) {
    return chosen;
  }
  auto blocked = make(BlockedDesc(p.x, kChannelBlock), BlockedDesc(p.y, kChannelBlock));
  return IsFast(blocked) ? blocked : chosen;
}

// dY (input 0) and W (input 1) to dX (output 0).
Kernel DataKernel(const Data& desc) {
  WorkspacePlan plan;
  auto call = std::make_shared<DnnlCall>(dnnl::convolution_backward_data(desc));
  call->Input(DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), 0);
  call->Input(DNNL_ARG_WEIGHTS, desc.weights_desc(), 1);
  call->Output(DNNL_ARG_DIFF_SRC, desc.diff_src_desc(), 0);
  call->Scratchpad(desc.scratchpad_desc(), plan);
  Kernel kernel = KernelOf(std::move(call), plan);
  kernel.input_layouts = {LayoutOf(desc.diff_dst_desc()), LayoutOf(desc.weights_desc())};
  kernel.output_layouts = {LayoutOf(desc.diff_src_desc())};
  return kernel;
}

// X, W, and where the node has them a bias and a residual, to Y.
Kernel ForwardKernel(const KernelRequest& r, const Forward& desc) {
  WorkspacePlan plan;
  auto call = std::make_shared<DnnlCall>(dnnl::convolution_forward(desc));
  call->Input(DNNL_ARG_SRC, desc.src_desc(), 0);
  call->Input(DNNL_ARG_WEIGHTS, desc.weights_desc(), 1);
  if (r.HasInput(2)) call->Input(DNNL_ARG_BIAS, desc.bias_desc(), 2);
  if (r.HasInput(kResidual)) call->Input(kResidualArgument, desc.dst_desc(), kResidual);
  call->Output(DNNL_ARG_DST, desc.dst_desc(), 0);
  call->Scratchpad(desc.scratchpad_desc(), plan);
  Kernel kernel = KernelOf(std::move(call), plan);
  kernel.input_layouts = {LayoutOf(desc.src_desc()), LayoutOf(desc.weights_desc()), nullptr,
                          LayoutOf(desc.dst_desc())};
  kernel.output_layouts = {LayoutOf(desc.dst_desc())};
  return kernel;
}

absl::Status NotServed(const KernelRequest& r) {
  return NodeUnimplemented(r.node, "oneDNN has no fast kernel for this convolution");
}

absl::Status CheckExtents(const KernelRequest& r, const Window& w) {
  for (int i = 0; i < w.rank(); ++i) {
    if (std::max({w.extent(i), w.strides[i], w.pads_begin[i], w.pads_end[i],
                  w.reached_pad_end(i)}) > kMaxExtent) {
      return NodeUnimplemented(r.node, "very large windows or pads");
    }
  }
  return absl::OkStatus();
}

// y += bias per channel, for y plain or in channel blocks (padding stays zero).
void AddBias(const Shape& shape, int block, const float* bias, float* y) {
  const int64_t channels = shape[1], blocks = (channels + block - 1) / block;
  const int64_t size = shape.elements(2, shape.rank()) * block;
  ParallelFor(shape[0] * blocks, 32768 / size + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * block;
      float lanes[16] = {};
      for (int64_t c = first; c < std::min(first + block, channels); ++c) {
        lanes[c - first] = bias[c];
      }
      float* out = y + i * size;
      if (block == 1) {
        for (int64_t j = 0; j < size; ++j) out[j] += lanes[0];
        continue;
      }
      for (int lane = 0; lane < block; lane += kLanes<float>) {
        const Vec<float> value = Load(lanes + lane);
        for (int64_t at = lane; at < size; at += block) Store(out + at, Load(out + at) + value);
      }
    }
  });
}

}  // namespace

absl::Status CheckFloatConv(const KernelRequest& r) {
  // Input 2 of a gradient serves for its shape alone.
  const bool gradient = r.node.domain == kOnwardDomain && r.node.op_type.ends_with("Grad");
  const ValueSpec* any_type = gradient && r.HasInput(2) ? &r.inputs[2] : nullptr;
  for (const absl::Span<const ValueSpec>& values : {r.inputs, r.outputs}) {
    for (const ValueSpec& v : values) {
      if (!v.present()) continue;
      if ((v.dtype != DType::kFloat && &v != any_type) || !v.shape.has_value()) {
        return NodeUnimplemented(r.node, "this kernel serves floats of known shape");
      }
      if (!FitsDnnl(*v.shape)) return NodeUnimplemented(r.node, "empty or very large tensor");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDnnlConv(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.y()));
  ONWARD_RETURN_IF_ERROR(CheckExtents(r, g.window));
  if (r.HasInput(kResidual) && r.in(kResidual) != g.y()) return NotServed(r);
  return TryDnnl(r.node, Multiplications(g), [&]() -> absl::StatusOr<Kernel> {
    const Problem p(g);
    const Forward chosen = Choose(p, [&](const DnnlDesc& x, const DnnlDesc& y) {
      return p.MakeForward(x, y, r.HasInput(2));
    });
    if (!IsFast(chosen)) return NotServed(r);
    const DnnlDesc x = chosen.src_desc(), y = chosen.dst_desc();
    const int64_t products = g.w().elements() / g.out_channels;
    return WithActivation(r, y, products, [&](bool activation) -> absl::StatusOr<Kernel> {
      const Forward desc = p.MakeForward(x, y, r.HasInput(2), Followers(r, y, activation));
      if (!IsFast(desc)) return NotServed(r);
      return ForwardKernel(r, desc);
    });
  });
}

absl::StatusOr<Kernel> MakeDnnlConvInputGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 2, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.x()));
  ONWARD_RETURN_IF_ERROR(CheckExtents(r, g.window));
  return TryDnnl(r.node, Multiplications(g), [&]() -> absl::StatusOr<Kernel> {
    const Problem p(g);
    const Forward hint = p.Hint();
    const Data desc =
        Choose(p, [&](const DnnlDesc& x, const DnnlDesc& y) { return p.MakeData(x, y, hint); });
    if (!IsFast(desc)) return NotServed(r);
    Kernel kernel = DataKernel(desc);
    // X serves for its shape alone: whatever layout it has is fine.
    kernel.input_layouts.push_back(r.inputs[2].layout);
    return kernel;
  });
}

absl::StatusOr<Kernel> MakeDnnlConvWeightGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.w()));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 1, Shape{g.out_channels}));
  ONWARD_RETURN_IF_ERROR(CheckExtents(r, g.window));
  return TryDnnl(r.node, Multiplications(g), [&]() -> absl::StatusOr<Kernel> {
    const Problem p(g);
    const Forward hint = p.Hint();
    const Weights desc = Choose(p, [&](const DnnlDesc& x, const DnnlDesc& y) {
      return p.MakeWeights(x, y, r.HasOutput(1), hint);
    });
    if (!IsFast(desc)) return NotServed(r);
    WorkspacePlan plan;
    auto call = std::make_shared<DnnlCall>(dnnl::convolution_backward_weights(desc));
    call->Input(DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), 0);
    call->Input(DNNL_ARG_SRC, desc.src_desc(), 1);
    const DnnlDesc dw = desc.diff_weights_desc();
    if (r.HasOutput(0)) {
      call->Output(DNNL_ARG_DIFF_WEIGHTS, dw, 0);
    } else {
      call->Workspace(DNNL_ARG_DIFF_WEIGHTS, dw, plan.Add(dw.get_size()));
    }
    if (r.HasOutput(1)) call->Output(DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc(), 1);
    call->Scratchpad(desc.scratchpad_desc(), plan);
    Kernel kernel = KernelOf(std::move(call), plan);
    kernel.input_layouts = {LayoutOf(desc.diff_dst_desc()), LayoutOf(desc.src_desc()),
                            r.inputs[2].layout};
    kernel.output_layouts = {LayoutOf(dw)};
    return kernel;
  });
}

// The data gradient of a convolution, with a bias added.
absl::StatusOr<Kernel> MakeDnnlConvTranspose(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvTranspose(r));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.x()));
  ONWARD_RETURN_IF_ERROR(CheckExtents(r, g.window));
  return TryDnnl(r.node, Multiplications(g), [&]() -> absl::StatusOr<Kernel> {
    const Problem p(g);
    const Forward hint = p.Hint();
    const Data desc =
        Choose(p, [&](const DnnlDesc& x, const DnnlDesc& y) { return p.MakeData(x, y, hint); });
    if (!IsFast(desc)) return NotServed(r);
    const int block = ChannelBlock(p.x, LayoutOf(desc.diff_src_desc()));
    if (r.HasInput(2) && block == 0) return NotServed(r);
    Kernel kernel = DataKernel(desc);
    if (!r.HasInput(2)) return kernel;
    kernel.run = [data = std::move(kernel.run), block,
                  shape = p.x](const KernelCall& call) -> absl::Status {
      ONWARD_RETURN_IF_ERROR(data(call));
      AddBias(shape, block, call.inputs[2]->data<float>(), call.outputs[0]->data<float>());
      return absl::OkStatus();
    };
    return kernel;
  });
}

}  // namespace onward
