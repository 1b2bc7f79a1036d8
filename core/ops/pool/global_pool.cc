// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool, GlobalMaxPool, GlobalLpPool and GlobalAveragePoolGrad. The
// full-sized side may come (or go) in channel blocks; the other one, with one
// element per channel, is plain.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/pool/pool.h"

namespace onward {
namespace {

using Types = TypeList<float, double>;
constexpr char kTypes[] = "float, double, float16, bfloat16";
constexpr int64_t kGrain = 1 << 15;

struct Extent {
  int64_t batch, channels, positions;
  int block;  // channels of X that lie together
};

absl::StatusOr<Extent> ExtentOf(const KernelRequest& r, int input) {
  const Shape& x = r.in(input);
  if (x.rank() < 3) {
    return NodeError(r.node, absl::StrCat("input of shape ", x.ToString(),
                                          ": expected [N, C, ...] with spatial axes"));
  }
  const ValueSpec& spec = r.inputs[input];
  const int block = spec.dtype == DType::kFloat ? ChannelBlock(x, spec.layout) : 1;
  return Extent{x[0], x[1], x.elements(2, x.rank()), std::max(block, 1)};
}

Layout LayoutOfExtent(const Shape& x, const Extent& e) {
  return e.block == 1 ? nullptr : LayoutOf(BlockedDesc(x, e.block));
}

Shape ReducedShape(const Shape& x) {
  Shape shape{x[0], x[1]};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  return shape;
}

// Lane-wise fold of the 8 channels that begin at x, `step` elements apart.
template <typename Fold>
Vec<float> FoldLanes(const float* x, int64_t positions, int64_t step, float start,
                     const Fold& fold) {
  Vec<float> acc[4] = {Splat(start), Splat(start), Splat(start), Splat(start)};
  int64_t p = 0;
  for (; p + 4 <= positions; p += 4) {
    for (int u = 0; u < 4; ++u) acc[u] = fold(acc[u], Load(x + (p + u) * step));
  }
  for (; p < positions; ++p) acc[0] = fold(acc[0], Load(x + p * step));
  return fold(fold(acc[0], acc[1]), fold(acc[2], acc[3]));
}

// Fold of n consecutive elements.
template <typename T, typename Fold>
T FoldRow(const T* x, int64_t n, T start, const Fold& fold) {
  constexpr int kStep = kLanes<T>;
  Vec<T> acc[2] = {Splat(start), Splat(start)};
  int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    acc[0] = fold(acc[0], Load(x + i));
    acc[1] = fold(acc[1], Load(x + i + kStep));
  }
  T rest = start;
  for (; i < n; ++i) rest = fold(rest, x[i]);
  const Vec<T> lanes = fold(acc[0], acc[1]);
  for (int lane = 0; lane < kStep; ++lane) rest = fold(rest, lanes[lane]);
  return rest;
}

// y[c] = finish(fold over positions) for each channel of each image; finish is
// not applied to padding.
template <typename T, typename Fold, typename Finish>
void Reduce(const Extent& e, const T* x, T* y, T start, const Fold& fold, const Finish& finish) {
  const int lanes = e.block == 1 ? 1 : 8;
  const int64_t stored = (e.channels + e.block - 1) / e.block * e.block;
  const int64_t groups = stored / lanes;
  ParallelFor(e.batch * groups, kGrain / std::max<int64_t>(e.positions * lanes, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t image = i / groups, channel = i % groups * lanes;
                  if (e.block == 1) {
                    y[i] = finish(FoldRow(x + i * e.positions, e.positions, start, fold));
                    continue;
                  }
                  if constexpr (std::is_same_v<T, float>) {
                    const float* plane =
                        x + (image * stored + channel / e.block * e.block) * e.positions +
                        channel % e.block;
                    const Vec<float> total = FoldLanes(plane, e.positions, e.block, start, fold);
                    for (int64_t c = channel; c < std::min(channel + 8, e.channels); ++c) {
                      y[image * e.channels + c] = finish(total[c - channel]);
                    }
                  }
                }
              });
}

