// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "absl/strings/str_format.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

// Single silent units are usual.
constexpr double kShare = 0.2;

}  // namespace

DoctorFindings UnitFindings(const Probe& probe) {
  DoctorFindings findings;
  // NaN looks like silence.
  if (probe.losses.not_finite() > 0) return findings;
  for (const UnitActivity& layer : probe.units) {
    const double silent = static_cast<double>(layer.silent());
    const double all = static_cast<double>(layer.largest.size());
    if (all == 0 || silent / all < kShare) continue;
    findings.push_back(
        {"dead-units", layer.node, silent / all,
         absl::StrFormat("%d of %d units are zero for every example of %d batches", layer.silent(),
                         layer.largest.size(), probe.batches),
         silent == all
             ? "nothing passes this layer: draw the weights anew with --initialize, and begin with "
               "a lower rate (--lr X)"
             : "a lower rate (--lr X) or --clip-norm 1 keeps units alive, "
               "--initialize draws them anew; inputs around 0 help, too"});
  }
  return findings;
}

}  // namespace onward
