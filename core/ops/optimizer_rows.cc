// SPDX-License-Identifier: Apache-2.0
// SgdRowsStep (R, X, rows, sums) and AdagradRowsStep (R, T, X, rows, sums, H): one
// optimizer step of the rows of X that are named. rows holds each of them once, and
// -1 where an entry means nothing; sums holds their gradients. Other rows stay.
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/adapt.h"
#include "core/ops/optimizer_rules.h"
#include "core/ops/register.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 16384;  // elements

template <typename Rule>
struct RowsStep {
  static constexpr int kX = Rule::kHasT ? 2 : 1, kRows = kX + 1, kSums = kX + 2, kState = kX + 3;

  Rule rule;
  int64_t table_rows, entries, inner;

  template <typename T>
  void Run(const KernelCall& call) const {
    constexpr int S = Rule::kStates;
    const auto scalars = ScalarsOf(rule, call);
    const int64_t* rows = call.inputs[kRows]->data<int64_t>();
    UpdateRun<T, S> run{call.inputs[kX]->data<T>(),
                        call.inputs[kSums]->data<T>(),
                        {},
                        Untouched<T>(call, kX, 0),
                        {}};
    for (int k = 0; k < S; ++k) {
      run.state[k] = call.inputs[kState + k]->data<T>();
      run.new_state[k] = Untouched<T>(call, kState + k, 1 + k);
    }
    ParallelFor(entries, kGrain / (inner + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (rows[i] < 0 || rows[i] >= table_rows) continue;
        UpdateElements<Rule, T>(scalars, run, rows[i] * inner, (rows[i] + 1) * inner, i * inner);
      }
    });
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
  ONWARD_ASSIGN_OR_RETURN(Rule rule, Rule::Make(r.node));
  const Shape& x = r.in(Step::kX);
  auto step = std::make_shared<Step>(
      Step{std::move(rule), x[0], r.in(Step::kRows)[0], x.elements(1, x.rank())});
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
