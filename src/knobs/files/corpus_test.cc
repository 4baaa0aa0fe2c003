// Every file of tests/data/env-files against the list beside it: its form, its library, how many
// variables it sets, and exactly the findings that are true of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "knobs/files/read_file.h"

namespace diapason::knobs {
namespace {

std::string WithoutFolder(std::string text, const std::string& folder) {
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
    text.erase(at, folder.size());
  }
  return text;
}

// What `env check --file` says, one finding a line: severity, id, evidence.
std::string Said(const std::string& folder, const std::string& name) {
  const Result<std::string> text = ReadFile(folder + name, 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  FileReading read = ReadVariables(text.value(), folder + name, {});
  CheckedFor checked_for;
  checked_for.library = read.library;
  checked_for.file = checked_for.guessed = true;
  checked_for.either = read.either;
  std::vector<Finding> findings = read.findings;
  for (Finding& one : CheckAssignments(read.assignments, checked_for, Catalogue::BuiltIn())) {
    if (one.severity != Severity::kFine) findings.push_back(std::move(one));
  }
  const auto variables =
      std::count_if(read.assignments.begin(), read.assignments.end(),
                    [](const Assignment& one) { return !one.overridden && !one.unset; });
  const std::string library = read.either ? "either" : std::string(LibraryName(read.library));
  std::string said = std::string(FormText(read.form)) + ", " + library +
                     Format(", {} variables\n", static_cast<size_t>(variables));
  std::vector<std::string> lines;
  for (const Finding& one : findings) {
    lines.push_back(std::string(SeverityName(one.severity)) + " " + one.id + " " +
                    Join(one.evidence, " | "));
  }
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) said += WithoutFolder(line, folder) + "\n";
  return said;
}

TEST(Corpus, EveryFileHasExactlyItsFindings) {
  const std::string folder = std::string(DIAPASON_SOURCE_DIR) + "/tests/data/env-files/";
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".expected") || name == "README.md") continue;
    ++count;
    const Result<std::string> expected = ReadFile(folder + name + ".expected", 1 << 20);
    ASSERT_TRUE(expected.ok()) << name << ": " << expected.status().message();
    EXPECT_EQ(Said(folder, name), expected.value()) << name;
  }
  EXPECT_GE(count, 40u);
}

}  // namespace
}  // namespace diapason::knobs
