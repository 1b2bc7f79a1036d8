// SPDX-License-Identifier: Apache-2.0
#include "tests/support/npz.h"

#include <zlib.h>

#include <fstream>

#include "data/arrays/npy.h"

namespace onward {
namespace {

void Little(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

void WriteNpz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  std::string entries, directory;
  for (const auto& [array, tensor] : arrays) {
    const std::string name = array + ".npy", bytes = SerializeNpy(tensor).value();
    std::string common;
    Little(20, 2, &common);
    Little(0, 8, &common);  // flags, stored, time
    Little(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())),
           4, &common);
    Little(bytes.size(), 4, &common);
    Little(bytes.size(), 4, &common);
    Little(name.size(), 2, &common);
    Little(0, 2, &common);
    directory += "PK\x01\x02";
    Little(20, 2, &directory);
    directory += common;
    directory.append(10, '\0');
    Little(entries.size(), 4, &directory);
    directory += name;
    entries += "PK\x03\x04" + common + name + bytes;
  }
  std::string end = "PK\x05\x06";
  Little(0, 4, &end);
  Little(arrays.size(), 2, &end);
  Little(arrays.size(), 2, &end);
  Little(directory.size(), 4, &end);
  Little(entries.size(), 4, &end);
  Little(0, 2, &end);
  std::ofstream(path, std::ios::binary) << entries << directory << end;
}

}  // namespace onward
