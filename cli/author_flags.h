// SPDX-License-Identifier: Apache-2.0
// The flags that describe how a model is to be trained, shared by
// make-trainable, train and bench.
#ifndef ONWARD_CLI_AUTHOR_FLAGS_H_
#define ONWARD_CLI_AUTHOR_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "training_info/author.h"

namespace onward {

// What is trained: the loss, the output it compares, and which weights.
std::vector<Flag> ChoiceFlags();
absl::Status ReadChoiceFlags(const Args& args, AuthorOptions* options);
// These, and how it is trained.
std::vector<Flag> AuthorFlags();
// `options.loss` keeps its value where --loss is not given.
absl::Status ReadAuthorFlags(const Args& args, AuthorOptions* options);
// Only whether they can be read, for Command::check.
absl::Status CheckAuthorFlags(const Args& args);

// Whether the loss is to weigh classes, which makes it part of the file. Not every command that
// makes models trainable knows the flag.
bool WeighsClasses(const Args& args);

// Metadata: the flags that made a file trainable, as a JSON list ["--loss=mse"]. A later command
// with the same flags finds them again.
inline constexpr char kMetaFlags[] = "onward.train_flags";
void StoreAuthorFlags(const Args& args, Model* model);
// An error that names the flags that the trainable file was not made with: they cannot be meant.
// What changes the rate can be changed.
absl::Status CheckFlagsOfTrainable(const Args& args, const Model& model);

// A note where a loss of logits meets a model that ends in Softmax or Sigmoid; ""
// otherwise.
std::string TwiceNote(const Model& model, const AuthorOptions& options);

}  // namespace onward

#endif  // ONWARD_CLI_AUTHOR_FLAGS_H_