// A kernel whose body is body.template operator()<T>(extent, x, y).
template <typename Body>
absl::StatusOr<Kernel> MakeReduction(const KernelRequest& r, Body body) {
  ONWARD_ASSIGN_OR_RETURN(const Extent e, ExtentOf(r, 0));
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {LayoutOfExtent(r.in(0), e)};
  const bool known = Types::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [e, body](const KernelCall& call) {
      body.template operator()<T>(e, call.inputs[0]->data<T>(), call.outputs[0]->data<T>());
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

absl::StatusOr<Kernel> MakeGlobalAveragePool(const KernelRequest& r) {
  return MakeReduction(r, []<typename T>(const Extent& e, const T* x, T* y) {
    const T count = static_cast<T>(e.positions);
    Reduce(
        e, x, y, T{0}, [](auto a, auto b) { return a + b; }, [=](T sum) { return sum / count; });
  });
}

absl::StatusOr<Kernel> MakeGlobalMaxPool(const KernelRequest& r) {
  return MakeReduction(r, []<typename T>(const Extent& e, const T* x, T* y) {
    Reduce(
        e, x, y, LowestValue<T>(), [](auto best, auto v) { return Exceeds(v, best) ? v : best; },
        [](T v) { return v; });
  });
}

absl::StatusOr<Kernel> MakeGlobalLpPool(const KernelRequest& r) {
  const int64_t p = r.node.Int("p", 2);
  if (p < 1) return NodeError(r.node, absl::StrCat("attribute p = ", p, " must be at least 1"));
  ONWARD_ASSIGN_OR_RETURN(const Extent e, ExtentOf(r, 0));
  Kernel kernel;
  kernel.infallible = true;
  const bool known = Types::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [e, p = static_cast<T>(p)](const KernelCall& call) {
      const T* x = call.inputs[0]->data<T>();
      T* y = call.outputs[0]->data<T>();
      for (int64_t i = 0; i < e.batch * e.channels; ++i) {
        T sum = 0;
        for (int64_t q = 0; q < e.positions; ++q) {
          sum += std::pow(std::abs(x[i * e.positions + q]), p);
        }
        y[i] = std::pow(sum, T{1} / p);
      }
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

// dx = dy / positions, everywhere; in the layout of X, whose elements are not
// read. The padding of a block gets zeros.
template <typename T>
void Spread(const Extent& e, const T* dy, T* dx) {
  const int64_t blocks = (e.channels + e.block - 1) / e.block, size = e.positions * e.block;
  const T count = static_cast<T>(e.positions);
  ParallelFor(e.batch * blocks, kGrain / std::max<int64_t>(size, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  T* out = dx + i * size;
                  if (e.block == 1) {
                    std::fill_n(out, size, dy[i] / count);
                    continue;
                  }
                  const int64_t image = i / blocks, first = i % blocks * e.block;
                  T lanes[16] = {};
                  for (int64_t c = first; c < std::min(first + e.block, e.channels); ++c) {
                    lanes[c - first] = dy[image * e.channels + c] / count;
                  }
                  for (int lane = 0; lane < e.block; lane += kLanes<T>) {
                    const Vec<T> value = Load(lanes + lane);
                    for (int64_t at = lane; at < size; at += e.block) Store(out + at, value);
                  }
                }
              });
}

absl::StatusOr<Kernel> MakeGlobalAveragePoolGrad(const KernelRequest& r) {
  if (!r.HasInput(0) || !r.HasInput(1)) return NodeError(r.node, "an input is missing");
  ONWARD_ASSIGN_OR_RETURN(const Extent e, ExtentOf(r, 1));
  if (r.in(0) != ReducedShape(r.in(1)) || r.inputs[0].dtype != r.inputs[1].dtype) {
    return NodeError(r.node, absl::StrCat("dY of shape ", r.in(0).ToString(),
                                          " does not belong to X of shape ", r.in(1).ToString()));
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {nullptr, r.inputs[1].layout};
  kernel.output_layouts = {LayoutOfExtent(r.in(1), e)};
  const bool known = Types::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [e](const KernelCall& call) {
      Spread(e, call.inputs[0]->data<T>(), call.outputs[0]->data<T>());
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

}  // namespace

void RegisterGlobalPoolKernels(KernelTable& table) {
  const auto reduced = [](const KernelRequest& r, int) { return ReducedShape(r.in(0)); };
  table.Add("GlobalAveragePool", Adapted("reference", 1, MakeGlobalAveragePool, reduced, kTypes));
  table.Add("GlobalMaxPool", Adapted("reference", 1, MakeGlobalMaxPool, reduced, kTypes));
  table.Add("GlobalLpPool", Adapted("reference", 1, MakeGlobalLpPool, reduced, kTypes));
  table.Add("GlobalAveragePoolGrad",
            Adapted("reference", 1, MakeGlobalAveragePoolGrad, LikeInput(1), kTypes, {{1}}),
            kOnwardDomain);
}

}  // namespace onward
