#pragma once

#include <string>

#include "base/temporary_file.h"

namespace diapason::host {

// For tests: a folder that looks like a machine, created from a text of tests/data/hosts
// (its README.md has the format); the destructor removes it.
class FakeTree {
 public:
  // `name`: "dgx-h100.tree", or a full path.
  explicit FakeTree(const std::string& name);
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }
  // Empty if everything was parsed.
  const std::string& trouble() const { return trouble_; }
  // Adds one line, "PATH = TEXT" or another form.
  void Add(const std::string& line);

 private:
  const TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
  std::string trouble_;
};

// The bytes of a shared library, described as "soname=A; symbols=B, C; text=D; needed=E; rpath=F".
std::string FakeElf(const std::string& text);

}  // namespace diapason::host
