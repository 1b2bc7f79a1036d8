// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

struct Moments {
  Number mean = 0, variance = 0;
};

// Of x over all indices that `belongs` accepts.
template <typename F>
Moments MomentsOf(const Array& x, F belongs) {
  Number sum = 0, squares = 0, n = 0;
  ForEach(x.shape, [&](const Index& at) {
    if (!belongs(at)) return;
    sum += x[at];
    n += 1;
  });
  const Number mean = sum / n;
  ForEach(x.shape, [&](const Index& at) {
    if (belongs(at)) squares += (x[at] - mean) * (x[at] - mean);
  });
  return {mean, squares / n};
}

Number Normalized(Number x, const Moments& m, Number epsilon) {
  return (x - m.mean) / std::sqrt(m.variance + epsilon);
}

int64_t Channel(const Index& at) { return at.size() > 1 ? at[1] : 0; }

Arrays BatchNormalization(const Call& c) {
  const Array& x = c.in[0];
  const Number epsilon = c.node.Float("epsilon", 1e-5f), momentum = c.node.Float("momentum", 0.9f);
  Array mean = c.in[3], variance = c.in[4], running_mean = mean, running_variance = variance;
  const bool training = c.node.Int("training_mode", 0) != 0;
  for (int64_t k = 0; training && k < mean.size(); ++k) {
    const Moments m = MomentsOf(x, [&](const Index& at) { return Channel(at) == k; });
    running_mean.values[k] = mean.values[k] * momentum + m.mean * (1 - momentum);
    running_variance.values[k] = variance.values[k] * momentum + m.variance * (1 - momentum);
    mean.values[k] = m.mean;
    variance.values[k] = m.variance;
  }
  Array y = Make(x.dtype, x.shape, [&](const Index& at) {
    const int64_t k = Channel(at);
    return Normalized(x[at], {mean.values[k], variance.values[k]}, epsilon) * c.in[1].values[k] +
           c.in[2].values[k];
  });
  return {y, running_mean, running_variance};
}

// The indices that agree with `at` before `axis`.
auto SameBefore(const Index& at, int axis) {
  return [&at, axis](const Index& other) {
    for (int d = 0; d < axis; ++d) {
      if (other[d] != at[d]) return false;
    }
    return true;
  };
}

Arrays LayerNormalization(const Call& c) {
  const Array& x = c.in[0];
  const Number epsilon = c.node.Float("epsilon", 1e-5f);
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  Shape kept = x.shape;
  for (int d = axis; d < x.rank(); ++d) kept[d] = 1;
  // The statistics are of the type they are computed in: at least float.
  const DType precise = x.dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
  Array mean(precise, kept), inverse(precise, kept);
  ForEach(kept, [&](const Index& at) {
    const Moments m = MomentsOf(x, SameBefore(at, axis));
    mean[at] = m.mean;
    inverse[at] = 1 / std::sqrt(m.variance + epsilon);
  });
  Array y = Make(x.dtype, x.shape, [&](const Index& at) {
    const Number n = (x[at] - mean.Broadcast(at)) * inverse.Broadcast(at);
    return n * c.in[1].Broadcast(at) + (c.Has(2) ? c.in[2].Broadcast(at) : 0);
  });
  return {y, mean, inverse};
}

Arrays RMSNormalization(const Call& c) {
  const Array& x = c.in[0];
  const Number epsilon = c.node.Float("epsilon", 1e-5f);
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    const Moments m = MomentsOf(x, SameBefore(at, axis));
    const Number squares = m.variance + m.mean * m.mean;
    return x[at] / std::sqrt(squares + epsilon) * c.in[1].Broadcast(at);
  })};
}

Arrays GroupsNormalized(const Call& c, int64_t groups) {
  const Array& x = c.in[0];
  const Number epsilon = c.node.Float("epsilon", 1e-5f);
  const int64_t width = x.shape[1] / groups;
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    const Moments m = MomentsOf(x, [&](const Index& other) {
      return other[0] == at[0] && other[1] / width == at[1] / width;
    });
    return Normalized(x[at], m, epsilon) * c.in[1].values[at[1]] + c.in[2].values[at[1]];
  })};
}

Arrays InstanceNormalization(const Call& c) { return GroupsNormalized(c, c.in[0].shape[1]); }
Arrays GroupNormalization(const Call& c) {
  return GroupsNormalized(c, c.node.Int("num_groups", 1));
}

Arrays LpNormalization(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  const auto p = static_cast<Number>(c.node.Int("p", 2));
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    Number sum = 0;
    for (int64_t i = 0; i < x.shape[axis]; ++i) {
      sum += std::pow(std::fabs(x[With(at, axis, i)]), p);
    }
    return sum == 0 ? 0 : x[at] / std::pow(sum, 1 / p);
  })};
}

Arrays Lrn(const Call& c) {
  const Array& x = c.in[0];
  const int64_t size = c.node.Int("size", 1);
  const Number alpha = c.node.Float("alpha", 1e-4f), beta = c.node.Float("beta", 0.75f);
  const Number bias = c.node.Float("bias", 1);
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    Number sum = 0;
    for (int64_t k = at[1] - (size - 1) / 2; k <= at[1] + size / 2; ++k) {
      if (k < 0 || k >= x.shape[1]) continue;
      sum += x[With(at, 1, k)] * x[With(at, 1, k)];
    }
    return x[at] / std::pow(bias + alpha / static_cast<Number>(size) * sum, beta);
  })};
}

}  // namespace

const Table& NormTable() {
  static const auto* const table = new Table{
      {"BatchNormalization", BatchNormalization},
      {"LayerNormalization", LayerNormalization},
      {"RMSNormalization", RMSNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"GroupNormalization", GroupNormalization},
      {"LpNormalization", LpNormalization},
      {"LRN", Lrn},
  };
  return *table;
}

}  // namespace onward::reference
