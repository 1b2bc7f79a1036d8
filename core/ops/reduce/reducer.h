// SPDX-License-Identifier: Apache-2.0
// The loops of a reduction: map each element, fold the mapped values.
//
// Floats are folded in many float lanes for a bounded number of steps, then the
// lanes go into a double total: fast, and exact to about one rounding. How work
// is cut depends on the shape alone, so the bits do not depend on the number of
// threads.
#ifndef ONWARD_CORE_OPS_REDUCE_REDUCER_H_
#define ONWARD_CORE_OPS_REDUCE_REDUCER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/reduce/reduce.h"

namespace onward {

template <typename T>
using Widest = std::conditional_t<std::is_floating_point_v<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Folds: what lanes and totals are, the neutral value, and how two values join.
struct Plus {
  template <typename T>
  using Lane = std::conditional_t<std::is_floating_point_v<T>, T, Widest<T>>;
  template <typename T>
  using Total = Widest<T>;
  template <typename T>
  static T Neutral() {
    return T(0);
  }
  template <typename T>
  static T Join(T a, T b) {
    return WrapAdd(a, b);
  }
};

struct Times {
  template <typename T>
  using Lane = Widest<T>;
  template <typename T>
  using Total = Widest<T>;
  template <typename T>
  static T Neutral() {
    return T(1);
  }
  template <typename T>
  static T Join(T a, T b) {
    return WrapMul(a, b);
  }
};

struct Largest {
  template <typename T>
  using Lane = T;
  template <typename T>
  using Total = T;
  template <typename T>
  static T Neutral() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  }
  template <typename T>
  static T Join(T a, T b) {
    return NanMax(a, b);
  }
};

struct Smallest {
  template <typename T>
  using Lane = T;
  template <typename T>
  using Total = T;
  template <typename T>
  static T Neutral() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename T>
  static T Join(T a, T b) {
    return NanMin(a, b);
  }
};

// Folds Map::Apply(element, shift) into one total per result. `Map::kShifted`
// says whether shifts, one per result, are used.
template <typename Fold, typename Map, typename In>
class Reducer {
 public:
  using Mapped = decltype(Map::Apply(In(), In()));
  using Lane = typename Fold::template Lane<Mapped>;
  using Total = typename Fold::template Total<Mapped>;
  // Turns n totals into results; `shifts` belong to these results, or null.
  using Finish = void (*)(const Total* totals, int64_t n, int64_t count, const In* shifts,
                          In* results);

  Reducer(const ReducePlan& plan, const In* data, const In* shifts, In* results, Finish finish)
      : plan_(plan),
        width_(plan.run_reduced ? 1 : std::min(plan.run, kColumns)),
        tiles_(plan.run_reduced ? 1 : (plan.run + width_ - 1) / width_),
        data_(data),
        shifts_(shifts),
        results_(results),
        finish_(finish) {}

