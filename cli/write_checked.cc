// SPDX-License-Identifier: Apache-2.0
#include "cli/write_checked.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/validate.h"

namespace onward {

absl::Status WriteChecked(const Model& model, const std::string& path, const WriteOptions& options,
                          const Environment& environment) {
  const auto refused = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("'", model.path(), "': '", path,
                                         "' would be broken and is not written"));
  };
  auto findings = CheckModel(model, environment);
  if (!findings.ok()) return refused(findings.status());
  std::erase_if(*findings, IsRemark);
  if (!findings->empty()) return refused(FindingsToStatus(*findings));
  return WriteModel(model, path, options);
}

Flag OverwriteFlag() {
  return Flag::Switch("overwrite", "let OUT replace the model it is made from");
}

Flag ExternalDataFlag() {
  return Flag::Switch("external-data",
                      "weights in a file of their own beside OUT (OUT.data-XXXXXXXX), as models "
                      "over 2 GiB always have them");
}

WriteOptions ReadWriteFlags(const Args& args) {
  return {.external_data = args.Has("external-data")};
}

}  // namespace onward
