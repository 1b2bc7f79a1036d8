// SPDX-License-Identifier: Apache-2.0
// Models made from models: written only if `onward check` has nothing to say of them.
#ifndef ONWARD_CLI_WRITE_CHECKED_H_
#define ONWARD_CLI_WRITE_CHECKED_H_

#include <string>

#include "absl/status/status.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

// Nothing is written where CheckModel has findings, remarks apart; the error holds them all.
absl::Status WriteChecked(const Model& model, const std::string& path, const WriteOptions& options,
                          const Environment& environment);

// --overwrite of commands whose -o may replace the model they read. Any other file at
// that place they replace without being asked, as converters do.
Flag OverwriteFlag();

// --external-data of every command that writes models, and what it asks for.
Flag ExternalDataFlag();
WriteOptions ReadWriteFlags(const Args& args);

}  // namespace onward

#endif  // ONWARD_CLI_WRITE_CHECKED_H_
