// SPDX-License-Identifier: Apache-2.0
// Models of one layer, and what initialization draws for them.
#ifndef ONWARD_TESTS_TRAINING_INFO_DRAWN_LAYER_H_
#define ONWARD_TESTS_TRAINING_INFO_DRAWN_LAYER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/initializers/initializer.h"
#include "training_info/validate.h"

namespace onward {

// A model of one layer whose weights hold a number each that no initialiser draws.
struct Layer {
  std::string text;  // "float[4, 3] W" declares; nodes
  std::vector<std::pair<std::string, Shape>> weights;
};

inline std::string Declared(const Layer& layer, const std::string& dtype) {
  std::vector<std::string> all;
  for (const auto& [name, shape] : layer.weights) {
    std::vector<std::string> numbers;
    // Neither uniform nor repeated: what looks like it came from elsewhere is taken apart.
    for (int64_t i = 0; i < shape.elements(); ++i)
      numbers.push_back(absl::StrCat(10 + (i * i * 31 + i * 17 + shape.rank()) % 10007));
    all.push_back(
        absl::StrCat(dtype, shape.ToString(), " ", name, " = {", absl::StrJoin(numbers, ","), "}"));
  }
  return absl::StrCat("<", absl::StrJoin(all, ", "), ">");
}

inline Model ModelOf(const Layer& layer, const std::string& dtype = "float") {
  const size_t nodes = layer.text.find('{');
  return TextModel(
      absl::StrCat(layer.text.substr(0, nodes), Declared(layer, dtype), layer.text.substr(nodes)));
}

inline std::unique_ptr<TrainingModel> Initialized(const Model& model, const std::string& init,
                                                  uint64_t seed = 3) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.init = ParseInit(init).value();
  options.train = {"*"};
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok() && findings->empty()) << init;
  auto training = Open(Reread(made->model));
  training->set_random({seed, 0});
  const absl::Status status = training->Initialize();
  EXPECT_TRUE(status.ok()) << status;
  return training;
}

struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
};
inline Moments MomentsOf(const std::vector<double>& values) {
  Moments m;
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : values)
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Within five standard errors of a distribution that is no wider than a normal one.
inline void ExpectDrawn(const std::vector<double>& values, double mean, double deviation,
                        double low, double high, const std::string& what) {
  const Moments m = MomentsOf(values);
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(m.mean, mean, 5 * deviation / std::sqrt(n) + 1e-6) << what;
  EXPECT_NEAR(m.deviation, deviation, 5 * deviation / std::sqrt(2 * n) + 1e-6) << what;
  EXPECT_GE(m.low, low - 1e-6) << what;
  EXPECT_LE(m.high, high + 1e-6) << what;
}

inline Layer MatMulLayer() {
  return {"m (float[N, 50] x) => (float[N, 40] y) { y = MatMul(x, W) }", {{"W", {50, 40}}}};
}

// Rows of M (or columns, where there are fewer) are orthonormal: the largest error.
inline double OrthogonalityError(const double* m, int64_t rows, int64_t columns) {
  const bool tall = rows >= columns;
  const int64_t n = tall ? columns : rows, k = tall ? rows : columns;
  double most = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += tall ? m[p * columns + i] * m[p * columns + j]
                    : m[i * columns + p] * m[j * columns + p];
      most = std::max(most, std::abs(sum - (i == j ? 1 : 0)));
    }
  }
  return most;
}

}  // namespace onward

#endif  // ONWARD_TESTS_TRAINING_INFO_DRAWN_LAYER_H_
