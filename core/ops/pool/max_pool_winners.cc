// SPDX-License-Identifier: Apache-2.0
// MaxPool that notes in a byte which tap of each window won, and the gradient that
// needs no more than that: the pool's input, larger by far, can go once it is pooled.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/pool/pool_planes.h"

namespace onward {
namespace {

using WinnerTypes = TypeList<float, double>;
constexpr char kTypes[] = "float, double";
constexpr int kNoTap = 255;  // the window passes no gradient on

// Winners lie as [N, groups of 8 channels, positions of Y, 8], however X lies: the
// pool and its gradient may see it in different layouts.
class Winners {
 public:
  Winners(const Shape& x, const Planes& planes)
      : channels_(x[1]), groups_(GroupsOf(x)), positions_(planes.out), block_(planes.block) {}

  // Room for whole blocks of 16 channels.
  static int64_t GroupsOf(const Shape& x) { return (x[1] + 15) / 16 * 2; }
  static Shape ShapeOf(const Shape& y) {
    Shape shape = y;
    shape[1] = GroupsOf(y) * 8;
    return shape;
  }

  // Where those of plane i begin; the next position's are 8 further.
  int64_t Begin(int64_t i) const {
    if (block_ == 1) {
      const int64_t channel = i % channels_;
      return GroupBegin(i / channels_, channel / 8) + channel % 8;
    }
    const int64_t groups = (channels_ + block_ - 1) / block_ * (block_ / 8);
    return GroupBegin(i / groups, i % groups);
  }

 private:
  int64_t GroupBegin(int64_t n, int64_t group) const {
    return (n * groups_ + group) * positions_ * 8;
  }
  int64_t channels_, groups_, positions_;
  int block_;
};

template <typename T>
void PutTap(uint8_t* winners, int64_t p, T tap) {
  winners[p * 8] = static_cast<uint8_t>(tap);
}
template <typename T>
void GetTap(const uint8_t* winners, int64_t p, T* tap) {
  *tap = winners[p * 8];
}

void PutTap(uint8_t* winners, int64_t p, IntVec<float> tap) {
  const auto lanes = (__m256i)tap;
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(winners + p * 8), _mm_packus_epi16(words, words));
}
void GetTap(const uint8_t* winners, int64_t p, IntVec<float>* tap) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(winners + p * 8));
  *tap = (IntVec<float>)_mm256_cvtepu8_epi32(bytes);
}

template <typename C, typename T = typename C::Element>
void WinnersPlane(const PoolPlan& plan, bool relu, const T* x, T* y, uint8_t* winners) {
  using Index = typename C::Index;
  const auto zero = C::Of(T{0});
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    const Winner<C> winner = FindWinner<C>(plan, window, x);
    C::Put(y, out, winner.best);
    // What Relu's gradient stops; it stops NaN too.
    PutTap(winners, out, relu ? (winner.best > zero ? winner.tap : Index{} + kNoTap) : winner.tap);
  });
}

// kTiled: every position lies in one window, so nothing is added up and nothing has
// to be zero before.
template <typename C, bool kTiled, typename T = typename C::Element>
void WinnersGradPlane(const PoolPlan& plan, const T* dy, const uint8_t* winners, T* dx) {
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    typename C::Index winner;
    GetTap(winners, out, &winner);
    GiveToTap<C, !kTiled>(plan, window, C::Get(dy, out), winner, dx);
  });
}

bool Tiled(const Window& window) {
  for (int i = 0; i < window.rank(); ++i) {
    const bool whole = window.out[i] * window.kernel[i] == window.in[i] &&
                       window.strides[i] == window.kernel[i] && window.pads_begin[i] == 0 &&
                       (window.dilations[i] == 1 || window.kernel[i] == 1);
    if (!whole) return false;
  }
  return true;
}

absl::Status CheckTaps(const KernelRequest& r, const Pool& pool) {
  if (pool.window.kernel_elements() < kNoTap) return absl::OkStatus();
  return NodeError(r.node, absl::StrCat("a window of ", pool.window.kernel_elements(),
                                        " elements has more than a byte can number"));
}

