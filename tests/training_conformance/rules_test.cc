// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md and the kit belong together: every rule has cases, every case a rule, and
// the document lists them; every finding of the checker stands with a rule and has a file that
// triggers it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/training_kit.h"

namespace onward::rules_test {

namespace fs = std::filesystem;

struct Rule {
  std::set<std::string> cases, findings;
};

std::string Document() { return FileBytes(SourceFolder() + "/docs/training-info.md"); }

// What `pattern` finds, its first group.
std::set<std::string> Found(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

// The items of the document that begin with a rule's name.
std::map<std::string, Rule> Rules() {
  std::map<std::string, std::string> items;
  std::istringstream lines(Document());
  std::string rule;
  std::smatch match;
  static const std::regex start("^- \\*\\*(T-[A-Z]+-[0-9]+)\\*\\*");
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, start)) {
      rule = match[1];
      EXPECT_FALSE(items.contains(rule)) << rule << " stands twice";
    } else if (line.rfind("  ", 0) != 0) {
      rule.clear();
    }
    if (!rule.empty()) items[rule] += line + "\n";
  }
  std::map<std::string, Rule> rules;
  for (const auto& [name, text] : items) {
    rules[name].cases = Found(text, "`([a-z0-9_]+/[a-z0-9_]+)`");
    for (const std::string& list : Found(text, "[Ff]indings?\\s+((?:`[a-z-]+`,?\\s*)+)"))
      rules[name].findings.merge(Found(list, "`([a-z-]+)`"));
  }
  return rules;
}

TEST(TrainingRules, HaveTheCasesThatTheDocumentLists) {
  std::map<std::string, std::set<std::string>> of_kit;
  for (const KitCase& c : ReadKit()) {
    EXPECT_FALSE(c.rules.empty()) << c.name << " names no rule";
    EXPECT_NE(c.about, "") << c.name;
    for (const std::string& rule : c.rules) of_kit[rule].insert(c.name);
  }
  const std::map<std::string, Rule> rules = Rules();
  EXPECT_GE(rules.size(), 80u);
  for (const auto& [name, rule] : rules) {
    EXPECT_FALSE(of_kit[name].empty()) << name << " has no case";
    EXPECT_EQ(rule.cases, of_kit[name]) << name << ": run tests/training_conformance/generate.py";
  }
  for (const auto& [name, cases] : of_kit)
    EXPECT_TRUE(rules.contains(name)) << *cases.begin() << " names rule " << name;
}

TEST(TrainingRules, HaveFilesThatTriggerTheirFindings) {
  std::map<std::string, std::set<std::string>> triggered;
  std::set<std::string> all;
  for (const KitCase& c : ReadKit()) {
    for (const std::string& rule : c.rules)
      triggered[rule].insert(c.findings.begin(), c.findings.end());
    all.insert(c.findings.begin(), c.findings.end());
  }
  std::set<std::string> documented;
  for (const auto& [name, rule] : Rules()) {
    for (const std::string& finding : rule.findings)
      EXPECT_TRUE(triggered[name].contains(finding)) << name << ": " << finding;
    documented.insert(rule.findings.begin(), rule.findings.end());
  }
  for (const std::string& finding : all)
    EXPECT_TRUE(documented.contains(finding)) << finding << " stands with no rule";
}

// The names that the sources give their findings. Two words at least: others would be found in any
// text.
std::set<std::string> FindingsOfTheSources() {
  std::set<std::string> names;
  for (const char* room : {"/core", "/training_info"}) {
    for (const auto& entry : fs::recursive_directory_iterator(SourceFolder() + room)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string text = FileBytes(entry.path());
      if (text.find("Finding") == std::string::npos) continue;
      names.merge(Found(text, "\"([a-z]+(?:-[a-z]+)+)\""));
    }
  }
  return names;
}

TEST(TrainingRules, StandForEveryFindingOfTheChecker) {
  std::set<std::string> triggered, documented;
  for (const KitCase& c : ReadKit()) triggered.insert(c.findings.begin(), c.findings.end());
  for (const auto& [name, rule] : Rules())
    documented.insert(rule.findings.begin(), rule.findings.end());
  const std::set<std::string> named = FindingsOfTheSources();
  EXPECT_GE(named.size(), 30u);
  for (const std::string& finding : named) {
    EXPECT_TRUE(triggered.contains(finding)) << finding << " is triggered by no file of the kit";
    EXPECT_TRUE(documented.contains(finding)) << finding << " stands with no rule";
  }
}

TEST(TrainingRules, KitIsLargeEnough) { EXPECT_GE(ReadKit().size(), 150u); }

}  // namespace onward::rules_test
