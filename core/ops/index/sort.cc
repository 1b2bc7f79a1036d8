// SPDX-License-Identifier: Apache-2.0
// TopK and Unique. Both need a total order, so NaN counts as greater than all
// numbers and equal to itself.
#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/strided_copy.h"
#include "core/ops/index/index.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

template <typename T>
bool Before(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string>) {
    return a < b;
  } else {
    const ComputeType<T> x = a, y = b;
    return x < y || (y != y && x == x);
  }
}

template <typename C>
struct Ranked {
  C key;
  int64_t index;
};

// Whether key a goes before key b.
template <bool kLargest, typename C>
bool Better(const C& a, const C& b) {
  return kLargest ? Before(b, a) : Before(a, b);
}

// The k best of n keys, best first; of equal ones the earlier is better. For
// few: most keys are only compared, a block at a time, with the worst kept one.
template <bool kLargest, typename C>
void KeepBest(const C* keys, int64_t n, int64_t k, Ranked<C>* best) {
  constexpr int64_t kBlock = 64;
  int64_t kept = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    if (kept == k) {
      const C worst = best[k - 1].key;
      int any = 0;
#pragma omp simd reduction(| : any)
      for (int64_t j = begin; j < end; ++j) {
        any |= (kLargest ? keys[j] <= worst : keys[j] >= worst) ? 0 : 1;
      }
      if (any == 0) continue;
    }
    for (int64_t j = begin; j < end; ++j) {
      if (kept == k && !Better<kLargest>(keys[j], best[k - 1].key)) continue;
      int64_t place = kept < k ? kept++ : k - 1;
      for (; place > 0 && Better<kLargest>(keys[j], best[place - 1].key); --place) {
        best[place] = best[place - 1];
      }
      best[place] = {keys[j], j};
    }
  }
}

// The same for many; best has room for n.
template <bool kLargest, typename C>
void SortBest(const C* keys, int64_t n, int64_t k, Ranked<C>* best) {
  for (int64_t j = 0; j < n; ++j) best[j] = {keys[j], j};
  auto better = [](const Ranked<C>& a, const Ranked<C>& b) {
    return Better<kLargest>(a.key, b.key) || (!Better<kLargest>(b.key, a.key) && a.index < b.index);
  };
  if (k < n) std::nth_element(best, best + k, best + n, better);
  std::sort(best, best + k, better);
}

struct TopKShape {
  int64_t outer = 1, n = 0, inner = 1;
  bool largest = true;
};

// What elements are compared as: few types, so that little code is compiled.
template <typename T>
using Key = std::conditional_t<!std::is_integral_v<T>, ComputeType<T>,
                               std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <bool kLargest, typename T>
void TopKLanes(const TopKShape& s, int64_t k, const T* x, T* values, int64_t* indices) {
  using C = Key<T>;
  struct Scratch {
    std::vector<C> keys;
    std::vector<Ranked<C>> best;
  };
  // Keys that lie side by side are compared where they are.
  const bool in_place = std::is_same_v<T, C> && s.inner == 1;
  // Allocated before the threads start: nothing may throw inside.
  const bool few = k <= 32;
  std::vector<Scratch> scratch(Threads());
  for (Scratch& t : scratch) {
    if (!in_place) t.keys.resize(s.n);
    t.best.resize(few ? k : s.n);
  }
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s.n));
  ParallelFor(s.outer * s.inner, grain, [&](int64_t begin, int64_t end) {
    Scratch& t = scratch[ThreadNumber() % scratch.size()];
    for (int64_t l = begin; l < end; ++l) {
      const int64_t o = l / s.inner, i = l % s.inner;
      const T* from = x + o * s.n * s.inner + i;
      const C* keys = t.keys.data();
      if (in_place) {
        if constexpr (std::is_same_v<T, C>) keys = from;
      } else {
        for (int64_t j = 0; j < s.n; ++j) t.keys[j] = static_cast<C>(from[j * s.inner]);
      }
      if (few) {
        KeepBest<kLargest>(keys, s.n, k, t.best.data());
      } else {
        SortBest<kLargest>(keys, s.n, k, t.best.data());
      }
      for (int64_t j = 0; j < k; ++j) {
        const int64_t to = (o * k + j) * s.inner + i;
        if (values != nullptr) values[to] = from[t.best[j].index * s.inner];
        if (indices != nullptr) indices[to] = t.best[j].index;
      }
    }
  });
}

absl::StatusOr<Kernel> MakeTopK(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2, 0));
  const Shape in = request.in(0);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", -1), in.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  if (!DispatchNumeric(request.inputs[0].dtype, []<typename T>() {})) {
    return NodeUnimplemented(
        request.node,
        absl::StrCat("no kernel for ", std::string(DTypeName(request.inputs[0].dtype))));
  }
  const TopKShape s{in.elements(0, *axis), in[*axis], in.elements(*axis + 1, in.rank()),
                    request.node.Int("largest", 1) != 0};
  const OutputSlot values_slot(request, 0), indices_slot(request, 1);
  Kernel kernel;
  kernel.run = [=, axis = *axis,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const int64_t k, IntOf(*node, *call.inputs[1], "K"));
    if (k < 0 || k > s.n) {
      return NodeError(*node, absl::StrCat("K is ", k, ", outside [0, ", s.n, "]"));
    }
    Shape out = in;
    out[axis] = k;
    Tensor* values = nullptr;
    Tensor* indices = nullptr;
    if (values_slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(values, values_slot.Get(call, out));
    }
    if (indices_slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(indices, indices_slot.Get(call, out));
    }
    if (out.elements() == 0) return absl::OkStatus();
    DispatchNumeric(call.inputs[0]->dtype(), [&]<typename T>() {
      const T* x = call.inputs[0]->data<T>();
      T* best = values == nullptr ? nullptr : values->data<T>();
      int64_t* where = indices == nullptr ? nullptr : indices->data<int64_t>();
      if (s.largest) {
        TopKLanes<true>(s, k, x, best, where);
      } else {
        TopKLanes<false>(s, k, x, best, where);
      }
    });
    return absl::OkStatus();
  };
  return kernel;
}

