// SPDX-License-Identifier: Apache-2.0
#include "tests/support/text_model.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "environment/environment.h"
#include "onnx/defs/parser.h"

namespace onward {
namespace {

constexpr char kHeader[] =
    "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1, \"local\" : 1]>\n";

template <typename Proto>
void ParseText(const std::string& text, Proto* proto) {
  const auto status = onnx::OnnxParser::Parse(*proto, text.c_str());
  if (!status.IsOK()) throw std::invalid_argument(status.ErrorMessage() + "\n" + text);
}

template <typename Repeated>
void Bind(const BindingTexts& bindings, Repeated* target) {
  for (const auto& [variable, value] : bindings) {
    auto* entry = target->Add();
    entry->set_key(variable);
    entry->set_value(value);
  }
}

}  // namespace

Model TextModel(const std::string& text, const std::vector<EntryText>& entries) {
  Model model;
  ParseText(text.find_first_not_of(" \n") == text.find('<') ? text : kHeader + text,
            &model.proto());
  for (const EntryText& entry : entries) {
    onnx::TrainingInfoProto* info = model.proto().add_training_info();
    if (!entry.algorithm.empty()) ParseText(entry.algorithm, info->mutable_algorithm());
    if (!entry.initialization.empty())
      ParseText(entry.initialization, info->mutable_initialization());
    Bind(entry.update, info->mutable_update_binding());
    Bind(entry.initialize, info->mutable_initialization_binding());
  }
  return model;
}

std::string Bytes(const Model& model) {
  auto bytes = SerializeModel(model);
  if (!bytes.ok()) throw std::runtime_error(std::string(bytes.status().message()));
  return *std::move(bytes);
}

Model Reread(const Model& model) {
  auto reread = ParseModel(Bytes(model), model.path());
  if (!reread.ok()) throw std::runtime_error(std::string(reread.status().message()));
  return *std::move(reread);
}

std::unique_ptr<TrainingModel> Open(Model model, const Environment& environment) {
  auto training = TrainingModel::Create(std::move(model), environment);
  if (!training.ok()) throw std::runtime_error(std::string(training.status().message()));
  return *std::move(training);
}

std::string Refusal(Model model) {
  auto training = TrainingModel::Create(std::move(model), DefaultEnvironment());
  EXPECT_FALSE(training.ok());
  return training.ok() ? "" : std::string(training.status().message());
}

Tensor Floats(std::initializer_list<float> values) {
  return Tensor::FromValues<float>(Shape{static_cast<int64_t>(values.size())}, values);
}

Tensor Floats(Shape shape, std::initializer_list<float> values) {
  return Tensor::FromValues<float>(std::move(shape), values);
}

Tensor Int64s(std::initializer_list<int64_t> values) {
  return Tensor::FromValues<int64_t>(Shape{static_cast<int64_t>(values.size())}, values);
}

std::vector<double> Values(const Tensor& tensor) {
  auto values = ToDoubles(tensor);
  if (!values.ok()) throw std::runtime_error(std::string(values.status().message()));
  return *std::move(values);
}

std::vector<double> ValueOf(const TrainingModel& model, const std::string& variable) {
  return Values(model.variables().at(variable));
}

bool SameVariables(const Variables& a, const Variables& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    auto it = b.find(name);
    if (it == b.end() || !Identical(tensor, it->second)) return false;
  }
  return true;
}

}  // namespace onward
