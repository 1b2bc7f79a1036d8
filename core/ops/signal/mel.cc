// SPDX-License-Identifier: Apache-2.0
// MelWeightMatrix: triangles over the bins of a spectrum, evenly spaced on the mel scale.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/signal/signal.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

struct MelPlan {
  Shape shape;                   // [bins of the spectrum, bands]
  std::vector<int64_t> corners;  // band b rises from corner b to b + 1 and falls to b + 2
};

double Mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double Hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

absl::StatusOr<double> FrequencyOf(const Node& node, const Tensor& t) {
  const absl::StatusOr<std::vector<double>> value = ToDoubles(t);
  if (!value.ok()) return AtNode(node, value.status());
  if (value->size() == 1 && (*value)[0] > -700 && (*value)[0] < 1e9) return (*value)[0];
  return NodeError(node, "an edge must be one number of hertz");
}

absl::StatusOr<MelPlan> PlanMel(const Node& node, absl::Span<const Tensor* const> inputs) {
  ONWARD_ASSIGN_OR_RETURN(const int64_t bands, LengthOf(node, *inputs[0], "num_mel_bins"));
  ONWARD_ASSIGN_OR_RETURN(const int64_t n, LengthOf(node, *inputs[1], "dft_length"));
  ONWARD_ASSIGN_OR_RETURN(const int64_t rate, LengthOf(node, *inputs[2], "sample_rate"));
  ONWARD_ASSIGN_OR_RETURN(const double lower, FrequencyOf(node, *inputs[3]));
  ONWARD_ASSIGN_OR_RETURN(const double upper, FrequencyOf(node, *inputs[4]));
  MelPlan plan;
  plan.shape = {n / 2 + 1, bands};
  const double step = (Mel(upper) - Mel(lower)) / static_cast<double>(bands + 2);
  for (int64_t b = 0; b < bands + 2; ++b) {
    const double hertz = Hertz(Mel(lower) + static_cast<double>(b) * step);
    const double corner =
        std::floor(static_cast<double>(n + 1) * hertz / static_cast<double>(rate));
    // The last triangle ends before the last corner, which may be one behind the spectrum.
    const bool inside = corner >= 0 && corner <= static_cast<double>(n / 2 + (b == bands + 1));
    const bool ordered = plan.corners.empty() || corner >= static_cast<double>(plan.corners.back());
    if (!inside || !ordered) {
      return NodeError(
          node, absl::StrCat("edges of ", lower, " and ", upper, " hertz do not fit a spectrum of ",
                             n / 2 + 1, " bins at a rate of ", rate));
    }
    plan.corners.push_back(static_cast<int64_t>(corner));
  }
  return plan;
}

std::vector<double> Band(const MelPlan& plan, int64_t b) {
  std::vector<double> weights(plan.shape[0], 0.0);
  const int64_t low = plan.corners[b], top = plan.corners[b + 1], high = plan.corners[b + 2];
  if (low == top) weights[top] = 1;
  for (int64_t j = low; low < top && j <= top; ++j) {
    weights[j] = static_cast<double>(j - low) / static_cast<double>(top - low);
  }
  for (int64_t j = top; j < high; ++j) {
    weights[j] = static_cast<double>(high - j) / static_cast<double>(high - top);
  }
  return weights;
}

absl::StatusOr<Kernel> MakeMel(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 5));
  const auto make = [node = KeepNode(request.node)](absl::Span<const Tensor* const> inputs) {
    return PlanMel(*node, inputs);
  };
  absl::StatusOr<Kernel> kernel = UnservedType(request);
  NumericTypes::Dispatch(request.outputs[0].dtype, [&]<typename T>() {
    const auto run = [](const MelPlan& plan, const KernelCall&, Tensor& out) {
      const int64_t bands = plan.shape[1];
      for (int64_t b = 0; b < bands; ++b) {
        const std::vector<double> weights = Band(plan, b);
        for (int64_t j = 0; j < plan.shape[0]; ++j) {
          out.data<T>()[j * bands + b] = Convert<T>(weights[j]);
        }
      }
      return absl::OkStatus();
    };
    kernel = PlannedKernel<MelPlan>(request, {0, 1, 2, 3, 4}, make, run);
  });
  return kernel;
}

}  // namespace

void RegisterMelKernels(KernelTable& table) {
  table.Add("MelWeightMatrix", {"reference", 17, MakeMel, NumericTypes::Names()});
}

}  // namespace onward
