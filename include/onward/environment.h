// SPDX-License-Identifier: Apache-2.0
// What models are read, differentiated and run with: operators and their kernels, gradient
// rules, and a few choices. Everything takes one; where none is given, it is what Onward
// knows by itself.
//
// Threads: an Environment never changes. Several threads may use one, and copies of it.
#ifndef ONWARD_ENVIRONMENT_H_
#define ONWARD_ENVIRONMENT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "onward/status.h"

namespace onward::api {

struct EnvironmentOptions {
  bool exact_convolutions = false;        // no convolution algorithm that rounds more (Winograd)
  size_t memory_limit = 0;                // bytes a run may use; 0: three quarters of the memory
  std::vector<std::string> plugins = {};  // shared libraries that add operators (plugin.h)
};

class Environment {
 public:
  Environment();  // what Onward knows by itself, with the usual choices
  // An error where a plugin cannot be loaded; it names the plugin.
  static Result<Environment> Make(const EnvironmentOptions& options);

  Environment(const Environment& other);
  Environment(Environment&& other) noexcept;
  Environment& operator=(const Environment& other);
  Environment& operator=(Environment&& other) noexcept;
  ~Environment();

  struct Impl;

 private:
  friend struct Access;
  explicit Environment(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace onward::api

#endif  // ONWARD_ENVIRONMENT_H_
