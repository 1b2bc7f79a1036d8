// SPDX-License-Identifier: Apache-2.0
// Folders that tests write in.
#ifndef ONWARD_TESTS_SUPPORT_SCRATCH_H_
#define ONWARD_TESTS_SUPPORT_SCRATCH_H_

#include <string>

namespace onward {

// An empty folder that goes away with the object.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  const std::string& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Writes a file, making the folders on its way, and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const;
  std::string Read(const std::string& name) const;

 private:
  std::string folder_;
};

// A new empty folder, removed when the test program ends.
std::string TemporaryFolder();

std::string FileBytes(const std::string& path);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_SCRATCH_H_
