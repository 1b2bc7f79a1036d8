// SPDX-License-Identifier: Apache-2.0
// Trees as flat arrays, walked by blocks of rows: eight rows go down one tree side by side, so
// that the processor waits for eight loads at once.
#ifndef ONWARD_CORE_OPS_ML_FOREST_H_
#define ONWARD_CORE_OPS_ML_FOREST_H_

#include <cstdint>
#include <vector>

#include "core/ops/ml/tree_source.h"

namespace onward {

enum class Aggregate { kSum, kAverage, kMin, kMax };

template <typename T>
class Forest {
 public:
  Forest(const TreeSource& source, Aggregate aggregate);

  int64_t targets() const { return targets_; }
  int64_t trees() const { return static_cast<int64_t>(roots_.size()); }
  // Additions that a row costs, about.
  int64_t cost() const { return cost_; }

  // scores [rows, targets]: what the leaves that each of the rows reaches give, together;
  // scored: whether any leaf named the target.
  void Score(const T* x, int64_t width, int64_t rows, T* scores, uint8_t* scored) const;

 private:
  // A leaf leads to itself.
  struct Flat {
    T value;          // compared with; of a leaf with one weight, that
    int32_t feature;  // of a leaf, 0
    int32_t yes, no;
  };
  static constexpr int kSide = 8;  // rows side by side

  static T Threshold(const SourceNode& node);
  bool IsMember(int32_t node, T x) const;
  // Whether the row goes to `yes`.
  template <Branch mode, bool missing>
  bool Goes(int32_t at, T x) const;
  bool GoesAnyway(int32_t at, T x) const;
  template <typename Test>
  void WalkAll(const Test& goes, const T* x, int64_t width, int64_t rows, T* scores,
               uint8_t* scored) const;
  template <int side, typename Test>
  void Walk(const Test& goes, int32_t root, const T* x, int64_t width, int32_t* ends) const;
  template <Branch mode>
  void WalkMode(const T* x, int64_t width, int64_t rows, T* scores, uint8_t* scored) const;
  void Add(int32_t leaf, T* scores, uint8_t* scored) const;

  Aggregate aggregate_;
  int64_t targets_, cost_ = 0;
  bool single_ = false;   // one target, one weight in each leaf, and a sum
  bool missing_ = false;  // some NaN goes to `yes`
  bool uniform_ = true;   // all branches compare by mode_
  Branch mode_ = Branch::kLeq;
  std::vector<Flat> nodes_;
  std::vector<int32_t> roots_;
  std::vector<Branch> modes_;
  std::vector<uint8_t> missing_yes_;
  std::vector<int32_t> begins_, ends_;  // of each node, in weights or members
  std::vector<int32_t> weight_targets_;
  std::vector<T> weights_, members_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ML_FOREST_H_
