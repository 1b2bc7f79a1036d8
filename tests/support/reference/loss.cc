// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

// -weight * logp at the label of each position, then reduced; ignored positions count for
// nothing.
Array Likelihood(const Call& c, const Array& logp) {
  const Array& labels = c.in[1];
  const std::string reduction = c.node.String("reduction", "mean");
  const bool ignores = c.node.Has("ignore_index");
  const int64_t ignored = c.node.Int("ignore_index", 0);
  Array each(logp.dtype, labels.shape);
  Number sum = 0, weights = 0;
  ForEach(labels.shape, [&](const Index& at) {
    const auto label = static_cast<int64_t>(labels[at]);
    if (ignores && label == ignored) return;
    Index where = at;
    where.insert(where.begin() + 1, label);
    const Number weight = c.Has(2) ? c.in[2].values[label] : 1;
    each[at] = -weight * logp[where];
    sum += each[at];
    weights += weight;
  });
  if (reduction == "none") return each;
  Array loss(logp.dtype, {});
  loss.values[0] = reduction == "sum" ? sum : sum / weights;
  return loss;
}

Arrays NegativeLogLikelihoodLoss(const Call& c) { return {Likelihood(c, c.in[0])}; }

Arrays SoftmaxCrossEntropyLoss(const Call& c) {
  const Array& x = c.in[0];
  const Array logp = Make(x.dtype, x.shape, [&](const Index& at) {
    Number sum = 0;
    for (int64_t k = 0; k < x.shape[1]; ++k) sum += std::exp(x[With(at, 1, k)]);
    return x[at] - std::log(sum);
  });
  return {Likelihood(c, logp), logp};
}

}  // namespace

const Table& LossTable() {
  static const auto* const table = new Table{
      {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss},
  };
  return *table;
}

}  // namespace onward::reference
