// SPDX-License-Identifier: Apache-2.0
// A file of events as TensorBoard reads them: records (TFRecord) that each hold a protocol buffer
// tensorflow.Event, both written here by hand.
#ifndef ONWARD_TRAINER_REPORT_TENSORBOARD_EVENT_FILE_H_
#define ONWARD_TRAINER_REPORT_TENSORBOARD_EVENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// CRC-32C (Castagnoli).
uint32_t Crc32c(absl::string_view bytes);

class EventFile {
 public:
  // A new file in the folder, which is made where it is not there. Names hold the time, the
  // machine and the process, so that no two are the same.
  static absl::StatusOr<EventFile> Create(const std::string& folder);

  // Each is handed to the system before the call returns.
  absl::Status AddScalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  // Markdown.
  absl::Status AddText(int64_t step, const std::string& tag, const std::string& text);
  // What earlier files of the folder have from this step on is void.
  absl::Status AddRestart(int64_t step);

  const std::string& path() const { return path_; }

 private:
  EventFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file, std::fclose) {}
  absl::Status Append(absl::string_view event);

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_TENSORBOARD_EVENT_FILE_H_
