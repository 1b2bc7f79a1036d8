// SPDX-License-Identifier: Apache-2.0
// Which room includes which: all share one include root, so the linker alone does not
// notice a header that belongs to a room further on.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace onward::includes_test {

struct Room {
  std::string folder;
  std::set<std::string> may_use;  // rooms
};

std::vector<Room> Rooms() {
  const std::set<std::string> core = {"core/base",    "core/tensor", "core/graph",
                                      "core/onnx_io", "core/device", "core/runtime"};
  std::set<std::string> training = core;
  training.insert({"autograd", "contrib", "losses", "optimizers", "environment"});
  const std::set<std::string> environment = training;
  training.insert("training_info");
  std::set<std::string> program = training;
  program.insert({"data", "trainer"});
  return {
      {"core/base", {}},
      {"core/picture", {"core/base"}},
      {"core/tensor", {"core/base"}},
      {"core/graph", {"core/base", "core/tensor"}},
      {"core/onnx_io", {"core/base", "core/tensor", "core/graph"}},
      {"core/device", {"core/base", "core/tensor", "core/graph"}},
      {"core/ops", {"core/base", "core/picture", "core/tensor", "core/graph", "core/device"}},
      {"core/cuda", {"core/base", "core/tensor", "core/graph", "core/device"}},
      {"core/runtime", {"core/base", "core/tensor", "core/graph", "core/device"}},
      {"autograd", {"core/base", "core/tensor", "core/graph"}},
      {"contrib", {"core/base", "core/tensor", "core/graph"}},
      {"losses", {"core/base", "core/tensor", "core/graph"}},
      {"optimizers", {"core/base", "core/tensor", "core/graph"}},
      {"environment",
       [&] {
         std::set<std::string> rooms = environment;
         rooms.insert("include/onward");  // plugin.h
         return rooms;
       }()},
      {"training_info", training},
      {"data", {"core/base", "core/picture", "core/tensor"}},
      {"trainer", program},
      {"cli", program},
      {"include/onward", {}},
      {"api",
       [&] {
         std::set<std::string> rooms = training;
         rooms.insert("include/onward");
         return rooms;
       }()},
  };
}

// Of headers that are not ours, those that only some rooms may see.
const std::vector<std::pair<std::string, std::set<std::string>>>& Guests() {
  static const auto* const guests = new std::vector<std::pair<std::string, std::set<std::string>>>{
      {"onnx/", {"core/onnx_io", "training_info"}},
      {"google/protobuf/", {"core/onnx_io", "training_info"}},
      {"Eigen/", {"core/ops"}},
      {"oneapi/", {"core/ops"}},
      {"dnnl", {"core/ops"}},
      {"jpeglib.h", {"core/picture"}},
      {"tiffio.h", {"core/picture"}},
      {"webp/", {"core/picture"}},
      {"openjpeg.h", {"core/picture"}},
  };
  return *guests;
}

// "core/ops" of "core/ops/conv/conv.h"; "" for what is not ours.
std::string RoomOf(const std::string& path) {
  if (path.rfind("onward/", 0) == 0) return "include/onward";
  for (const Room& room : Rooms()) {
    if (path.rfind(room.folder + "/", 0) == 0) return room.folder;
  }
  return "";
}

std::vector<std::string> Includes(const std::filesystem::path& file) {
  static const std::regex pattern("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::ifstream in(file);
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, match, pattern)) found.push_back(match[1]);
  }
  return found;
}

class Architecture : public testing::TestWithParam<Room> {};

TEST_P(Architecture, IncludesOnlyWhatItMayUse) {
  const Room& room = GetParam();
  const std::filesystem::path root = SourceFolder();
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room.folder)) {
    if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
    ++files;
    const std::string file = std::filesystem::relative(entry.path(), root).string();
    for (const std::string& include : Includes(entry.path())) {
      const std::string other = RoomOf(include);
      EXPECT_TRUE(other.empty() || other == room.folder || room.may_use.contains(other))
          << file << " includes " << include << ", but " << room.folder << " may not use " << other;
      for (const auto& [prefix, rooms] : Guests()) {
        EXPECT_FALSE(include.rfind(prefix, 0) == 0 && !rooms.contains(room.folder))
            << file << " includes " << include;
      }
    }
  }
  EXPECT_GT(files, 0) << "there is no " << room.folder;
}

INSTANTIATE_TEST_SUITE_P(Rooms, Architecture, testing::ValuesIn(Rooms()), [](const auto& info) {
  return std::regex_replace(info.param.folder, std::regex("/"), "_");
});

}  // namespace onward::includes_test
