// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_format.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

// Layers with many silent units are usual in models that learn well: what is left of them is
// enough. So half a layer matters where nothing else lets the model learn a batch, and nearly all
// of it always does.
constexpr double kHalf = 0.5, kNearlyAll = 0.9;

// Units that no example has woken, nor what was learned since.
int64_t Dead(const UnitActivity& before, const UnitActivity& after) {
  int64_t dead = 0;
  for (size_t u = 0; u < before.largest.size(); ++u) {
    dead += before.largest[u] == 0 && (u >= after.largest.size() || after.largest[u] == 0);
  }
  return dead;
}

}  // namespace

DoctorFindings UnitFindings(const Probe& before, const Probe& after, bool learned) {
  DoctorFindings findings;
  // NaN looks like silence.
  if (before.losses.not_finite() > 0) return findings;
  for (size_t i = 0; i < before.units.size(); ++i) {
    const UnitActivity& layer = before.units[i];
    const int64_t dead = Dead(layer, after.units[i]);
    const int64_t all = static_cast<int64_t>(layer.largest.size());
    const double share = all == 0 ? 0 : static_cast<double>(dead) / static_cast<double>(all);
    if (share < (learned ? kNearlyAll : kHalf)) continue;
    findings.push_back(
        {"dead-units", layer.node, share,
         absl::StrFormat("%d of %d units are zero for every example of %d batches", dead, all,
                         before.batches),
         dead == all
             ? "nothing passes this layer: draw the weights anew with --initialize, and begin with "
               "a lower rate (--lr X)"
             : "a lower rate (--lr X) or --clip-norm 1 keeps units alive, "
               "--initialize draws them anew; inputs around 0 help, too"});
  }
  return findings;
}

}  // namespace onward
