// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

// How a window walks over the spatial axes, the one at [0] being axis 2 of the value.
struct Walk {
  Index kernel, strides, dilations, begin, end;

  Walk(const Node& node, const Index& shape, const Shape& x) : kernel(shape) {
    const auto rank = kernel.size();
    strides = node.Ints("strides", Index(rank, 1));
    dilations = node.Ints("dilations", Index(rank, 1));
    const Index pads = node.Ints("pads", Index(2 * rank, 0));
    begin.assign(pads.begin(), pads.begin() + rank);
    end.assign(pads.begin() + rank, pads.end());
    const std::string automatic = node.String("auto_pad", "NOTSET");
    if (automatic == "NOTSET") return;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t size = x[static_cast<int>(i) + 2];
      const int64_t out = (size + strides[i] - 1) / strides[i];
      const int64_t all =
          automatic == "VALID" ? 0 : std::max<int64_t>((out - 1) * strides[i] + Reach(i) - size, 0);
      begin[i] = automatic == "SAME_LOWER" ? all - all / 2 : all / 2;
      end[i] = all - begin[i];
    }
  }

  // Elements from the first to the last that a window sees.
  int64_t Reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }

  int64_t Out(size_t i, int64_t size, bool ceil) const {
    const int64_t room = size + begin[i] + end[i] - Reach(i);
    int64_t out = room / strides[i] + 1;
    if (ceil && room % strides[i] != 0) ++out;
    // A window that would start in the padding behind is left out.
    if (ceil && (out - 1) * strides[i] >= size + begin[i]) --out;
    return out;
  }

  Shape Outs(const Shape& x, int64_t channels, bool ceil) const {
    Shape shape = {x[0], channels};
    for (size_t i = 0; i < kernel.size(); ++i) {
      shape.push_back(Out(i, x[static_cast<int>(i) + 2], ceil));
    }
    return shape;
  }

  Shape Taps() const { return Shape(kernel); }

  // Where a tap of the window of an output lies; false outside of x.
  bool At(const Index& out, const Index& tap, const Shape& x, Index* at) const {
    bool inside = true;
    for (size_t i = 0; i < kernel.size(); ++i) {
      (*at)[i + 2] = out[i + 2] * strides[i] + tap[i] * dilations[i] - begin[i];
      inside &= (*at)[i + 2] >= 0 && (*at)[i + 2] < x[static_cast<int>(i) + 2];
    }
    return inside;
  }

  // Within x or its padding.
  bool Padded(const Index& at, const Shape& x) const {
    for (size_t i = 0; i < kernel.size(); ++i) {
      if (at[i + 2] < -begin[i] || at[i + 2] >= x[static_cast<int>(i) + 2] + end[i]) return false;
    }
    return true;
  }
};

