// SPDX-License-Identifier: Apache-2.0
// `onward train --folds K`: how well a model does on data that it has not seen, K times over.
#ifndef ONWARD_CLI_FOLDS_H_
#define ONWARD_CLI_FOLDS_H_

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "environment/environment.h"

namespace onward {

// Trains on all but one part of the data, K times from the same start, and judges on that part.
// Prints a line for each fold, then mean and deviation. Nothing is written. False where it was
// stopped.
absl::StatusOr<bool> CrossValidate(const Args& args, const Environment& environment);

}  // namespace onward

#endif  // ONWARD_CLI_FOLDS_H_
