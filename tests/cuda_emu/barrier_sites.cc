// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emu/barrier_sites.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/cuda_emu/control.h"

namespace onward::cuda_emu {
namespace {

struct BarrierSite {
  const char* file;
  int line;
};
std::vector<BarrierSite>& BarrierSites() {
  static auto* sites = new std::vector<BarrierSite>;
  return *sites;
}
int skipped_barrier = -1;

bool IsAt(const BarrierSite& known, const std::source_location& site) {
  return known.line == static_cast<int>(site.line()) &&
         std::strcmp(known.file, site.file_name()) == 0;
}

}  // namespace

void RememberBarrier(const std::source_location& site) {
  auto& sites = BarrierSites();
  const auto is_at = [&site](const BarrierSite& known) { return IsAt(known, site); };
  if (std::none_of(sites.begin(), sites.end(), is_at)) {
    sites.push_back({site.file_name(), static_cast<int>(site.line())});
  }
}

bool IsSkippedBarrier(const std::source_location& site) {
  return skipped_barrier >= 0 && IsAt(BarrierSites()[skipped_barrier], site);
}

bool SkipsABarrier() { return skipped_barrier >= 0; }

}  // namespace onward::cuda_emu

int OnwardEmuBarrierSites() { return static_cast<int>(onward::cuda_emu::BarrierSites().size()); }
const char* OnwardEmuBarrierFile(int index) {
  return onward::cuda_emu::BarrierSites().at(index).file;
}
int OnwardEmuBarrierLine(int index) { return onward::cuda_emu::BarrierSites().at(index).line; }
void OnwardEmuSkipBarrier(int index) { onward::cuda_emu::skipped_barrier = index; }
