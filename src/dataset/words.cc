#include "dataset/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "domain/collectives.h"

namespace diapason::dataset {
namespace {

struct NameEntry {
  const char* name;
  const char* table;
};
constexpr NameEntry kTypes[] = {
    {"f32", "float"},   {"f64", "double"},       {"f16", "half"},        {"bf16", "bfloat16"},
    {"i8", "int8"},     {"u8", "uint8"},         {"i32", "int32"},       {"i64", "int64"},
    {"u32", "uint32"},  {"u64", "uint64"},       {"f32", "float32"},     {"f64", "float64"},
    {"f16", "float16"}, {"f8e4m3", "fp8_e4m3"},  {"f8e5m2", "fp8_e5m2"}, {"i8", "char"},
    {"i32", "int"},     {"f8e4m3", "fp8e4m3fn"},
};

bool Keeps(std::string_view name) {
  const std::string folded = FoldName(name);
  return folded.empty() || folded == "default" || name == "-1";
}

}  // namespace

Result<std::string> ParseCollectiveWord(std::string_view name) {
  std::string folded = FoldName(name);
  if (folded.size() > 4 && folded.ends_with("perf")) folded.resize(folded.size() - 4);
  if (folded == "bcast") folded = "broadcast";
  std::vector<std::string> names;
  for (const TestedCollective& known : TestedCollectives()) {
    names.emplace_back(known.name);
    if (folded == known.name) return names.back();
  }
  return Invalid(Format("unknown collective '{}'", Printable(name, 64)) +
                 Suggestion(name.substr(0, 64), names));
}

std::string CollectiveInName(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string name = FoldName(slash == std::string_view::npos ? path : path.substr(slash + 1));
  std::string found;
  // "allreduce" comes before "reduce".
  for (const TestedCollective& known : TestedCollectives()) {
    const size_t at = name.find(known.name);
    if (at == std::string::npos) continue;
    if (!found.empty()) return "";
    found = known.name;
    name.erase(at, found.size());
  }
  return found;
}

std::string CollectiveTableWord(const std::string& collective) {
  for (const TestedCollective& known : TestedCollectives()) {
    if (collective == known.name) return std::string(known.program);
  }
  return collective;
}

Result<std::string> ParseTypeWord(std::string_view name) {
  const std::string folded = FoldName(name);
  std::vector<std::string> names;
  for (const NameEntry& word : kTypes) {
    if (folded == FoldName(word.table) || folded == word.name) return std::string(word.name);
    // Every type once, by the name that --help shows.
    const bool again = std::any_of(std::begin(kTypes), &word, [&word](const NameEntry& before) {
      return std::string_view(before.name) == std::string_view(word.name);
    });
    if (!again) names.emplace_back(word.table);
  }
  return Invalid(Format("unknown data type '{}'", Printable(name, 64)) +
                 Suggestion(name.substr(0, 64), names));
}

bool Reduces(const std::string& collective) {
  const OperationFacts* const facts = FindMeasured(collective);
  return facts != nullptr && facts->reduces;
}

Status SetConfig(const std::string& library, std::string_view algorithm, std::string_view protocol,
                 int64_t channels, Point* point) {
  Library words = Library::kRccl;  // NCCL's names and one more
  if (!library.empty()) {
    ASSIGN_OR_RETURN(const Library parsed, ParseLibrary(library));
    words = parsed;
  }
  Collective collective = Collective::kAllReduce;
  if (const Result<Collective> known = ParseCollective(Library::kGloo, point->collective);
      known.ok()) {
    collective = known.value();
  }
  point->algorithm.clear();
  point->protocol.clear();
  if (!Keeps(algorithm)) {
    ASSIGN_OR_RETURN(const int number, ParseAlgorithm(words, collective, algorithm));
    point->algorithm = AlgorithmName(words, collective, number);
  }
  if (!Keeps(protocol)) {
    ASSIGN_OR_RETURN(const int number, ParseProtocol(words, protocol));
    point->protocol = ProtocolName(words, number);
  }
  if (channels < -1 || channels > 1024) {
    return Invalid(Format("{} channels are out of range; -1 leaves them to the library", channels));
  }
  point->channels = channels > 0 ? static_cast<int>(channels) : 0;
  return {};
}

Result<std::string> SortEnvironment(std::vector<std::string> pairs) {
  struct Taken {
    const char* name;
    const char* option;
  };
  constexpr Taken kTaken[] = {{"NCCL_ALGO=", "--algorithm"}, {"NCCL_PROTO=", "--protocol"}};
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 ||
        pair.find_first_of(" \t\r\n") != std::string::npos) {
      return Invalid("'" + Printable(pair, 80) + "' is not NAME=VALUE without blanks");
    }
    for (const Taken& taken : kTaken) {
      if (pair.starts_with(taken.name)) {
        return Invalid(Format("'{}' is part of the configuration: say it with {}",
                              Printable(pair, 80), taken.option));
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return Join(pairs, " ");
}

bool ParseDecimal(std::string_view text, double* value, double* half_digit) {
  if (text.empty() || text.size() > 64) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (error != std::errc() || stop != end || !std::isfinite(*value)) return false;
  const size_t exponent_at = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, exponent_at);
  int64_t exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view written = text.substr(exponent_at + 1);
    if (written.starts_with('+')) written.remove_prefix(1);
    if (!ParseSigned(written, &exponent)) return false;
  }
  const size_t dot = digits.find('.');
  if (dot != std::string_view::npos) exponent -= static_cast<int64_t>(digits.size() - dot - 1);
  *half_digit = 0.5 * std::pow(10.0, static_cast<double>(exponent));
  return true;
}

std::string Printable(std::string_view text, size_t limit) {
  std::string printable = diapason::Printable(text.substr(0, limit));
  if (text.size() > limit) printable += "...";
  return printable;
}

}  // namespace diapason::dataset
