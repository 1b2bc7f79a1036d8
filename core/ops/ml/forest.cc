// SPDX-License-Identifier: Apache-2.0
#include "core/ops/ml/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onward {

// The number of type T that compares with every T as node.value does.
template <typename T>
T Forest<T>::Threshold(const SourceNode& node) {
  const T near = static_cast<T>(node.value);
  const double back = static_cast<double>(near);
  if (back == node.value || std::isnan(node.value)) return near;
  const T infinity = std::numeric_limits<T>::infinity();
  switch (node.mode) {
    case Branch::kLeq:
    case Branch::kGt: return back > node.value ? std::nextafter(near, -infinity) : near;
    case Branch::kLt:
    case Branch::kGte: return back < node.value ? std::nextafter(near, infinity) : near;
    case Branch::kEq:
    case Branch::kNeq: return std::numeric_limits<T>::quiet_NaN();
    default: return near;
  }
}

template <typename T>
Forest<T>::Forest(const TreeSource& source, Aggregate aggregate)
    : aggregate_(aggregate), targets_(source.targets), roots_(source.roots) {
  bool first = true;
  single_ = source.targets == 1 && aggregate != Aggregate::kMin && aggregate != Aggregate::kMax;
  for (size_t i = 0; i < source.nodes.size(); ++i) {
    const SourceNode& n = source.nodes[i];
    const int32_t self = static_cast<int32_t>(i);
    const bool leaf = n.mode == Branch::kLeaf;
    nodes_.push_back({Threshold(n), leaf ? 0 : static_cast<int32_t>(n.feature), leaf ? self : n.yes,
                      leaf ? self : n.no});
    modes_.push_back(n.mode);
    missing_yes_.push_back(n.missing_yes);
    begins_.push_back(n.begin);
    ends_.push_back(n.end);
    if (leaf) {
      single_ &= n.end - n.begin == 1;
      if (n.end > n.begin) nodes_[i].value = static_cast<T>(source.weights[n.begin].weight);
      continue;
    }
    missing_ |= n.missing_yes;
    uniform_ &= n.mode != Branch::kMember && (first || n.mode == mode_);
    mode_ = n.mode;
    first = false;
  }
  for (const LeafWeight& w : source.weights) {
    weight_targets_.push_back(w.target);
    weights_.push_back(static_cast<T>(w.weight));
  }
  for (const double member : source.members) members_.push_back(static_cast<T>(member));
  const double depth = nodes_.empty() ? 1 : std::log2(1 + static_cast<double>(nodes_.size()));
  cost_ = static_cast<int64_t>(static_cast<double>(roots_.size()) * 4 * depth);
}

template <typename T>
bool Forest<T>::IsMember(int32_t node, T x) const {
  return std::binary_search(members_.begin() + begins_[node], members_.begin() + ends_[node], x);
}

template <typename T>
template <Branch mode, bool missing>
bool Forest<T>::Goes(int32_t at, T x) const {
  const T value = nodes_[at].value;
  bool yes = false;
  if constexpr (mode == Branch::kLeq) yes = x <= value;
  if constexpr (mode == Branch::kLt) yes = x < value;
  if constexpr (mode == Branch::kGte) yes = x >= value;
  if constexpr (mode == Branch::kGt) yes = x > value;
  if constexpr (mode == Branch::kEq) yes = x == value;
  if constexpr (mode == Branch::kNeq) yes = x != value;
  if constexpr (mode == Branch::kMember) yes = IsMember(at, x);
  if constexpr (missing) yes |= missing_yes_[at] && std::isnan(x);
  return yes;
}

template <typename T>
bool Forest<T>::GoesAnyway(int32_t at, T x) const {
  switch (modes_[at]) {
    case Branch::kLeq: return Goes<Branch::kLeq, true>(at, x);
    case Branch::kLt: return Goes<Branch::kLt, true>(at, x);
    case Branch::kGte: return Goes<Branch::kGte, true>(at, x);
    case Branch::kGt: return Goes<Branch::kGt, true>(at, x);
    case Branch::kEq: return Goes<Branch::kEq, true>(at, x);
    case Branch::kNeq: return Goes<Branch::kNeq, true>(at, x);
    case Branch::kMember: return Goes<Branch::kMember, true>(at, x);
    case Branch::kLeaf: return true;
  }
  return true;
}

