// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/dataset_view.h"
#include "data/permutation.h"
#include "data/random.h"

namespace onward {
namespace {

class Selection : public DatasetView {
 public:
  Selection(std::shared_ptr<const Dataset> data, std::vector<int64_t> indices)
      : DatasetView(std::move(data)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> mapped, Mapped(indices));
    return base().Fill(mapped, batch);
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> mapped, Mapped(indices));
    return base().FillVaried(mapped, keys, batch);
  }
  Tensor class_labels() const override {
    const Tensor all = base().class_labels();
    if (!all.defined()) return all;
    Shape shape = all.shape();
    shape[0] = size();
    Tensor labels(DType::kInt64, shape);
    const int64_t each = all.shape().elements(1, all.shape().rank());
    for (int64_t i = 0; i < size(); ++i) {
      std::copy_n(all.data<int64_t>() + indices_[i] * each, each,
                  labels.data<int64_t>() + i * each);
    }
    return labels;
  }
  std::string place(int64_t example) const override { return base().place(indices_[example]); }

 private:
  absl::StatusOr<std::vector<int64_t>> Mapped(absl::Span<const int64_t> indices) const {
    std::vector<int64_t> mapped;
    mapped.reserve(indices.size());
    for (int64_t i : indices) {
      if (i < 0 || i >= size()) {
        return absl::OutOfRangeError(absl::StrCat("example ", i, " of a data set of ", size()));
      }
      mapped.push_back(indices_[i]);
    }
    return mapped;
  }

  std::vector<int64_t> indices_;
};

bool OneClassEach(int64_t size, const Tensor& labels) {
  return labels.defined() && labels.elements() == size;
}

// The examples of each class, in order; all together where there are no classes.
std::map<int64_t, std::vector<int64_t>> ByClass(int64_t size, const Tensor& labels) {
  std::map<int64_t, std::vector<int64_t>> groups;
  const bool classes = OneClassEach(size, labels);
  for (int64_t i = 0; i < size; ++i) {
    groups[classes ? labels.data<int64_t>()[i] : 0].push_back(i);
  }
  return groups;
}

// How many of each group to take, so that they are `total` together: the share rounded down,
// and one more for those that lose most by that.
std::vector<int64_t> Apportion(const std::map<int64_t, std::vector<int64_t>>& groups, double share,
                               int64_t total) {
  std::vector<int64_t> counts;
  std::vector<std::pair<double, size_t>> losses;  // negative, so that sorting is by the largest
  for (const auto& [label, examples] : groups) {
    const double exact = share * static_cast<double>(examples.size());
    losses.emplace_back(std::floor(exact) - exact, counts.size());
    counts.push_back(static_cast<int64_t>(std::floor(exact)));
  }
  std::sort(losses.begin(), losses.end());
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; left > 0 && i < losses.size(); ++i, --left) ++counts[losses[i].second];
  return counts;
}

SplitIndices TakeShare(const std::map<int64_t, std::vector<int64_t>>& groups, double share,
                       int64_t total, uint64_t seed) {
  const std::vector<int64_t> counts = Apportion(groups, share, total);
  SplitIndices parts;
  size_t group = 0;
  for (const auto& [label, examples] : groups) {
    const std::vector<int64_t> order =
        Permutation(static_cast<int64_t>(examples.size()), seed, label);
    for (size_t i = 0; i < order.size(); ++i) {
      const bool trains = static_cast<int64_t>(i) < counts[group];
      (trains ? parts.train : parts.rest).push_back(examples[order[i]]);
    }
    ++group;
  }
  return parts;
}

// The folds are dealt like cards, one class after the other, so that they differ by one example
// at most, in each class and in all.
SplitIndices TakeFold(const std::map<int64_t, std::vector<int64_t>>& groups, const Fold& fold,
                      uint64_t seed) {
  SplitIndices parts;
  int64_t dealt = 0;
  for (const auto& [label, examples] : groups) {
    const std::vector<int64_t> order =
        Permutation(static_cast<int64_t>(examples.size()), seed, label);
    for (const int64_t i : order) {
      const bool rest = dealt++ % fold.count == fold.number - 1;
      (rest ? parts.rest : parts.train).push_back(examples[i]);
    }
  }
  return parts;
}

