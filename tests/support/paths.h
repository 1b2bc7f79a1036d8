// SPDX-License-Identifier: Apache-2.0
// Where tests find what they use. The paths of the build are in one object file, so that a test
// compiles to the same bytes in every folder.
#ifndef ONWARD_TESTS_SUPPORT_PATHS_H_
#define ONWARD_TESTS_SUPPORT_PATHS_H_

#include <string>
#include <vector>

namespace onward {

// The path of something below the shared folder; "" where it is absent.
std::string SharedPath(const std::string& relative);

std::string BuiltProgram();         // the command line
std::string BuiltExamples();        // folder of the programs and plugins of examples/
std::string BadPlugins();           // folder of the plugins of tests/plugins
std::string EmulatedCuda();         // the CUDA device on the emulator, a plugin
std::string BuiltCuda();            // the one for GPUs; may be absent
std::string SourceFolder();         // this repository
std::string GoldenFolder();         // tests/golden
std::string KnownFailuresFile();    // tests/conformance/known_failures.txt
std::string OfficialCasesFolder();  // what tools/cases.sh writes

// The names of the files of a folder that end so, without that, sorted; none where it is absent.
std::vector<std::string> NamesOfFiles(const std::string& folder, const std::string& extension);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_PATHS_H_
