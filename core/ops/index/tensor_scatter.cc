// SPDX-License-Identifier: Apache-2.0
// TensorScatter: a piece of a sequence written into a longer one, at a place that each element
// of the batch has for itself.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/index/index.h"
#include "core/ops/movement/through_bytes.h"

namespace onward {
namespace {

// Both tensors as [batch, outer, steps, inner].
struct Pieces {
  int64_t batch = 1, outer = 1, inner = 1;
  int64_t all = 0, steps = 0;  // of the cache, of the update
  bool circular = false;
};

absl::StatusOr<Pieces> PlanPieces(const KernelRequest& request) {
  const Shape &cache = request.in(0), &update = request.in(1);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", -2), cache.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  bool fits = *axis > 0 && update.rank() == cache.rank();
  for (int i = 0; fits && i < cache.rank(); ++i) {
    fits = i == *axis ? update[i] <= cache[i] : update[i] == cache[i];
  }
  if (!fits) {
    return NodeError(
        request.node,
        absl::StrCat("an update of shape ", update.ToString(), " does not fit a cache of shape ",
                     cache.ToString(), " along axis ", *axis, ", which must not be the first"));
  }
  Pieces p;
  p.batch = cache[0];
  p.outer = cache.elements(1, *axis);
  p.inner = cache.elements(*axis + 1, cache.rank());
  p.all = cache[*axis];
  p.steps = update[*axis];
  p.circular = request.node.String("mode", "linear") == "circular";
  return p;
}

// Where each element of the batch begins to be written.
absl::StatusOr<std::vector<int64_t>> StartsOf(const Node& node, const Pieces& p,
                                              const Tensor* indices) {
  std::vector<int64_t> starts(p.batch, 0);
  if (indices == nullptr) return starts;
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t start = indices->data<int64_t>()[b];
    const int64_t last = p.circular ? std::numeric_limits<int64_t>::max() : p.all - p.steps;
    if (start < 0 || start > last) {
      return NodeError(node, absl::StrCat("write index ", start, " of batch ", b, " for ", p.steps,
                                          " steps in a cache of ", p.all));
    }
    starts[b] = p.circular ? start % std::max<int64_t>(p.all, 1) : start;
  }
  return starts;
}

template <typename T>
void Write(const Pieces& p, const std::vector<int64_t>& starts, const T* update, T* cache) {
  ParallelFor(p.batch * p.outer, RowGrain<T>(p.steps * p.inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t start = starts[row / p.outer];
      const int64_t before_end = std::min(p.steps, p.all - start);
      const T* from = update + row * p.steps * p.inner;
      T* to = cache + row * p.all * p.inner;
      CopyRun(to + start * p.inner, from, before_end * p.inner);
      CopyRun(to, from + before_end * p.inner, (p.steps - before_end) * p.inner);
    }
  });
}

absl::StatusOr<Kernel> MakeTensorScatter(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {1}));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  ONWARD_ASSIGN_OR_RETURN(const Pieces pieces, PlanPieces(request));
  if (request.HasInput(2) &&
      (request.in(2) != Shape{pieces.batch} || request.inputs[2].dtype != DType::kInt64)) {
    return NodeError(request.node,
                     absl::StrCat("write_indices must be int64 of shape [", pieces.batch, "]"));
  }
  const Shape shape = request.in(0);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [slot, shape, pieces,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                            StartsOf(*node, pieces, InputAt(call.inputs, 2)));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    CopyAll(*output, *call.inputs[0]);
    DispatchWidth(output->dtype(), [&]<typename T>() {
      Write(pieces, starts, static_cast<const T*>(call.inputs[1]->raw()),
            static_cast<T*>(output->raw()));
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterTensorScatterKernels(KernelTable& table) {
  table.Add("TensorScatter",
            {"reference", 24, ThroughBytes(MakeTensorScatter), "all", false, LikeInput(0)});
}

}  // namespace onward
