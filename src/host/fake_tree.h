#pragma once

#include <string>

namespace diapason::host {

// For tests: a folder that looks like a machine, made from a text of tests/data/advise/hosts (its
// README.md has the format), and gone with this object.
class FakeTree {
 public:
  // `name`: "dgx-h100.tree", or a full path.
  explicit FakeTree(const std::string& name);
  ~FakeTree();
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }
  // Empty when everything was understood.
  const std::string& trouble() const { return trouble_; }
  // One more line, "PATH = TEXT" and the others.
  void Add(const std::string& line);

 private:
  std::string root_;
  std::string trouble_;
};

// The bytes of a shared library that is made of "soname=A; symbols=B, C; text=D; needed=E;
// rpath=F".
std::string FakeElf(const std::string& text);

}  // namespace diapason::host
