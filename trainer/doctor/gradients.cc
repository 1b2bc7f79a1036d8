// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/report.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

constexpr double kLargeNorm = 1000;  // of all gradients together
constexpr double kFaint = 1e-5;      // rms against the largest rms of a matrix
constexpr size_t kShown = 4;

constexpr char kClip[] = "--clip-norm 1, or a lower rate (--lr X)";

std::string Weight(const std::string& name) { return absl::StrCat("weight '", name, "'"); }

DoctorFindings Missing(const Probe& before, const Probe& after) {
  std::vector<std::string> without(before.unread.begin(), before.unread.end());
  for (size_t i = 0; i < before.gradients.size(); ++i) {
    const WeightGradient& g = before.gradients[i];
    if (g.is_matrix && g.squares == 0 && after.gradients[i].squares == 0) {
      without.push_back(g.weight);
    }
  }
  if (without.empty()) return {};
  return {
      {"no-gradient", Weight(without[0]), static_cast<double>(without.size()),
       absl::StrCat(without.size(), " of ", before.gradients.size() + before.unread.size(),
                    " trained weights have a gradient of exactly 0: ", Listed(without, kShown)),
       "`onward inspect` tells what blocks it; units that are all dead and weights that are all "
       "zero (--initialize) do, too; --freeze what is not to learn"}};
}

// The layers against each other: the depth tells whether gradients fade or grow on their way
// back.
DoctorFindings Uneven(const Probe& before, const Probe& after) {
  const WeightGradient* least = nullptr;
  const WeightGradient* most = nullptr;
  for (size_t i = 0; i < before.gradients.size(); ++i) {
    const WeightGradient& g = before.gradients[i];
    if (!g.is_matrix || g.squares == 0) continue;
    if (most == nullptr || g.rms() > most->rms()) most = &g;
    if (least == nullptr || g.rms() < least->rms()) least = &g;
  }
  if (least == nullptr || least->rms() >= kFaint * most->rms()) return {};
  const auto later = [&](const WeightGradient* g) {
    return after.gradients[g - &before.gradients[0]];
  };
  if (later(least).rms() >= kFaint * later(most).rms()) return {};
  const double ratio = least->rms() / most->rms();
  const std::string what = absl::StrFormat(
      "'%s' has gradients of %.3g (rms), '%s' of %.3g: the one is %.3g of the other", least->weight,
      least->rms(), most->weight, most->rms(), ratio);
  // Pointers into one list, which is in the order of the forward pass.
  if (least < most) {
    return {
        {"vanishing-gradients", Weight(least->weight), ratio, what,
         absl::StrCat("--group '", least->weight,
                      ":lr=100x' lets it learn; better: Relu in the place of Sigmoid and Tanh, "
                      "normalisation between layers, --init kaiming_normal with --initialize")}};
  }
  return {{"exploding-gradients", Weight(most->weight), 1 / ratio, what, kClip}};
}

}  // namespace

DoctorFindings GradientFindings(const Probe& before, const Probe& after) {
  double squares = 0;
  const WeightGradient* most = nullptr;
  for (const WeightGradient& g : before.gradients) {
    squares += g.squares;
    if (most == nullptr || !(g.norm() <= most->norm())) most = &g;
  }
  const double norm = std::sqrt(squares);
  if (most != nullptr && !(norm <= kLargeNorm)) {
    return {{"exploding-gradients", Weight(most->weight), norm,
             std::isfinite(norm)
                 ? absl::StrFormat("the norm of all gradients is %.4g, most of it of '%s' (%.4g)",
                                   norm, most->weight, most->norm())
                 : absl::StrCat("the gradient of '", most->weight, "' is not finite"),
             kClip}};
  }
  DoctorFindings findings = Missing(before, after);
  for (DoctorFinding& finding : Uneven(before, after)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace onward
