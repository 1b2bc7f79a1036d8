// SPDX-License-Identifier: Apache-2.0
// GatherGrad: the rows of dY are summed into the row of the table they were
// gathered from. The positions are sorted by row (stably, so the order of the
// sum is the order of the indices), and each row of the result is written
// once: copied, added up, or zeroed.
//
// GatherGradRows gives only the rows that are named: entry i holds the row of index
// i and its sum if no earlier index names it, else -1 and zeros.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/ops/index/index.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// dY is [outer, count, inner], the result [outer, rows, inner].
struct GradShape {
  int64_t outer = 1, rows = 0, count = 0, inner = 1;
};

// Positions of row r: order[start[r]] .. order[start[r + 1] - 1].
struct RowLists {
  int64_t* start;
  int64_t* order;
};

template <typename I>
void SortByRow(const I* index, const GradShape& g, const RowLists& lists) {
  // start[r + 2] counts row r; summed up, start[r + 1] is where row r begins;
  // filling moves it to where row r + 1 begins.
  std::fill(lists.start, lists.start + g.rows + 2, 0);
  for (int64_t i = 0; i < g.count; ++i) ++lists.start[FromFront(index[i], g.rows) + 2];
  for (int64_t r = 0; r < g.rows; ++r) lists.start[r + 2] += lists.start[r + 1];
  for (int64_t i = 0; i < g.count; ++i) {
    lists.order[lists.start[FromFront(index[i], g.rows) + 1]++] = i;
  }
}

template <typename T>
void SumRow(T* out, const T* dy, const int64_t* positions, int64_t n, int64_t inner) {
  CopyRun(out, dy + positions[0] * inner, inner);
  if (n == 1) return;
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    for (int64_t i = 1; i < n; ++i) {
      const T* from = dy + positions[i] * inner;
      for (int64_t k = 0; k < inner; ++k) out[k] += from[k];
    }
  } else {
    // Sums of 16-bit floats are rounded once, at the end.
    constexpr int64_t kChunk = 256;
    float sum[kChunk];
    for (int64_t begin = 0; begin < inner; begin += kChunk) {
      const int64_t size = std::min(kChunk, inner - begin);
      std::fill(sum, sum + size, 0.0f);
      for (int64_t i = 0; i < n; ++i) {
        const T* from = dy + positions[i] * inner + begin;
        for (int64_t k = 0; k < size; ++k) sum[k] += static_cast<float>(from[k]);
      }
      for (int64_t k = 0; k < size; ++k) out[begin + k] = T(sum[k]);
    }
  }
}

// Rows [begin, end) of one outer block.
template <typename T>
void SumRows(T* out, const T* dy, const RowLists& lists, int64_t begin, int64_t end,
             int64_t inner) {
  for (int64_t r = begin; r < end;) {
    const int64_t first = lists.start[r];
    int64_t next = r + 1;
    if (lists.start[next] > first) {
      SumRow(out + r * inner, dy, lists.order + first, lists.start[next] - first, inner);
    } else {
      while (next < end && lists.start[next + 1] == first) ++next;
      std::memset(static_cast<void*>(out + r * inner), 0,
                  static_cast<size_t>((next - r) * inner) * sizeof(T));
    }
    r = next;
  }
}

template <typename T>
void SumAll(T* out, const T* dy, const RowLists& lists, const GradShape& g) {
  // Frequent rows cluster, so threads share out work, not rows: writing a row
  // counts 1, adding to it 2.
  const int64_t block = g.rows + 2 * g.count;
  auto row_at = [&](int64_t work) {
    int64_t low = 0, high = g.rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (middle + 2 * lists.start[middle] < work) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  ParallelFor(g.outer * block, RowGrain<T>(g.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin / block; o * block < end; ++o) {
      const int64_t from = row_at(std::max<int64_t>(begin - o * block, 0));
      const int64_t to = end >= (o + 1) * block ? g.rows : row_at(end - o * block);
      SumRows(out + o * g.rows * g.inner, dy + o * g.count * g.inner, lists, from, to, g.inner);
    }
  });
}

template <typename T>
void SumNamedRows(int64_t* rows, T* sums, const T* dy, const RowLists& lists, const GradShape& g) {
  std::fill(rows, rows + g.count, -1);
  for (int64_t r = 0; r < g.rows; ++r) {
    if (lists.start[r + 1] > lists.start[r]) rows[lists.order[lists.start[r]]] = r;
  }
  ParallelFor(g.count, RowGrain<T>(g.inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* sum = sums + i * g.inner;
      if (const int64_t r = rows[i]; r >= 0) {
        const int64_t first = lists.start[r];
        SumRow(sum, dy, lists.order + first, lists.start[r + 1] - first, g.inner);
      } else {
        std::fill(sum, sum + g.inner, T(0));
      }
    }
  });
}

