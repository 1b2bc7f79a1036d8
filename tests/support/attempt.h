// SPDX-License-Identifier: Apache-2.0
// A hostile model, taken as far as it goes.
#ifndef ONWARD_TESTS_SUPPORT_ATTEMPT_H_
#define ONWARD_TESTS_SUPPORT_ATTEMPT_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/onnx_io/model.h"

namespace onward {

// Parses, checks, infers and, where there is training_info, initializes and
// steps, on zeros of the declared shapes. The first error, or OK.
absl::Status AttemptBytes(const std::string& bytes, const std::string& path);

// The same for a model that is a file at `model.path()`, or "hostile.onnx".
absl::Status Attempt(const Model& model);

// One row of a table of models to refuse.
struct Hostile {
  std::string name;
  std::function<Model()> model;
  std::string says;  // part of the message
};
void PrintTo(const Hostile& h, std::ostream* out);

// Reports through gtest: the model is refused with a message that holds `says`
// and names the file or a node, within 10 seconds and 512 MiB.
void ExpectRefused(const Hostile& h);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_ATTEMPT_H_
