// SPDX-License-Identifier: Apache-2.0
// The random family: Dropout and what draws random numbers.
#include "core/cuda/register.h"

#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/copy.h"
#include "core/cuda/random/random.h"
#include "core/cuda/request.h"
#include "core/device/plan/random.h"

namespace onward::cuda {
namespace {

// Where a kernel of n elements gets its draws from: the workspace holds numpy's, where a node has
// its seed.
struct DrawSource {
  DrawSource(const KernelRequest& r, int64_t elements) : stream(r.node), n(elements) {}

  size_t workspace_bytes() const { return stream.has_numpy_seed() ? NumpyDrawsBytes(n) : 0; }
  cudaError_t Prepare(const KernelCall& call, RandomDraws* draws) const {
    const RandomState* const there = call.random_there;
    *draws = {stream.Key(call.random),   nullptr,        there, stream.seed().has_value() ? 1u : 0u,
              stream.seed().value_or(0), stream.stream()};
    // Which step it will be is then known to the kernel alone.
    const std::optional<uint32_t> seed =
        stream.NumpySeed(there == nullptr ? call.random : RandomState{});
    if (!seed.has_value()) return cudaSuccess;
    draws->stored = static_cast<const double*>(call.workspace);
    return StoreNumpyDraws(*seed, n, there, static_cast<double*>(call.workspace), StreamOf(call));
  }

  RandomStream stream;
  int64_t n;
};

// A kernel whose run is `launch(call, draws)`.
template <class Launch>
Kernel DrawingKernel(const KernelRequest& r, int64_t elements, Launch launch) {
  const DrawSource source(r, elements);
  Kernel kernel = QueuedKernel(r, [source, launch](const KernelCall& call) {
    RandomDraws draws;
    const cudaError_t error = source.Prepare(call, &draws);
    return error == cudaSuccess ? launch(call, draws) : error;
  });
  kernel.workspace_bytes = source.workspace_bytes();
  return kernel;
}

Kernel PassOn(const KernelRequest& r) {
  Kernel kernel = CopyKernel(r.in(0).elements() * BytesOf(r.inputs[0].dtype));
  kernel.is_view = true;
  return kernel;
}

// The ratio, if it is known; 0.5 where the input is omitted. Unimplemented where it is no ratio.
absl::StatusOr<std::optional<double>> RatioOf(const KernelRequest& r) {
  if (!r.HasInput(1)) return 0.5;
  if (r.in(1).elements() != 1 || !IsReal(r.inputs[1].dtype)) return Unserved(r);
  if (r.inputs[1].constant == nullptr) return std::nullopt;
  const absl::StatusOr<std::vector<double>> values = ToDoubles(*r.inputs[1].constant);
  if (!values.ok() || !((*values)[0] >= 0.0 && (*values)[0] < 1.0)) return Unserved(r);
  return (*values)[0];
}

absl::StatusOr<Kernel> MakeDropout(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  DropoutCall state;
  state.dtype = r.inputs[0].dtype;
  state.elements = r.in(0).elements();
  if (!IsReal(state.dtype)) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(const std::optional<double> ratio, RatioOf(r));
  bool inference = !r.HasInput(2);
  bool later = false;  // whether it trains is known
  if (r.HasInput(2)) {
    if (r.inputs[2].dtype != DType::kBool || r.in(2).elements() != 1) return Unserved(r);
    const Tensor* mode = r.inputs[2].constant;
    later = mode == nullptr;
    inference = !later && !*mode->data<bool>();
  }
  if ((inference || ratio == 0.0) && r.HasOutput(0) && !r.HasOutput(1)) return PassOn(r);
  state.ratio.value = inference ? 0.0 : ratio.value_or(0.0);
  if (r.HasInput(1)) state.ratio.dtype = r.inputs[1].dtype;
  const bool read_ratio = !inference && !ratio.has_value();
  Kernel kernel =
      DrawingKernel(r, state.elements,
                    [state, read_ratio, later](const KernelCall& call, const RandomDraws& draws) {
                      DropoutCall now = state;
                      if (read_ratio) now.ratio.data = In(call, 1);
                      if (later) now.training = static_cast<const bool*>(In(call, 2));
                      now.x = In(call, 0);
                      now.y = Out(call, 0);
                      now.mask = static_cast<bool*>(Out(call, 1));
                      return Dropout(now, draws, StreamOf(call));
                    });
  kernel.in_place = {{0, 0}};
  return kernel;
}

absl::StatusOr<Kernel> MakeFill(const KernelRequest& r, bool normal, bool like) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, like ? 1 : 0));
  const DType dtype = r.outputs[0].dtype;
  if (!r.HasOutput(0) || !IsReal(dtype)) return Unserved(r);
  RandomFill fill{normal, r.node.Float("mean", 0.0f), r.node.Float("scale", 1.0f)};
  if (!normal) {
    fill.shift = r.node.Float("low", 0.0f);
    fill.scale = static_cast<double>(r.node.Float("high", 1.0f)) - fill.shift;
  }
  const int64_t n = r.out(0).elements();
  return DrawingKernel(r, n, [=](const KernelCall& call, const RandomDraws& draws) {
    return FillRandom(fill, dtype, n, Out(call, 0), draws, StreamOf(call));
  });
}

absl::StatusOr<Kernel> MakeBernoulli(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const DType from = r.inputs[0].dtype, to = r.outputs[0].dtype;
  if (!IsReal(from) || !ServesBernoulli(to)) return Unserved(r);
  const int64_t n = r.in(0).elements();
  return DrawingKernel(r, n, [=](const KernelCall& call, const RandomDraws& draws) {
    return Bernoulli(from, to, n, In(call, 0), Out(call, 0), draws, StreamOf(call));
  });
}

KernelFactory Filling(bool normal, bool like) {
  return [normal, like](const KernelRequest& r) { return MakeFill(r, normal, like); };
}

}  // namespace

void RegisterRandom(const Context&, KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("Dropout", {"cuda", 12, MakeDropout, types});
  table.Add("RandomUniform", {"cuda", 1, Filling(false, false), types});
  table.Add("RandomUniformLike", {"cuda", 1, Filling(false, true), types});
  table.Add("RandomNormal", {"cuda", 1, Filling(true, false), types});
  table.Add("RandomNormalLike", {"cuda", 1, Filling(true, true), types});
  table.Add("Bernoulli", {"cuda", 15, MakeBernoulli, types});
}

}  // namespace onward::cuda
