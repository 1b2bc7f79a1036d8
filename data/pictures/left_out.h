// SPDX-License-Identifier: Apache-2.0
// What is in folders of pictures and becomes no example.
#ifndef ONWARD_DATA_PICTURES_LEFT_OUT_H_
#define ONWARD_DATA_PICTURES_LEFT_OUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onward {

inline constexpr char kPictureFormats[] = "PNG, JPEG, WebP, TIFF, BMP, JPEG 2000 and PNM";

class FilesLeftOut {
 public:
  // Keeps the names of pictures and counts the others.
  std::vector<std::string> Pictures(std::vector<std::string> names);
  void Folders(size_t count) { folders_ += count; }
  // Pictures that have no class.
  void Beside(size_t count) { beside_ += count; }

  bool empty() const { return endings_.empty() && folders_ == 0 && beside_ == 0; }
  // "5 .gif files, 1 file without an ending"; "": none.
  std::string Endings() const;
  // All of it in one line.
  std::string Text() const;

 private:
  std::map<std::string, int64_t> endings_;
  size_t folders_ = 0, beside_ = 0;
};

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_LEFT_OUT_H_