std::string RuleText(const SplitRule& rule) {
  return rule.fold ? absl::StrCat("fold=", rule.fold->number, "/", rule.fold->count)
                   : absl::StrCat("split=", *rule.share);
}

}  // namespace

std::unique_ptr<Dataset> SelectExamples(std::shared_ptr<const Dataset> data,
                                        std::vector<int64_t> indices) {
  return std::make_unique<Selection>(std::move(data), std::move(indices));
}

absl::StatusOr<SplitIndices> SplitExamples(int64_t size, const Tensor& labels,
                                           const SplitRule& rule, absl::string_view source) {
  const int64_t total = rule.fold ? size - size / rule.fold->count
                                  : std::llround(*rule.share * static_cast<double>(size));
  if (total < 1 || total >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", RuleText(rule), " of ", size, " examples leaves a part empty"));
  }
  const auto groups = ByClass(size, labels);
  SplitIndices parts = rule.fold ? TakeFold(groups, *rule.fold, rule.seed)
                                 : TakeShare(groups, *rule.share, total, rule.seed);
  std::sort(parts.train.begin(), parts.train.end());
  std::sort(parts.rest.begin(), parts.rest.end());
  return parts;
}

absl::StatusOr<SplitParts> SplitDataset(std::shared_ptr<const Dataset> data,
                                        const SplitRule& rule) {
  ONWARD_ASSIGN_OR_RETURN(SplitIndices parts,
                          SplitExamples(data->size(), data->class_labels(), rule, data->source()));
  return SplitParts{SelectExamples(data, std::move(parts.train)),
                    SelectExamples(data, std::move(parts.rest))};
}

std::vector<int64_t> ClassCounts(const Dataset& data) {
  const Tensor labels = data.class_labels();
  if (!OneClassEach(data.size(), labels)) return {};
  std::vector<int64_t> counts(static_cast<size_t>(data.classes()), 0);
  for (int64_t label : labels.values<int64_t>()) {
    if (label >= 0 && label < data.classes()) ++counts[label];
  }
  return counts;
}

absl::StatusOr<std::vector<double>> ClassWeights(const Dataset& data) {
  const std::vector<int64_t> counts = ClassCounts(data);
  if (counts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.source(), ": weights of classes need one class for each example"));
  }
  const auto examples =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto occurring = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; }));
  std::vector<double> weights;
  for (int64_t n : counts) {
    weights.push_back(n == 0 ? 0 : examples / (occurring * static_cast<double>(n)));
  }
  return weights;
}

std::vector<int64_t> BalancedOrder(absl::Span<const int64_t> labels, uint64_t seed, int64_t epoch) {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0) groups[labels[i]].push_back(static_cast<int64_t>(i));
  }
  const auto size = static_cast<int64_t>(labels.size());
  const auto classes = static_cast<int64_t>(groups.size());
  if (classes == 0) return Permutation(size, seed, epoch);
  // Where the classes do not divide the epoch, other ones get one more each time.
  const std::vector<int64_t> turns = Permutation(classes, ExampleKey(seed, epoch, -1, 0), 0);
  std::vector<int64_t> drawn;
  drawn.reserve(labels.size());
  size_t group = 0;
  for (const auto& [label, examples] : groups) {
    const auto count = static_cast<int64_t>(examples.size());
    int64_t wanted = size / classes + (turns[group++] < size % classes ? 1 : 0);
    for (int64_t round = 0; wanted > 0; ++round) {
      const uint64_t key = ExampleKey(seed, epoch, label, round);
      const std::vector<int64_t> order = Permutation(count, key, 0);
      const int64_t take = std::min(wanted, count);
      for (int64_t i = 0; i < take; ++i) drawn.push_back(examples[order[i]]);
      wanted -= take;
    }
  }
  const std::vector<int64_t> order = Permutation(size, seed, epoch);
  std::vector<int64_t> shuffled;
  shuffled.reserve(drawn.size());
  for (int64_t i : order) shuffled.push_back(drawn[i]);
  return shuffled;
}

}  // namespace onward
