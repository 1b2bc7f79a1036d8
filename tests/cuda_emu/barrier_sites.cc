// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emu/barrier_sites.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tests/cuda_emu/control.h"

namespace onward::cuda_emu {
namespace {

struct BarrierSite {
  const char* file;
  int line;
  int64_t reached = 0;
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

// A line of a header has a name of its file in every source that includes it.
size_t IndexOf(const std::source_location& site) {
  static auto* indices = new std::map<std::pair<const char*, unsigned>, size_t>;
  const auto [place, fresh] = indices->try_emplace({site.file_name(), site.line()});
  if (!fresh) return place->second;
  auto& sites = BarrierSites();
  const auto found = std::find_if(sites.begin(), sites.end(),
                                  [&site](const BarrierSite& known) { return IsAt(known, site); });
  place->second = found - sites.begin();
  if (found == sites.end()) sites.push_back({site.file_name(), static_cast<int>(site.line())});
  return place->second;
}

}  // namespace

void RememberBarrier(const std::source_location& site) { ++BarrierSites()[IndexOf(site)].reached; }

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
int64_t OnwardEmuBarrierReached(int index) {
  return onward::cuda_emu::BarrierSites().at(index).reached;
}
void OnwardEmuSkipBarrier(int index) { onward::cuda_emu::skipped_barrier = index; }
