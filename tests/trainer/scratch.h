// SPDX-License-Identifier: Apache-2.0
// Files that trainer tests make for themselves, and where the shared data sets
// are.
#ifndef ONWARD_TESTS_TRAINER_SCRATCH_H_
#define ONWARD_TESTS_TRAINER_SCRATCH_H_

#include <stdlib.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace onward {

// A folder that goes away with the test.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "onward-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::string& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string folder_;
};

inline std::string Deflate(const std::string& bytes, int window_bits) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string Gzip(const std::string& bytes) { return Deflate(bytes, 15 + 16); }

// The folder of shared data sets, or "" where ONWARD_SHARED is not set.
inline std::string SharedData(const std::string& name) {
  const char* shared = std::getenv("ONWARD_SHARED");
  return shared == nullptr || *shared == '\0' ? "" : std::string(shared) + "/datasets/" + name;
}

}  // namespace onward

#endif  // ONWARD_TESTS_TRAINER_SCRATCH_H_