// The leaves that `side` rows end in.
template <typename T>
template <int side, typename Test>
void Forest<T>::Walk(const Test& goes, int32_t root, const T* x, int64_t width,
                     int32_t* ends) const {
  for (int k = 0; k < side; ++k) ends[k] = root;
  for (bool moved = true; moved;) {
    moved = false;
    for (int k = 0; k < side; ++k) {
      const int32_t at = ends[k];
      const Flat& node = nodes_[at];
      const int32_t next = goes(at, x[k * width + node.feature]) ? node.yes : node.no;
      moved |= next != at;
      ends[k] = next;
    }
  }
}

template <typename T>
void Forest<T>::Add(int32_t leaf, T* scores, uint8_t* scored) const {
  for (int32_t i = begins_[leaf]; i < ends_[leaf]; ++i) {
    const int32_t target = weight_targets_[i];
    const T weight = weights_[i];
    T& score = scores[target];
    if (aggregate_ == Aggregate::kMin) {
      if (!scored[target] || weight < score) score = weight;
    } else if (aggregate_ == Aggregate::kMax) {
      if (!scored[target] || weight > score) score = weight;
    } else {
      score += weight;
    }
    scored[target] = 1;
  }
}

template <typename T>
template <typename Test>
void Forest<T>::WalkAll(const Test& goes, const T* x, int64_t width, int64_t rows, T* scores,
                        uint8_t* scored) const {
  int32_t ends[kSide];
  for (const int32_t root : roots_) {
    for (int64_t row = 0; row < rows;) {
      int64_t n = 1;
      if (rows - row >= kSide) {
        n = kSide;
        Walk<kSide>(goes, root, x + row * width, width, ends);
      } else {
        Walk<1>(goes, root, x + row * width, width, ends);
      }
      for (int64_t k = 0; k < n; ++k) {
        if (single_) {
          scores[row + k] += nodes_[ends[k]].value;
        } else {
          Add(ends[k], scores + (row + k) * targets_, scored + (row + k) * targets_);
        }
      }
      row += n;
    }
  }
}

template <typename T>
template <Branch mode>
void Forest<T>::WalkMode(const T* x, int64_t width, int64_t rows, T* scores,
                         uint8_t* scored) const {
  if (missing_) {
    WalkAll([this](int32_t at, T value) { return Goes<mode, true>(at, value); }, x, width, rows,
            scores, scored);
  } else {
    WalkAll([this](int32_t at, T value) { return Goes<mode, false>(at, value); }, x, width, rows,
            scores, scored);
  }
}

template <typename T>
void Forest<T>::Score(const T* x, int64_t width, int64_t rows, T* scores, uint8_t* scored) const {
  std::fill(scores, scores + rows * targets_, T(0));
  std::fill(scored, scored + rows * targets_, uint8_t{single_});
  if (!uniform_) {
    return WalkAll([this](int32_t at, T value) { return GoesAnyway(at, value); }, x, width, rows,
                   scores, scored);
  }
  switch (mode_) {
    case Branch::kLt: return WalkMode<Branch::kLt>(x, width, rows, scores, scored);
    case Branch::kGte: return WalkMode<Branch::kGte>(x, width, rows, scores, scored);
    case Branch::kGt: return WalkMode<Branch::kGt>(x, width, rows, scores, scored);
    case Branch::kEq: return WalkMode<Branch::kEq>(x, width, rows, scores, scored);
    case Branch::kNeq: return WalkMode<Branch::kNeq>(x, width, rows, scores, scored);
    default: return WalkMode<Branch::kLeq>(x, width, rows, scores, scored);
  }
}

template class Forest<float>;
template class Forest<double>;

}  // namespace onward
