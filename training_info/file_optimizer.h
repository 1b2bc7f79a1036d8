// SPDX-License-Identifier: Apache-2.0
// An optimizer that an ONNX file holds. Its graph takes R (the rate), T (the int64 number of
// steps done), X, G and states, and gives X and the states anew, each named after the input:
// X_new, X_out or new_X. A state starts at the value of the initializer of its name, else at
// zero; a scalar or a declared [] is one number, else it has the shape of X. Inputs that no
// output renews are numbers which a user may give: my.onnx:lr=0.1,rho=0.9.
#ifndef ONWARD_TRAINING_INFO_FILE_OPTIMIZER_H_
#define ONWARD_TRAINING_INFO_FILE_OPTIMIZER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizers/optimizer.h"

namespace onward {

class FileOptimizer {
 public:
  static absl::StatusOr<FileOptimizer> Read(const std::string& path);

  // The numbers a user gave fit the inputs; lr is not one of them.
  absl::Status CheckNumbers(const std::map<std::string, double>& numbers) const;
  std::vector<StateTensor> States(const Shape& variable) const;
  // The new value, then the new states.
  absl::StatusOr<std::vector<Expr>> Update(GraphBuilder& b, const Expr& lr, const Expr& step,
                                           const std::map<std::string, double>& numbers,
                                           const Variable& variable) const;

 private:
  struct Output {
    std::string input;  // what it renews
    size_t index = 0;   // of the graph's outputs
  };

  std::string path_;
  Graph graph_;
  Output value_;                // of X
  std::vector<Output> states_;  // in the order of the inputs
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_FILE_OPTIMIZER_H_