// The distinct rows among n rows of m elements.
struct Distinct {
  std::vector<int64_t> first;    // where each appears first, in output order
  std::vector<int64_t> inverse;  // for each row its number in the output
  std::vector<int64_t> counts;
};

template <typename T>
Distinct FindDistinct(const T* rows, int64_t n, int64_t m, bool sorted) {
  // Negative, zero or positive, as row a stands before, with or after row b.
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < m; ++k) {
      if (Before(rows[a * m + k], rows[b * m + k])) return -1;
      if (Before(rows[b * m + k], rows[a * m + k])) return 1;
    }
    return 0;
  };
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int c = compare(a, b);
    return c < 0 || (c == 0 && a < b);
  });
  Distinct d;
  d.inverse.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      d.first.push_back(order[i]);
      d.counts.push_back(0);
    }
    d.inverse[order[i]] = static_cast<int64_t>(d.first.size()) - 1;
    ++d.counts.back();
  }
  if (sorted) return d;
  // By first appearance instead: rank[g] is the new number of group g.
  const int64_t groups = static_cast<int64_t>(d.first.size());
  std::vector<int64_t> by_first(groups), rank(groups);
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return d.first[a] < d.first[b]; });
  Distinct moved;
  for (int64_t i = 0; i < groups; ++i) {
    rank[by_first[i]] = i;
    moved.first.push_back(d.first[by_first[i]]);
    moved.counts.push_back(d.counts[by_first[i]]);
  }
  for (int64_t group : d.inverse) moved.inverse.push_back(rank[group]);
  return moved;
}

// Calls f.template operator()<T>(parts): what an element is compared as, and how many of these it
// is. Complex numbers are ordered by their real parts first, as numpy does; false for types
// without an order.
template <typename F>
bool DispatchOrdered(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kString: f.template operator()<std::string>(1); return true;
    case DType::kComplex64: f.template operator()<float>(2); return true;
    case DType::kComplex128: f.template operator()<double>(2); return true;
    default: return DispatchNumeric(dtype, [&]<typename T>() { f.template operator()<T>(1); });
  }
}

// `in` as [outer, n, inner], the slices along n being what is compared.
template <typename T>
Distinct DistinctSlices(const Tensor& x, const Shape& in, int axis, int64_t parts, bool sorted) {
  const int64_t outer = in.elements(0, axis), n = in[axis];
  const int64_t inner = in.elements(axis + 1, in.rank());
  if (outer == 1) return FindDistinct(x.data<T>(), n, inner * parts, sorted);
  Tensor rows(x.dtype(), in);
  StridedCopy(x.dtype(), {n, outer, inner}, {inner, n * inner, 1}).Run(rows.raw(), x.raw());
  return FindDistinct(rows.data<T>(), n, outer * inner * parts, sorted);
}

absl::Status GiveInts(const OutputSlot& slot, const KernelCall& call,
                      const std::vector<int64_t>& values) {
  if (!slot.wanted()) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(Tensor * output,
                          slot.Get(call, Shape{static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), output->data<int64_t>());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUnique(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  Shape in = request.in(0);
  if (!request.node.Has("axis")) in = Shape{in.elements()};
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), in.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  const DType dtype = request.inputs[0].dtype;
  if (!DispatchOrdered(dtype, []<typename T>(int64_t) {})) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel for ", std::string(DTypeName(dtype))));
  }
  const bool sorted = request.node.Int("sorted", 1) != 0;
  std::vector<OutputSlot> slots;
  for (int i = 0; i < 4; ++i) slots.emplace_back(request, i);
  Kernel kernel;
  kernel.run = [=, axis = *axis](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    Distinct d;
    DispatchOrdered(dtype, [&]<typename T>(int64_t parts) {
      d = DistinctSlices<T>(x, in, axis, parts, sorted);
    });
    if (slots[0].wanted()) {
      const int64_t n = static_cast<int64_t>(d.first.size());
      Shape out = in;
      out[axis] = n;
      ONWARD_ASSIGN_OR_RETURN(Tensor * output, slots[0].Get(call, out));
      if (out.elements() > 0) {
        DispatchWidth(dtype, [&]<typename T>() {
          TakeRows(output->data<T>(), x.data<T>(), d.first.data(), in.elements(0, axis), n,
                   in.elements(axis + 1, in.rank()), in[axis]);
        });
      }
    }
    ONWARD_RETURN_IF_ERROR(GiveInts(slots[1], call, d.first));
    ONWARD_RETURN_IF_ERROR(GiveInts(slots[2], call, d.inverse));
    return GiveInts(slots[3], call, d.counts);
  };
  return kernel;
}

}  // namespace

void RegisterSortKernels(KernelTable& table) {
  table.Add("TopK", {"reference", 10, MakeTopK, "numeric"});
  table.Add("Unique", {"reference", 11, MakeUnique, "numeric, complex, bool, string"});
}

}  // namespace onward
