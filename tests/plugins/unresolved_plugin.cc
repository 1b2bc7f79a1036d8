// SPDX-License-Identifier: Apache-2.0
// A plugin that was linked without something it needs.
#include <onward/plugin.h>

int DefinedNowhere();

extern "C" const onward::Plugin* onward_plugin() {
  static const onward::Plugin plugin = {DefinedNowhere() == 0 ? onward::kPluginAbi : "", nullptr};
  return &plugin;
}
