// SPDX-License-Identifier: Apache-2.0
// Where a file is written, under which name and mode until it is whole, and what
// happens to temporary files of the living and the dead.
#include "core/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/support/scratch.h"

namespace onward::atomic_file_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

constexpr char kTemporary[] = "\\.m\\.onward-[0-9a-f]+\\.tmp";

class AtomicFileTest : public ::testing::Test {
 protected:
  std::vector<std::string> Files(const std::string& folder = "") const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(scratch_.Path(folder)))
      names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  mode_t Mode(const std::string& name) const {
    struct stat info = {};
    stat(scratch_.Path(name).c_str(), &info);
    return info.st_mode & 07777;
  }
  Scratch scratch_;
};

TEST_F(AtomicFileTest, PiecesBecomeAFileAtCommit) {
  const std::string path = scratch_.Write("m", "old");
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("one, ").ok());
  ASSERT_TRUE(file->Write("two").ok());
  EXPECT_EQ(file->size(), 8);
  EXPECT_EQ(FileBytes(path), "old");
  EXPECT_THAT(Files(), ElementsAre(MatchesRegex(kTemporary), "m"));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(FileBytes(path), "one, two");
  EXPECT_THAT(Files(), ElementsAre("m"));
}

TEST_F(AtomicFileTest, NothingStaysWithoutCommit) {
  {
    auto file = AtomicFile::Create(scratch_.Path("m"));
    ASSERT_TRUE(file.ok() && file->Write("half").ok());
    AtomicFile moved = std::move(*file);
    EXPECT_THAT(Files(), ElementsAre(MatchesRegex(kTemporary)));
  }
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(AtomicFileTest, TwoWritersOfOneTargetDoNotMeet) {
  auto first = AtomicFile::Create(scratch_.Path("m"));
  auto second = AtomicFile::Create(scratch_.Path("m"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Files().size(), 2);
  ASSERT_TRUE(first->Write("first").ok() && second->Write("second").ok());
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(scratch_.Read("m"), "second");
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(scratch_.Read("m"), "first");
  EXPECT_THAT(Files(), ElementsAre("m"));
}

// Another process, as in another container with the same folder and the same pid.
TEST_F(AtomicFileTest, TemporariesOfTheDeadAreSweptThoseOfTheLivingAreNot) {
  const std::string path = scratch_.Path("m");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::Create(path);
    const bool good = file.ok() && file->Write("half").ok();
    if (write(ready[1], "x", 1) != 1 || !good) _exit(1);
    pause();
    _exit(1);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  EXPECT_TRUE(WriteFileAtomically(path, "while it lives").ok());
  EXPECT_THAT(Files(), ElementsAre(MatchesRegex(kTemporary), "m"));
  // Names that only look alike are other people's.
  for (const char* name : {".m.onward-0123abcd.tmp.gz", ".m2.onward-0123abcd.tmp", "m.1.tmp"})
    scratch_.Write(name, "mine");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(WriteFileAtomically(path, "after its death").ok());
  EXPECT_THAT(Files(),
              ElementsAre(".m.onward-0123abcd.tmp.gz", ".m2.onward-0123abcd.tmp", "m", "m.1.tmp"));
}

TEST_F(AtomicFileTest, ModeIsTheUmasksOrThatOfTheReplacedFile) {
  const mode_t before = umask(027);
  const std::string fresh = scratch_.Path("fresh"), kept = scratch_.Write("kept", "old");
  EXPECT_EQ(chmod(kept.c_str(), 0664), 0);
  EXPECT_TRUE(WriteFileAtomically(fresh, "x").ok());
  EXPECT_TRUE(WriteFileAtomically(kept, "x").ok());
  umask(before);
  EXPECT_EQ(Mode("fresh"), 0640);
  EXPECT_EQ(Mode("kept"), 0664);
}

TEST_F(AtomicFileTest, WritesThroughLinksToWhereTheyLead) {
  fs::create_directories(scratch_.Path("big"));
  scratch_.Write("big/old", "old");
  fs::create_symlink("big/old", scratch_.Path("relative"));
  fs::create_symlink(scratch_.Path("big/new"), scratch_.Path("absolute"));
  fs::create_symlink("absolute", scratch_.Path("twice"));
  EXPECT_TRUE(WriteFileAtomically(scratch_.Path("relative"), "r").ok());
  EXPECT_TRUE(WriteFileAtomically(scratch_.Path("twice"), "t").ok());
  EXPECT_EQ(scratch_.Read("big/old"), "r");
  EXPECT_EQ(scratch_.Read("big/new"), "t");
  EXPECT_TRUE(fs::is_symlink(scratch_.Path("relative")));
  EXPECT_TRUE(fs::is_symlink(scratch_.Path("twice")));
  EXPECT_THAT(Files("big"), ElementsAre("new", "old"));
}

// What Create would refuse is refused when asked beforehand, by the same words.
TEST_F(AtomicFileTest, TargetsAreCheckedBeforeWork) {
  fs::create_directory(scratch_.Path("folder"));
  fs::create_symlink("gone/m", scratch_.Path("lost"));
  ASSERT_EQ(mkfifo(scratch_.Path("pipe").c_str(), 0600), 0);
  const struct {
    std::string name, says;
  } cases[] = {{"folder", "is a folder"},     {"lost", "does not exist"},
               {"pipe", "not an ordinary"},   {"missing/m", "does not exist"},
               {"folder/", "names a folder"}, {std::string(300, 'n'), "too long"}};
  for (const auto& c : cases) {
    const absl::Status early = WriteTarget(scratch_.Path(c.name)).status();
    EXPECT_THAT(std::string(early.message()), HasSubstr(c.says));
    EXPECT_THAT(std::string(early.message()), HasSubstr(scratch_.Path(c.name)));
    EXPECT_EQ(early, WriteFileAtomically(scratch_.Path(c.name), "x"));
  }
}

TEST_F(AtomicFileTest, LongestNames) {
  const std::string name(255, 'n');
  EXPECT_TRUE(WriteFileAtomically(scratch_.Path(name), "x").ok());
  EXPECT_EQ(scratch_.Read(name), "x");
}

}  // namespace onward::atomic_file_test
