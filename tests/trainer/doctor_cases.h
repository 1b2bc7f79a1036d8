// SPDX-License-Identifier: Apache-2.0
// Models and data that a doctor examines in tests.
#ifndef ONWARD_TESTS_TRAINER_DOCTOR_CASES_H_
#define ONWARD_TESTS_TRAINER_DOCTOR_CASES_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "trainer/doctor/doctor.h"
#include "training_info/author.h"

namespace onward {

inline constexpr int64_t kExamples = 64;
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Examples in memory; labels are classes where `y` is int64.
class Examples : public Dataset {
 public:
  Examples(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)) {}

  int64_t size() const override { return x_.shape()[0]; }
  std::vector<FieldInfo> fields() const override {
    return {{"x", DType::kFloat, OfOne(x_), false}, {"y", y_.dtype(), OfOne(y_), true}};
  }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    batch->clear();
    for (const Tensor* all : {&x_, &y_}) {
      const Shape one = OfOne(*all);
      Tensor part(all->dtype(), BatchShape(static_cast<int64_t>(indices.size()), one));
      const size_t bytes = TensorBytes(all->dtype(), one);
      for (size_t i = 0; i < indices.size(); ++i) {
        std::memcpy(part.data<char>() + i * bytes, all->data<char>() + indices[i] * bytes, bytes);
      }
      batch->push_back(std::move(part));
    }
    return absl::OkStatus();
  }
  int64_t classes() const override {
    if (y_.dtype() != DType::kInt64) return 0;
    const auto labels = y_.values<int64_t>();
    return 1 + *std::max_element(labels.begin(), labels.end());
  }
  std::vector<std::string> class_names() const override { return {}; }
  Tensor class_labels() const override { return y_.dtype() == DType::kInt64 ? y_ : Tensor(); }

 private:
  static Shape OfOne(const Tensor& all) { return Shape(all.shape().dims().subspan(1)); }
  Tensor x_, y_;
};

using Number = std::function<double(int64_t example, int64_t column)>;

inline Tensor Filled(int64_t columns, const Number& number) {
  Tensor t(DType::kFloat, {kExamples, columns});
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(number(i / columns, i % columns));
  }
  return t;
}

// Of class i % 3, whose column stands out.
inline double Telling(int64_t i, int64_t c) {
  return c == i % 3 ? 1.5 + 0.01 * static_cast<double>(i % 7)
                    : 0.1 * static_cast<double>((i + c) % 3);
}

inline Tensor Labels(const std::function<int64_t(int64_t)>& label) {
  Tensor t(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < kExamples; ++i) t.data<int64_t>()[i] = label(i);
  return t;
}
inline int64_t Thirds(int64_t i) { return i % 3; }

// A net with one hidden layer; biases decide which units speak.
inline std::string Net(const std::string& biases = "0.1, 0.1, 0.1, 0.1",
                       const std::string& before = "f = Identity(x)",
                       const std::string& after = "y = Identity(z)") {
  return absl::StrCat(
      "g (float[N, 3] x) => (float[N, 3] y) <float[3, 4] w1 = {0.5, -0.4, 0.3, 0.2, -0.3, 0.6, "
      "0.2, 0.4, 0.2, 0.3, -0.5, 0.5}, float[4] b1 = {",
      biases,
      "}, float[4, 3] w2 = {0.4, -0.2, 0.1, -0.3, 0.5, 0.2, 0.1, 0.2, -0.4, 0.3, -0.1, 0.2}, "
      "float scale = {0.003921569}> { ",
      before, " a = MatMul(f, w1) s = Add(a, b1) [hidden] h = Relu(s) z = MatMul(h, w2) ", after,
      " }");
}

// A net with so many hidden units, some of them dead.
inline std::string Wide(int units, int dead) {
  std::vector<std::string> w1, b1, w2;
  for (int i = 0; i < 3 * units; ++i) {
    w1.push_back(absl::StrCat(0.1 * (i * 7 % 11 - 4)));
    w2.push_back(absl::StrCat(0.1 * (i * 5 % 11 - 5)));
  }
  for (int u = 0; u < units; ++u) b1.push_back(u < dead ? "-100" : "0.5");
  const auto tensor = [](const char* name, const std::string& shape,
                         const std::vector<std::string>& numbers) {
    return absl::StrCat("float[", shape, "] ", name, " = {", absl::StrJoin(numbers, ", "), "}");
  };
  return absl::StrCat(
      "g (float[N, 3] x) => (float[N, 3] y) <", tensor("w1", absl::StrCat("3, ", units), w1), ", ",
      tensor("b1", absl::StrCat(units), b1), ", ", tensor("w2", absl::StrCat(units, ", 3"), w2),
      "> { a = MatMul(x, w1) s = Add(a, b1) h = Relu(s) y = MatMul(h, w2) }");
}

// Two numbers from -1 to 1, and what is to be learned of them.
inline double Small(int64_t i, int64_t c) {
  return c == 0 ? static_cast<double>(i * 7 % 11 - 5) / 5 : static_cast<double>(i * 3 % 13 - 6) / 6;
}
inline double Sum(int64_t i, int64_t) { return 2 * Small(i, 0) - Small(i, 1); }

inline constexpr char kLinear[] =
    "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {0, 0}> { y = MatMul(x, w) }";

struct Case {
  std::string name;
  std::string model;
  std::string loss = "cross_entropy";
  std::string optimizer = "adamw:lr=0.05";
  Number x = Telling;
  std::function<int64_t(int64_t)> label = Thirds;  // of classes, or
  Number number = nullptr;                         // of regression
  int64_t columns = 3;
  // A finding that there has to be: its id, and words of its place or its help.
  std::string id = "";
  std::string words = "";
};

inline Case Regression(std::string name, std::string optimizer, std::string id = "",
                       std::string words = "") {
  return {.name = std::move(name),
          .model = kLinear,
          .loss = "mse",
          .optimizer = std::move(optimizer),
          .x = Small,
          .number = Sum,
          .columns = 2,
          .id = std::move(id),
          .words = std::move(words)};
}

inline absl::StatusOr<DoctorReport> Examined(const Case& c) {
  AuthorOptions author;
  author.loss = ParseLoss(c.loss).value();
  author.optimizer = ParseOptimizer(c.optimizer).value();
  auto made = MakeTrainable(TextModel(c.model), author, DefaultEnvironment());
  if (!made.ok()) return made.status();
  DoctorOptions options;
  options.run.batch = 32;
  auto data = std::make_shared<Examples>(Filled(c.columns, c.x),
                                         c.number ? Filled(1, c.number) : Labels(c.label));
  return Diagnose(std::move(made->model), data, options, TestEnvironment());
}

inline std::vector<std::string> Ids(const DoctorReport& report) {
  std::vector<std::string> ids;
  for (const DoctorFinding& f : report.findings) ids.push_back(f.id);
  return ids;
}

inline std::string Text(const DoctorReport& report) {
  std::string text;
  for (const DoctorFinding& f : report.findings) {
    absl::StrAppend(&text, f.id, " | ", f.place, " | ", f.what, " | ", f.help, "\n");
  }
  return text;
}

}  // namespace onward

#endif  // ONWARD_TESTS_TRAINER_DOCTOR_CASES_H_
