// SPDX-License-Identifier: Apache-2.0
// Models for tests, written in ONNX text. The text has no notation for
// training_info, so each of its graphs is a text of its own.
#ifndef ONWARD_TESTS_SUPPORT_TEXT_MODEL_H_
#define ONWARD_TESTS_SUPPORT_TEXT_MODEL_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "tests/support/test_environment.h"
#include "training_info/step.h"

namespace onward {

using BindingTexts = std::vector<std::pair<std::string, std::string>>;  // variable, value

// One TrainingInfoProto; an empty text leaves the graph out.
struct EntryText {
  std::string algorithm = "";
  BindingTexts update = {};
  std::string initialization = "";
  BindingTexts initialize = {};
};

// A graph, optionally followed by functions. Without a header of its own ("<...>")
// it is of IR version 8 and opset 18, with ai.onnx.preview.training and "local".
// Throws std::invalid_argument where the text is wrong: that is the test's mistake.
Model TextModel(const std::string& text, const std::vector<EntryText>& entries = {});

// The bytes a file of it would have, and back.
std::string Bytes(const Model& model);
Model Reread(const Model& model);

// Throws what Create refuses.
std::unique_ptr<TrainingModel> Open(Model model,
                                    const Environment& environment = TestEnvironment());
// What Create says of a model it has to refuse; "" (and a failure) if it does not.
std::string Refusal(Model model);

Tensor Floats(std::initializer_list<float> values);  // one axis
Tensor Floats(Shape shape, std::initializer_list<float> values);
Tensor Int64s(std::initializer_list<int64_t> values);
std::vector<double> Values(const Tensor& tensor);
std::vector<double> ValueOf(const TrainingModel& model, const std::string& variable);

// Same names, and bit for bit the same values.
bool SameVariables(const Variables& a, const Variables& b);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_TEXT_MODEL_H_
