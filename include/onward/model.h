// SPDX-License-Identifier: Apache-2.0
// Model files: reading, looking inside, writing.
//
// Threads: a Model is a value; copies share their contents until one is changed. Several
// threads may call const functions of one Model at once.
#ifndef ONWARD_MODEL_H_
#define ONWARD_MODEL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/status.h"
#include "onward/tensor.h"
#include "onward/value.h"

namespace onward::api {

// A broken rule: where, what is wrong, how to mend it. docs/training-info.md has them all.
struct Finding {
  std::string rule;   // short, does not change: "undefined-value"
  std::string place;  // "graph, node 'fc1' (Gemm)"
  std::string what;
  std::string fix;
  bool remark = false;  // the file can be run and trained all the same
};

struct WriteOptions {
  // The weights go to a second file beside the model although one would do.
  bool external_data = false;
};

class Model {
 public:
  // Reads an .onnx file. External data lies beside it and is mapped: those files must not be
  // changed in place while the model, or what was made of it, is in use (they may be replaced).
  static Result<Model> Read(const std::string& path);
  // The same from `size` bytes in memory. `path` stands for the file in messages, and
  // external data is looked for in its folder.
  static Result<Model> Parse(const void* data, size_t size, const std::string& path = "");

  // Writes the file whole or not at all. Past 2 GiB, and where asked for, the weights go to a
  // second file beside it, PATH.data-XXXXXXXX, which it names; such files of earlier writes are
  // removed.
  Status Write(const std::string& path, const WriteOptions& options = {}) const;

  // Where it was read from; empty where it was made in memory.
  std::string path() const;
  int ir_version() const;
  // Operator sets by domain; the standard's own domain is "".
  std::map<std::string, int> opsets() const;
  // Whether the file carries training (TrainingInfoProto): then TrainingSession takes it.
  bool has_training() const;

  // What inference has to be fed: the inputs without a value in the file.
  Result<std::vector<ValueInfo>> Inputs() const;
  Result<std::vector<ValueInfo>> Outputs() const;
  // Names of the initializers (weights and constants) of the inference graph, sorted.
  Result<std::vector<std::string>> Initializers() const;
  // One of them. It shares the model's memory: do not write its elements.
  Result<Tensor> Initializer(const std::string& name) const;

  // Free text that travels in the file (metadata_props); "" where the key is absent.
  std::string Metadata(const std::string& key) const;
  Status SetMetadata(const std::string& key, const std::string& value);

  // Every broken rule of the graph and of the training in it; none for a sound model.
  Result<std::vector<Finding>> Check(const Environment& environment = {}) const;

  Model(const Model& other);
  Model(Model&& other) noexcept;
  Model& operator=(const Model& other);
  Model& operator=(Model&& other) noexcept;
  ~Model();

  struct Impl;

 private:
  friend struct Access;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The plain inference model: no training, nothing that only training needs. Adapters stay nodes of
// it (MergeAdapters in onward/adapters.h).
Result<Model> InferenceModel(const Model& trained);

// The weights of `trained` in a copy of `original`, the file it was made trainable from,
// which keeps its opset, names and all the rest. An error if a trained weight has no place.
Result<Model> InferenceModelLike(const Model& trained, const Model& original,
                                 const Environment& environment = {});

}  // namespace onward::api

#endif  // ONWARD_MODEL_H_
