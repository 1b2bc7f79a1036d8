// SPDX-License-Identifier: Apache-2.0
// A file of JSON objects, one per line.
#ifndef ONWARD_TRAINER_REPORT_LOG_JSONL_H_
#define ONWARD_TRAINER_REPORT_LOG_JSONL_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/json.h"

namespace onward {

// A file that grows by whole lines, each handed to the system before Append
// returns.
class JsonlFile {
 public:
  // `append` continues a file that exists, without a half line at its end;
  // otherwise it starts empty.
  static absl::StatusOr<JsonlFile> Open(const std::string& path, bool append);

  absl::Status Append(const JsonWriter& object);

 private:
  JsonlFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file, std::fclose) {}

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_LOG_JSONL_H_
