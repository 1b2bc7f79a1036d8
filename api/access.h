// SPDX-License-Identifier: Apache-2.0
// From the interface's types to the library's own, and back. Inside onward::api a
// bare name is the interface's; the library's is written onward::Name.
#ifndef ONWARD_API_ACCESS_H_
#define ONWARD_API_ACCESS_H_

#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"
#include "onward/tensor.h"
#include "onward/value.h"

namespace onward::api {

struct Tensor::Impl {
  onward::Tensor tensor;
  Shape shape;
};

struct Value::Impl {
  onward::Value value;
  Tensor tensor, keys;
  std::vector<Value> items;
  Shape shape;
};

struct Model::Impl {
  onward::Model model;
};

struct Environment::Impl {
  std::unique_ptr<const onward::Environment> environment;
};

// What the interface's classes show to these sources alone.
struct Access {
  static Tensor ToTensor(onward::Tensor tensor);
  static onward::Tensor FromTensor(const Tensor& tensor);
  static Value ToValue(onward::Value value);
  static onward::Value FromValue(const Value& value);
  static Model ToModel(onward::Model model);
  static const onward::Model& FromModel(const Model& model);
  // Lives as long as `environment` or a copy of it.
  static const onward::Environment& FromEnvironment(const Environment& environment);
};

Status ToStatus(const absl::Status& status);
TensorMap ToTensors(onward::TensorMap tensors);
onward::TensorMap FromTensors(const TensorMap& tensors);
ValueMap ToValues(onward::ValueMap values);
onward::ValueMap FromValues(const ValueMap& values);
std::vector<ValueInfo> ToInfos(const std::vector<NamedType>& types);

// Calls `body` and returns what it returns; an exception becomes an error.
template <typename Body>
auto Guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "out of memory");
  } catch (const std::exception& e) {
    return Status(StatusCode::kInternal, std::string("unexpected: ") + e.what());
  }
}

// Calls `body`, which returns the library's absl::StatusOr<In>, and converts what comes out.
template <typename Out, typename Body, typename Convert>
Result<Out> Converted(Body&& body, Convert&& convert) {
  return Guarded([&]() -> Result<Out> {
    auto result = body();
    if (!result.ok()) return ToStatus(result.status());
    return convert(*std::move(result));
  });
}

// The same for functions whose result is a model.
template <typename Body>
Result<Model> ConvertedModel(Body&& body) {
  return Converted<Model>(std::forward<Body>(body), Access::ToModel);
}

}  // namespace onward::api

#endif  // ONWARD_API_ACCESS_H_
