// SPDX-License-Identifier: Apache-2.0
#include "onward/environment.h"

#include "api/access.h"

namespace onward::api {

Environment::Environment() = default;
Environment::Environment(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Environment::Environment(const Environment&) = default;
Environment::Environment(Environment&&) noexcept = default;
Environment& Environment::operator=(const Environment&) = default;
Environment& Environment::operator=(Environment&&) noexcept = default;
Environment::~Environment() = default;

Result<Environment> Environment::Make(const EnvironmentOptions& options) {
  return Converted<Environment>(
      [&] {
        return onward::Environment::Make({.exact_convolutions = options.exact_convolutions,
                                          .memory_limit = options.memory_limit,
                                          .plugins = options.plugins});
      },
      [](std::unique_ptr<const onward::Environment> made) {
        return Environment(std::make_shared<const Impl>(Impl{std::move(made)}));
      });
}

const onward::Environment& Access::FromEnvironment(const Environment& environment) {
  return environment.impl_ == nullptr ? DefaultEnvironment() : *environment.impl_->environment;
}

}  // namespace onward::api
