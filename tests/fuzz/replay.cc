// Runs a fuzz target over its corpus and over mutations of it, the same ones every time: a fuzz
// test that needs no fuzzer. `./dev fuzz NAME` searches on from the same corpus.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "fuzz.h"

namespace {

constexpr int kMutationsPerFile = 2000;
constexpr size_t kMostBytes = 1 << 20;

std::string Mutate(std::string text, const std::string& other, std::mt19937& random) {
  const int edits = 1 + static_cast<int>(random() % 6);
  for (int i = 0; i < edits; ++i) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 6) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, random() % 16);
        break;
      case 2:
        text.insert(at, 1, "0123456789-,#\n=\"d.xX\0"[random() % 21]);
        break;
      case 3:
        text.insert(at, text.substr(at, random() % 64));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        if (!other.empty()) text.insert(at, other.substr(random() % other.size(), random() % 80));
    }
  }
  return text;
}

void Run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const auto text = diapason::ReadFile(entry.path().string(), kMostBytes);
      if (!text.ok()) {
        std::fprintf(stderr, "%s\n", text.status().message().c_str());
        return 1;
      }
      inputs.push_back(text.value());
    }
  }
  if (inputs.empty()) {
    std::fprintf(stderr, "the corpus is empty\n");
    return 1;
  }
  // Folders are listed in any order; the mutations must not depend on it.
  std::sort(inputs.begin(), inputs.end());
  std::mt19937 random(7);
  size_t runs = 0;
  for (const std::string& input : inputs) {
    Run(input);
    ++runs;
    for (int i = 0; i < kMutationsPerFile; ++i, ++runs) {
      Run(Mutate(input, inputs[random() % inputs.size()], random));
    }
  }
  std::printf("%zu inputs from %zu files\n", runs, inputs.size());
  return 0;
}