// The sizes of a call, whose inputs are dY, indices and the data (for its shape).
absl::StatusOr<GradShape> GradShapeOf(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  ONWARD_RETURN_IF_ERROR(CheckIndexType(request, 1));
  const Shape data = request.in(2);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), data.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  const GradShape g{data.elements(0, *axis), data[*axis], request.in(1).elements(),
                    data.elements(*axis + 1, data.rank())};
  if (request.in(0).elements() != g.outer * g.count * g.inner) {
    return NodeError(request.node,
                     absl::StrCat("dY of shape ", request.in(0).ToString(),
                                  " is not what Gather gives for data ", data.ToString(),
                                  " and indices ", request.in(1).ToString()));
  }
  const DType dtype = request.inputs[0].dtype;
  if (!IsFloating(dtype)) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel for ", std::string(DTypeName(dtype))));
  }
  return g;
}

absl::StatusOr<Kernel> MakeGatherGrad(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  ONWARD_ASSIGN_OR_RETURN(const GradShape g, GradShapeOf(request));
  const Shape data = request.in(2);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(data));
  Kernel kernel;
  kernel.input_layouts = {nullptr, nullptr, request.inputs[2].layout};
  kernel.workspace_bytes = (g.rows + 2 + g.count) * sizeof(int64_t);
  kernel.run = [slot, data, g,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor& index = *call.inputs[1];
    ONWARD_RETURN_IF_ERROR(CheckIndices(*node, index, g.rows));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, data));
    if (output->elements() == 0) return absl::OkStatus();
    int64_t* scratch = static_cast<int64_t*>(call.workspace);
    const RowLists lists{scratch, scratch + g.rows + 2};
    DispatchIndex(index.dtype(), [&]<typename I>() { SortByRow(index.data<I>(), g, lists); });
    DispatchFloating(output->dtype(), [&]<typename T>() {
      SumAll(output->data<T>(), call.inputs[0]->data<T>(), lists, g);
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeGatherGradRows(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3, 2));
  ONWARD_ASSIGN_OR_RETURN(const GradShape g, GradShapeOf(request));
  if (g.outer != 1 || !request.HasOutput(0) || !request.HasOutput(1)) {
    return NodeError(request.node, "gives rows and sums of axis 0");
  }
  const OutputSlot rows(request, 0), sums(request, 1);
  const Shape data = request.in(2);
  Shape sums_shape = data;
  sums_shape[0] = g.count;
  ONWARD_RETURN_IF_ERROR(rows.Accepts(Shape{g.count}));
  ONWARD_RETURN_IF_ERROR(sums.Accepts(sums_shape));
  Kernel kernel;
  kernel.input_layouts = {nullptr, nullptr, request.inputs[2].layout};
  kernel.workspace_bytes = (g.rows + 2 + g.count) * sizeof(int64_t);
  kernel.run = [rows, sums, sums_shape, g,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor& index = *call.inputs[1];
    ONWARD_RETURN_IF_ERROR(CheckIndices(*node, index, g.rows));
    ONWARD_ASSIGN_OR_RETURN(Tensor * row_output, rows.Get(call, Shape{g.count}));
    ONWARD_ASSIGN_OR_RETURN(Tensor * sum_output, sums.Get(call, sums_shape));
    int64_t* scratch = static_cast<int64_t*>(call.workspace);
    const RowLists lists{scratch, scratch + g.rows + 2};
    DispatchIndex(index.dtype(), [&]<typename I>() { SortByRow(index.data<I>(), g, lists); });
    DispatchFloating(sum_output->dtype(), [&]<typename T>() {
      SumNamedRows(row_output->data<int64_t>(), sum_output->data<T>(), call.inputs[0]->data<T>(),
                   lists, g);
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterGatherGradKernels(KernelTable& table) {
  table.Add("GatherGrad", {"reference", 1, MakeGatherGrad, "float, double, float16, bfloat16"},
            kOnwardDomain);
  table.Add("GatherGradRows",
            {"reference", 1, MakeGatherGradRows, "float, double, float16, bfloat16"},
            kOnwardDomain);
}

}  // namespace onward