// (X) -> Y, winners
absl::StatusOr<Kernel> MakeMaxPoolWinners(const KernelRequest& r) {
  if (!r.HasOutput(0) || !r.HasOutput(1)) return NodeError(r.node, "an output is missing");
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(0), BlockOf(r, 0)));
  ONWARD_RETURN_IF_ERROR(CheckTaps(r, made));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  const Winners lying(r.in(0), pool->planes);
  const bool relu = r.node.String("activation", "") == "Relu";
  const Shape y_shape = WithSpatial(r.in(0)[0], r.in(0)[1], pool->window.out);
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {BlockLayout(r.in(0), pool->planes.block)};
  kernel.output_layouts = {BlockLayout(y_shape, pool->planes.block)};
  const bool known = WinnerTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool, lying, relu](const KernelCall& call) {
      const T* x = call.inputs[0]->data<T>();
      T* y = call.outputs[0]->data<T>();
      uint8_t* winners = call.outputs[1]->data<uint8_t>();
      const Planes& planes = pool->planes;
      ForPlanes<T>(planes, pool->plan.work, [&]<typename C>(int64_t i) {
        WinnersPlane<C>(pool->plan, relu, x + planes.Begin(i, planes.in),
                        y + planes.Begin(i, planes.out), winners + lying.Begin(i));
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

absl::Status CheckGradient(const KernelRequest& r) {
  for (int i = 0; i < 3; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, "an input is missing");
  }
  ONWARD_ASSIGN_OR_RETURN(const Shape y, PooledShape(r, r.in(2)));
  const bool fits = r.in(0) == y && r.in(1) == Winners::ShapeOf(y) &&
                    r.inputs[1].dtype == DType::kUint8 && r.inputs[0].dtype == r.inputs[2].dtype;
  if (!fits) return NodeError(r.node, "dY or the winners are not those of a pool of X");
  return absl::OkStatus();
}

// (dY, winners, X) -> dX, of X's shape and in the layout that X and dY come in
absl::StatusOr<Kernel> MakeMaxPoolWinnersGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckGradient(r));
  ONWARD_ASSIGN_OR_RETURN(Pool made, MakePool(r, r.in(2), std::max(BlockOf(r, 2), BlockOf(r, 0))));
  ONWARD_RETURN_IF_ERROR(CheckTaps(r, made));
  const auto pool = std::make_shared<const Pool>(std::move(made));
  const Winners lying(r.in(2), pool->planes);
  const int block = pool->planes.block;
  const bool tiled = Tiled(pool->window);
  Kernel kernel;
  kernel.infallible = true;
  kernel.input_layouts = {BlockLayout(r.in(0), block), nullptr, r.inputs[2].layout};
  kernel.output_layouts = {BlockLayout(r.in(2), block)};
  const bool known = WinnerTypes::Dispatch(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [pool, lying, tiled](const KernelCall& call) {
      const T* dy = call.inputs[0]->data<T>();
      const uint8_t* winners = call.inputs[1]->data<uint8_t>();
      T* dx = call.outputs[0]->data<T>();
      const Planes& planes = pool->planes;
      ForPlanes<T>(planes, pool->plan.work, [&]<typename C>(int64_t i) {
        const T* gradient = dy + planes.Begin(i, planes.out);
        T* plane = dx + planes.Begin(i, planes.in);
        if (tiled) {
          WinnersGradPlane<C, true>(pool->plan, gradient, winners + lying.Begin(i), plane);
        } else {
          ZeroPlane<C>(plane, planes.in);
          WinnersGradPlane<C, false>(pool->plan, gradient, winners + lying.Begin(i), plane);
        }
      });
      return absl::OkStatus();
    };
  });
  return known ? absl::StatusOr<Kernel>(std::move(kernel)) : NoPoolKernel(r);
}

}  // namespace

void RegisterMaxPoolWinnerKernels(KernelTable& table) {
  const auto pooled = [](const KernelRequest& r, int output) {
    const Shape y = *PooledShape(r, r.in(0));
    return output == 0 ? y : Winners::ShapeOf(y);
  };
  table.Add("MaxPoolWinners", Adapted("reference", 1, MakeMaxPoolWinners, pooled, kTypes),
            kOnwardDomain);
  table.Add("MaxPoolWinnersGrad",
            Adapted("reference", 1, MakeMaxPoolWinnersGrad, LikeInput(2), kTypes, {{2}}),
            kOnwardDomain);
}

}  // namespace onward
