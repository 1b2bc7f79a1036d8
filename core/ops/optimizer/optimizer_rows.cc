// SPDX-License-Identifier: Apache-2.0
// SgdRowsStep (R, X, rows, sums) and AdagradRowsStep (R, T, X, rows, sums, H): one
// optimizer step of the rows of X that are named. rows holds each of them once, and
// -1 where an entry means nothing; sums holds their gradients. Other rows stay.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/register.h"
#include "core/ops/optimizer/optimizer_rules.h"
#include "core/tensor/finite.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 16384;  // elements

template <typename Rule>
struct RowsStep {
  static constexpr int kX = Rule::kHasT ? 2 : 1, kRows = kX + 1, kSums = kX + 2, kState = kX + 3;

  Rule rule;
  int64_t table_rows, entries, inner;

  // Calls body(begin of the row in X, begin of its gradient) for every row that is named.
  template <typename Body>
  void ForNamedRows(const KernelCall& call, const Body& body) const {
    const int64_t* rows = call.inputs[kRows]->data<int64_t>();
    ParallelFor(entries, kGrain / (inner + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (rows[i] >= 0 && rows[i] < table_rows) body(rows[i] * inner, i * inner);
      }
    });
  }

  template <typename T>
  UpdateRun<T, Rule::kStates> Operands(const KernelCall& call) const {
    UpdateRun<T, Rule::kStates> run{
        call.inputs[kX]->data<T>(), call.inputs[kSums]->data<T>(), {}, nullptr, {}};
    for (int k = 0; k < Rule::kStates; ++k) run.state[k] = call.inputs[kState + k]->data<T>();
    return run;
  }

  template <typename T>
  void Run(const KernelCall& call) const {
    const auto scalars = ScalarsOf(rule, call);
    UpdateRun<T, Rule::kStates> run = Operands<T>(call);
    run.new_x = Untouched<T>(call, kX, 0);
    for (int k = 0; k < Rule::kStates; ++k) {
      run.new_state[k] = Untouched<T>(call, kState + k, 1 + k);
    }
    ForNamedRows(call, [&](int64_t x, int64_t g) {
      UpdateElements<Rule, T>(scalars, run, x, x + inner, g);
    });
  }

  // Rows that are not named are looked at once: later runs leave them alone.
  template <typename T>
  bool WouldBeFinite(const KernelCall& call, bool* bad) const {
    const auto scalars = ScalarsOf(rule, call);
    const UpdateRun<T, Rule::kStates> run = Operands<T>(call);
    std::array<std::atomic<bool>, 1 + Rule::kStates> found{};
    if (call.notes == nullptr || !call.notes->hold) {
      found[0] = !AllFinite(*call.inputs[kX]);
      for (int k = 0; k < Rule::kStates; ++k) found[1 + k] = !AllFinite(*call.inputs[kState + k]);
    }
    ForNamedRows(call, [&](int64_t x, int64_t g) {
      const auto row = WouldNotBeFinite<Rule, T>(scalars, run, x, x + inner, g);
      for (size_t k = 0; k < row.size(); ++k) {
        if (row[k]) found[k].store(true, std::memory_order_relaxed);
      }
    });
    bool finite = true;
    for (size_t k = 0; k < found.size(); ++k) {
      if (WantedOutput<T>(call, static_cast<int>(k)) == nullptr) continue;
      bad[k] = found[k].load();
      finite = finite && !bad[k];
    }
    return finite;
  }

  // Where output `out` goes; it starts as a copy of its input.
  template <typename T>
  T* Untouched(const KernelCall& call, int in, int out) const {
    T* to = WantedOutput<T>(call, out);
    const T* from = call.inputs[in]->data<T>();
    if (to != nullptr && to != from) std::memcpy(to, from, table_rows * inner * sizeof(T));
    return to;
  }
};

template <typename Rule>
absl::Status CheckRows(const KernelRequest& r) {
  using Step = RowsStep<Rule>;
  if (r.inputs.size() != Step::kState + Rule::kStates) {
    return NodeError(r.node, absl::StrCat("takes ", Step::kState + Rule::kStates, " inputs, got ",
                                          r.inputs.size()));
  }
  for (size_t i = 0; i < r.inputs.size(); ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
  }
  const Shape& x = r.in(Step::kX);
  if (x.rank() < 1 || r.in(0).elements() != 1 || r.in(Step::kRows).rank() != 1) {
    return NodeError(r.node, "takes a scalar R, a table X and a vector of rows");
  }
  Shape sums = x;
  sums[0] = r.in(Step::kRows)[0];
  const DType dtype = r.inputs[Step::kX].dtype;
  bool fits = r.in(Step::kSums) == sums && r.inputs[Step::kSums].dtype == dtype &&
              r.inputs[Step::kRows].dtype == DType::kInt64;
  if (Rule::kHasT) {
    fits = fits && r.in(1).elements() == 1 && r.inputs[1].dtype == DType::kInt64;
  }
  for (int k = 0; k < Rule::kStates; ++k) {
    fits = fits && r.in(Step::kState + k) == x && r.inputs[Step::kState + k].dtype == dtype;
  }
  return fits ? absl::OkStatus() : NodeError(r.node, "the inputs do not fit the table X");
}

template <typename Rule>
absl::StatusOr<Kernel> MakeRowsStep(const KernelRequest& r) {
  using Step = RowsStep<Rule>;
  ONWARD_RETURN_IF_ERROR(CheckRows<Rule>(r));
  ONWARD_ASSIGN_OR_RETURN(const auto attributes, Rule::Make(r.node));
  const Shape& x = r.in(Step::kX);
  auto step = std::make_shared<Step>(
      Step{Rule{attributes}, x[0], r.in(Step::kRows)[0], x.elements(1, x.rank())});
  Kernel kernel;
  kernel.infallible = true;
  if (r.HasOutput(0)) kernel.in_place.push_back({0, Step::kX});
  for (int k = 0; k < Rule::kStates; ++k) {
    if (r.HasOutput(1 + k)) kernel.in_place.push_back({1 + k, Step::kState + k});
  }
  const bool known = r.inputs[0].dtype == DType::kFloat || r.inputs[0].dtype == DType::kDouble;
  const bool served = known && DispatchFloat(r.inputs[Step::kX].dtype, [&]<typename T>() {
                        kernel.run = [step](const KernelCall& call) {
                          step->template Run<T>(call);
                          return absl::OkStatus();
                        };
                        kernel.would_be_finite = [step](const KernelCall& call, bool* bad) {
                          return step->template WouldBeFinite<T>(call, bad);
                        };
                      });
  if (!served) return NodeUnimplemented(r.node, "takes float and double tensors");
  return kernel;
}

}  // namespace

void RegisterRowOptimizerKernels(KernelTable& table) {
  const char* types = "float, double";
  table.Add("SgdRowsStep", {"reference", 1, MakeRowsStep<Sgd>, types}, kOnwardDomain);
  table.Add("AdagradRowsStep", {"reference", 1, MakeRowsStep<Adagrad>, types}, kOnwardDomain);
}

}  // namespace onward