  void Run() const {
    if (plan_.outputs == 0) return;
    if (plan_.count == 0) {
      const Total neutral = Fold::template Neutral<Total>();
      for (int64_t i = 0; i < plan_.outputs; ++i) {
        finish_(&neutral, 1, 0, ShiftsAt(i), results_ + i);
      }
      return;
    }
    // A task is a group of neighbouring results; where there are few, each is
    // cut along the reduced elements too.
    const int64_t tasks = plan_.kept.size() * tiles_;
    const int64_t work = plan_.count * width_;
    const int64_t wanted = std::min((kPieces + tasks - 1) / tasks, plan_.count);
    const int64_t cuts = std::clamp<int64_t>(work / kPieceSize, 1, wanted);
    const auto totals = std::make_unique<Total[]>(cuts > 1 ? tasks * cuts * width_ : 0);
    ParallelFor(tasks * cuts, std::max<int64_t>(1, kPieceSize * cuts / work),
                [&](int64_t begin, int64_t end) {
                  Total local[kColumns];
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t cut = i % cuts;
                    Total* total = cuts > 1 ? &totals[i * width_] : local;
                    FoldTask(i / cuts, plan_.count * cut / cuts, plan_.count * (cut + 1) / cuts,
                             total);
                    if (cuts == 1) FinishTask(i, total);
                  }
                });
    for (int64_t task = 0; cuts > 1 && task < tasks; ++task) {
      Total* total = &totals[task * cuts * width_];
      for (int64_t cut = 1; cut < cuts; ++cut) {
        const Total* more = total + cut * width_;
        for (int64_t j = 0; j < width_; ++j) total[j] = Fold::Join(total[j], more[j]);
      }
      FinishTask(task, total);
    }
  }

 private:
  static constexpr int64_t kSteps = 64;         // of a lane before it joins the total
  static constexpr int64_t kShort = 16;         // elements not worth lanes
  static constexpr int64_t kColumns = 1024;     // results of a task, if the run is kept
  static constexpr int64_t kPieces = 16;        // enough to keep threads busy
  static constexpr int64_t kPieceSize = 16384;  // elements worth a thread
  static constexpr bool kSpills = !std::is_same_v<Lane, Total>;
  static constexpr int kLanes = sizeof(Lane) > 4 ? 16 : 32;
  static constexpr int kFewLanes = kLanes / 4;

  int64_t FirstResult(int64_t task) const {
    return plan_.run_reduced ? task : task / tiles_ * plan_.run + task % tiles_ * kColumns;
  }
  int64_t Width(int64_t task) const {
    return plan_.run_reduced ? 1 : std::min(kColumns, plan_.run - task % tiles_ * kColumns);
  }
  const In* ShiftsAt(int64_t result) const { return Map::kShifted ? shifts_ + result : nullptr; }
  static In ShiftAt(const In* shifts, int64_t i) {
    if constexpr (Map::kShifted) {
      return shifts[i];
    } else {
      return In();
    }
  }

  void FinishTask(int64_t task, const Total* totals) const {
    const int64_t first = FirstResult(task);
    finish_(totals, Width(task), plan_.count, ShiftsAt(first), results_ + first);
  }

  // Folds the reduced elements [begin, end) of a task.
  void FoldTask(int64_t task, int64_t begin, int64_t end, Total* totals) const {
    const In* shifts = ShiftsAt(FirstResult(task));
    if (plan_.run_reduced) {
      const In* data = data_ + plan_.kept.Offset(task);
      *totals = FoldRuns(data, ShiftAt(shifts, 0), begin, end);
    } else {
      const In* data = data_ + plan_.kept.Offset(task / tiles_) + task % tiles_ * kColumns;
      FoldColumns(data, shifts, begin, end, Width(task), totals);
    }
  }

  static Total Gather(const Lane* lanes, Total total) {
    Total wide[kLanes];
    for (int j = 0; j < kLanes; ++j) wide[j] = static_cast<Total>(lanes[j]);
    for (int w = kLanes / 2; w > 0; w /= 2) {
      for (int j = 0; j < w; ++j) wide[j] = Fold::Join(wide[j], wide[j + w]);
    }
    return Fold::Join(total, wide[0]);
  }

  // One result: elements [begin, end) of the runs that make it up.
  Total FoldRuns(const In* data, In shift, int64_t begin, int64_t end) const {
    constexpr int64_t kBlock = kLanes * kSteps;
    Total total = Fold::template Neutral<Total>();
    if (plan_.run == plan_.count && end - begin <= kShort) {
      for (; begin < end; ++begin) {
        total = Fold::Join(total, static_cast<Total>(Map::Apply(data[begin], shift)));
      }
      return total;
    }
    Lane lanes[kLanes];
    std::fill(lanes, lanes + kLanes, Fold::template Neutral<Lane>());
    int64_t row = begin / plan_.run, column = begin % plan_.run, steps = 0;
    while (begin < end) {
      const int64_t n = std::min({plan_.run - column, end - begin, kBlock});
      FoldIntoLanes(data + plan_.reduced.Offset(row) + column, n, shift, lanes);
      begin += n;
      column += n;
      if (column == plan_.run) {
        column = 0;
        ++row;
      }
      steps += n / kLanes + (n % kLanes + kFewLanes - 1) / kFewLanes;  // of the first lanes
      if (kSpills && steps >= kSteps) {
        total = Gather(lanes, total);
        std::fill(lanes, lanes + kLanes, Fold::template Neutral<Lane>());
        steps = 0;
      }
    }
    return Gather(lanes, total);
  }

  static void FoldIntoLanes(const In* x, int64_t n, In shift, Lane* lanes) {
    Lane local[kLanes];
    std::copy(lanes, lanes + kLanes, local);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        local[j] = Fold::Join(local[j], static_cast<Lane>(Map::Apply(x[i + j], shift)));
      }
    }
    for (; i + kFewLanes <= n; i += kFewLanes) {
      for (int j = 0; j < kFewLanes; ++j) {
        local[j] = Fold::Join(local[j], static_cast<Lane>(Map::Apply(x[i + j], shift)));
      }
    }
    for (int j = 0; i + j < n; ++j) {
      local[j] = Fold::Join(local[j], static_cast<Lane>(Map::Apply(x[i + j], shift)));
    }
    std::copy(local, local + kLanes, lanes);
  }

  // `width` neighbouring results: rows [begin, end) of the reduced grid.
  void FoldColumns(const In* data, const In* shifts, int64_t begin, int64_t end, int64_t width,
                   Total* totals) const {
    constexpr int kRows = 4;  // folded together before they meet the lanes
    Lane lanes[kColumns];
    std::fill(totals, totals + width, Fold::template Neutral<Total>());
    while (begin < end) {
      const int64_t stop = kSpills ? std::min(end, begin + kSteps * kRows) : end;
      std::fill(lanes, lanes + width, Fold::template Neutral<Lane>());
      for (; begin + kRows <= stop; begin += kRows) {
        const In* x[kRows];
        for (int r = 0; r < kRows; ++r) x[r] = data + plan_.reduced.Offset(begin + r);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          const In shift = ShiftAt(shifts, j);
          const auto at = [&](int r) { return static_cast<Lane>(Map::Apply(x[r][j], shift)); };
          lanes[j] =
              Fold::Join(lanes[j], Fold::Join(Fold::Join(at(0), at(1)), Fold::Join(at(2), at(3))));
        }
      }
      for (; begin < stop; ++begin) {
        const In* x = data + plan_.reduced.Offset(begin);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          lanes[j] = Fold::Join(lanes[j], static_cast<Lane>(Map::Apply(x[j], ShiftAt(shifts, j))));
        }
      }
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        totals[j] = Fold::Join(totals[j], static_cast<Total>(lanes[j]));
      }
    }
  }

  const ReducePlan& plan_;
  const int64_t width_, tiles_;  // results of a task, tasks of a kept run
  const In* data_;
  const In* shifts_;
  In* results_;
  Finish finish_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_REDUCE_REDUCER_H_
