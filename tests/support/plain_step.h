// SPDX-License-Identifier: Apache-2.0
// A step that `export --portable-step` wrote, run again and again as any runtime would: the outputs
// that the file calls new values are fed to the next run.
#ifndef ONWARD_TESTS_SUPPORT_PLAIN_STEP_H_
#define ONWARD_TESTS_SUPPORT_PLAIN_STEP_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"

namespace onward {

class PlainStep {
 public:
  static absl::StatusOr<PlainStep> Create(const Model& step);

  // The outputs; feeds that are no input are left out.
  absl::StatusOr<ValueMap> Run(const ValueMap& feeds);
  // What the next run is fed for inputs with defaults: these at first.
  const std::map<std::string, Tensor>& state() const { return state_; }
  // Which outputs are the new values of which of them.
  const std::map<std::string, std::string>& updates() const { return updates_; }
  // Another value for one of them, where the step has it.
  void Set(const std::string& variable, const Tensor& value);

 private:
  PlainStep() = default;

  Graph graph_;
  std::map<std::string, std::string> updates_;
  std::map<std::string, Tensor> state_;
  std::unique_ptr<Session> session_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_PLAIN_STEP_H_