Index Tail(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Index Weight(int64_t first, int64_t second, const Index& tap) {
  Index at = {first, second};
  at.insert(at.end(), tap.begin(), tap.end());
  return at;
}

Arrays Conv(const Call& c) {
  const Array &x = c.in[0], &w = c.in[1];
  const Walk walk(c.node, Tail(w.shape), x.shape);
  const int64_t groups = c.node.Int("group", 1);
  const int64_t inner = w.shape[1], outer = w.shape[0] / groups;
  return {Make(x.dtype, walk.Outs(x.shape, w.shape[0], false), [&](const Index& out) {
    Number sum = c.Has(2) ? c.in[2].values[out[1]] : 0;
    Index at = out;
    ForEach(walk.Taps(), [&](const Index& tap) {
      if (!walk.At(out, tap, x.shape, &at)) return;
      for (int64_t i = 0; i < inner; ++i) {
        at[1] = out[1] / outer * inner + i;
        sum += x[at] * w[Weight(out[1], i, tap)];
      }
    });
    return sum;
  })};
}

// Every input element adds its share to the window it opens.
Arrays ConvTranspose(const Call& c) {
  const Array &x = c.in[0], &w = c.in[1];
  Walk walk(c.node, Tail(w.shape), x.shape);
  const size_t rank = walk.kernel.size();
  const Index extra = c.node.Ints("output_padding", Index(rank, 0));
  const Index wanted = c.node.Ints("output_shape");
  const std::string automatic = c.node.String("auto_pad", "NOTSET");
  const int64_t groups = c.node.Int("group", 1);
  const int64_t inner = x.shape[1] / groups, outer = w.shape[1];
  Shape shape = {x.shape[0], outer * groups};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = x.shape[static_cast<int>(i) + 2];
    const int64_t full = (size - 1) * walk.strides[i] + walk.Reach(i) + extra[i];
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    int64_t out = full - walk.begin[i] - walk.end[i];
    if (same) out = size * walk.strides[i];
    if (!wanted.empty()) out = wanted[i];
    if (same || !wanted.empty()) {
      const int64_t all = full - out;
      walk.begin[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    }
    shape.push_back(out);
  }
  Array y =
      Make(x.dtype, shape, [&](const Index& at) { return c.Has(2) ? c.in[2].values[at[1]] : 0; });
  ForEach(x.shape, [&](const Index& from) {
    Index at = from;
    ForEach(walk.Taps(), [&](const Index& tap) {
      if (!walk.At(from, tap, shape, &at)) return;
      for (int64_t o = 0; o < outer; ++o) {
        at[1] = from[1] / inner * outer + o;
        y[at] += x[from] * w[Weight(from[1], o, tap)];
      }
    });
  });
  return {y};
}

// The elements that a window sees: visit(value, index in x).
template <typename F>
void Seen(const Walk& walk, const Array& x, const Index& out, F visit) {
  Index at = out;
  ForEach(walk.Taps(), [&](const Index& tap) {
    if (walk.At(out, tap, x.shape, &at)) visit(x[at], at);
  });
}

Arrays MaxPool(const Call& c) {
  const Array& x = c.in[0];
  const Walk walk(c.node, c.node.Ints("kernel_shape"), x.shape);
  const bool columns = c.node.Int("storage_order", 0) != 0;
  const Shape shape = walk.Outs(x.shape, x.shape[1], c.node.Int("ceil_mode", 0) != 0);
  Array indices(DType::kInt64, shape);
  Array y = Make(x.dtype, shape, [&](const Index& out) {
    Number best = 0;
    bool any = false;
    Seen(walk, x, out, [&](Number v, const Index& at) {
      if (any && !(v > best) && !std::isnan(v)) return;
      any = true;
      best = v;
      int64_t offset = x.Offset(at);
      if (columns) {  // the last axis counts slowest within a plane
        offset = at[0] * x.shape[1] + at[1];
        for (int d = x.rank() - 1; d >= 2; --d) offset = offset * x.shape[d] + at[d];
      }
      indices[out] = static_cast<Number>(offset);
    });
    return best;
  });
  return {y, indices};
}

// Winners lie as [N, groups of 8 channels, positions, 8], groups for whole blocks of 16.
int64_t WinnerOffset(const Shape& y, const Index& at) {
  const int64_t groups = (y[1] + 15) / 16 * 2;
  int64_t position = 0;
  for (int d = 2; d < y.rank(); ++d) position = position * y[d] + at[d];
  const int64_t group = at[0] * groups + at[1] / 8;
  return (group * y.elements(2, y.rank()) + position) * 8 + at[1] % 8;
}

// MaxPool, and the number of the winning tap among those of its window that lie in X: 255
// where Relu's gradient stops.
Arrays MaxPoolWinners(const Call& c) {
  const Array& x = c.in[0];
  const Walk walk(c.node, c.node.Ints("kernel_shape"), x.shape);
  const bool relu = c.node.String("activation", "") == "Relu";
  const Shape shape = walk.Outs(x.shape, x.shape[1], c.node.Int("ceil_mode", 0) != 0);
  if (shape[1] % 16 != 0) throw NotDefined("winners of channels that are not there");
  Array winners(DType::kUint8, shape);
  Array y = Make(x.dtype, shape, [&](const Index& out) {
    Number best = 0, tap_number = 0, winner = -1;
    Index at = out;
    ForEach(walk.Taps(), [&](const Index& tap) {
      if (!walk.At(out, tap, x.shape, &at)) return;
      if (winner < 0 || x[at] > best) {
        best = x[at];
        winner = tap_number;
      }
      tap_number += 1;
    });
    winners.values[WinnerOffset(shape, out)] = relu && !(best > 0) ? 255 : winner;
    return best;
  });
  return {y, winners};
}

// (dY, winners, X): each window's gradient goes to its winner.
Arrays MaxPoolWinnersGrad(const Call& c) {
  const Array &dy = c.in[0], &winners = c.in[1];
  const Shape& x = c.in[2].shape;
  const Walk walk(c.node, c.node.Ints("kernel_shape"), x);
  Array dx(dy.dtype, x);
  ForEach(dy.shape, [&](const Index& out) {
    Number tap_number = 0;
    Index at = out;
    ForEach(walk.Taps(), [&](const Index& tap) {
      if (!walk.At(out, tap, x, &at)) return;
      if (tap_number == winners.values[WinnerOffset(dy.shape, out)]) dx[at] += dy[out];
      tap_number += 1;
    });
  });
  return {dx};
}

Arrays AveragePool(const Call& c) {
  const Array& x = c.in[0];
  const Walk walk(c.node, c.node.Ints("kernel_shape"), x.shape);
  const bool with_pads = c.node.Int("count_include_pad", 0) != 0;
  const Shape shape = walk.Outs(x.shape, x.shape[1], c.node.Int("ceil_mode", 0) != 0);
  return {Make(x.dtype, shape, [&](const Index& out) {
    Number sum = 0, count = 0;
    Index at = out;
    ForEach(walk.Taps(), [&](const Index& tap) {
      const bool inside = walk.At(out, tap, x.shape, &at);
      if (inside) sum += x[at];
      if (inside || (with_pads && walk.Padded(at, x.shape))) count += 1;
    });
    return sum / count;
  })};
}

Arrays LpPool(const Call& c) {
  const Array& x = c.in[0];
  const Walk walk(c.node, c.node.Ints("kernel_shape"), x.shape);
  const auto p = static_cast<Number>(c.node.Int("p", 2));
  const Shape shape = walk.Outs(x.shape, x.shape[1], c.node.Int("ceil_mode", 0) != 0);
  return {Make(x.dtype, shape, [&](const Index& out) {
    Number sum = 0;
    Seen(walk, x, out, [&](Number v, const Index&) { sum += std::pow(std::fabs(v), p); });
    return std::pow(sum, 1 / p);
  })};
}

// f of each plane's elements.
template <typename F>
Arrays Global(const Call& c, F f) {
  const Array& x = c.in[0];
  Shape shape = x.shape;
  for (int d = 2; d < x.rank(); ++d) shape[d] = 1;
  const int64_t n = x.shape.elements(2, x.rank());
  Array y(x.dtype, shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    y.values[i] = f(std::vector<Number>(x.values.begin() + i * n, x.values.begin() + (i + 1) * n));
  }
  return {y};
}

Arrays GlobalAveragePool(const Call& c) {
  return Global(c, [](const std::vector<Number>& plane) {
    Number sum = 0;
    for (const Number v : plane) sum += v;
    return sum / static_cast<Number>(plane.size());
  });
}

Arrays GlobalMaxPool(const Call& c) {
  return Global(c, [](const std::vector<Number>& plane) {
    Number best = plane[0];
    for (const Number v : plane) best = v > best ? v : best;
    return best;
  });
}

Arrays GlobalLpPool(const Call& c) {
  const auto p = static_cast<Number>(c.node.Int("p", 2));
  return Global(c, [p](const std::vector<Number>& plane) {
    Number sum = 0;
    for (const Number v : plane) sum += std::pow(std::fabs(v), p);
    return std::pow(sum, 1 / p);
  });
}

}  // namespace

const Table& WindowTable() {
  static const auto* const table = new Table{
      {"Conv", Conv},
      {"ConvTranspose", ConvTranspose},
      {"MaxPool", MaxPool},
      {"MaxPoolWinners", MaxPoolWinners},
      {"MaxPoolWinnersGrad", MaxPoolWinnersGrad},
      {"AveragePool", AveragePool},
      {"LpPool", LpPool},
      {"GlobalAveragePool", GlobalAveragePool},
      {"GlobalMaxPool", GlobalMaxPool},
      {"GlobalLpPool", GlobalLpPool},
  };
  return *table;
}

}  // namespace onward::reference
