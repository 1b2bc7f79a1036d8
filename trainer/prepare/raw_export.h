// SPDX-License-Identifier: Apache-2.0
// Models that take raw rows or pictures: the preparation as nodes in front of the model, what
// undoes that of the target behind it, and classes by name (docs/decisions/0029).
#ifndef ONWARD_TRAINER_PREPARE_RAW_EXPORT_H_
#define ONWARD_TRAINER_PREPARE_RAW_EXPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/builder.h"
#include "core/onnx_io/model.h"
#include "data/preparation.h"
#include "environment/environment.h"
#include "trainer/report/numbers/metrics.h"

namespace onward {

enum class RawForm {
  kColumns,  // a table: one input [N, 1] per column, named like it
  kMatrix,   // a table: the numbers as one input [N, K], any other column by itself
  kNchw,     // pictures as bytes [N, C, H, W]
  kNhwc,     // pictures as bytes [N, H, W, C]
};

struct RawOptions {
  std::optional<RawForm> form;       // nullopt: inputs stay as they are
  bool names = false;                // one more output: the name of the class
  std::vector<std::string> classes;  // what these are called
  std::string output;                // whose scores tell them, or whose numbers are given
  Scoring scoring;                   // how
};

// `plain` is an inference model with the preparation that its file keeps.
absl::StatusOr<Model> WithRawInputs(const Model& plain, const Preparation& preparation,
                                    const RawOptions& options, const Environment& environment);

// --- Parts of it: nodes that do what the encoder of tables does (data/tables/encoder.h)

// Columns of a table to the values x and codes that a model takes; either is left undefined
// where nothing becomes of it. `batch` is the first dimension of every input.
struct PreparedColumns {
  Expr x, codes;
};
PreparedColumns BuildColumns(const TablePreparation& table, RawForm form, const Dim& batch,
                             const std::string& matrix_name, GraphBuilder& b);

// [N, 1] seconds as int64 to [N, parts] floats, as PartsOfDate has them.
Expr BuildDateParts(const Expr& seconds, bool times, GraphBuilder& b);

}  // namespace onward

#endif  // ONWARD_TRAINER_PREPARE_RAW_EXPORT_H_
