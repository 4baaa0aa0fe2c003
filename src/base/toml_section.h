#pragma once

// toml++ 3.3 has assertions that a damaged file can violate: they are redirected here to refuse the
// file, in every build type. All uses of toml++ must include this header instead.
namespace diapason::tomlfile {
struct DamagedToml {};
constexpr void ExpectOfToml(bool condition) {
  if (!condition) throw DamagedToml();
}
}  // namespace diapason::tomlfile
#ifdef NDEBUG
#undef NDEBUG
#define DIAPASON_WITHOUT_ASSERTIONS
#endif
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) ::diapason::tomlfile::ExpectOfToml(static_cast<bool>(condition))
#include <toml++/toml.h>
#ifdef DIAPASON_WITHOUT_ASSERTIONS
#define NDEBUG
#undef DIAPASON_WITHOUT_ASSERTIONS
#endif

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::tomlfile {

// Parses one file. Keeps the first error and ignores the rest of the file.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  bool failed() const { return !status_.ok(); }
  const Status& status() const { return status_; }

  void Fail(const toml::source_region& where, const std::string& what) {
    if (failed()) return;
    status_ = Invalid(Format("{}:{}:{}: ", name_, static_cast<unsigned>(where.begin.line),
                             static_cast<unsigned>(where.begin.column)) +
                      what);
  }

 private:
  std::string name_;
  Status status_;
};

// The maximum number of rows of one [[list]].
inline constexpr size_t kMostRows = 256;

// One table of the file. Keys that are asked for are known; Finish() rejects all others.
class Section {
 public:
  Section(Reader* reader, const toml::table& table, std::string title)
      : reader_(reader), table_(table), title_(std::move(title)) {}

  bool Has(const char* key) {
    known_.emplace_back(key);
    return table_.contains(key);
  }

  void Number(const char* key, double low, double high, double* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<double> read;
    if (node->is_integer()) {
      read = static_cast<double>(node->as_integer()->get());
    } else if (node->is_floating_point()) {
      read = node->as_floating_point()->get();
    }
    if (!read) return Wrong(*node, key, "is not a number");
    // NaN is in no range.
    if (!(*read >= low && *read <= high)) {
      return Wrong(*node, key, Format("is out of range ({:g} to {:g})", low, high).c_str());
    }
    *value = *read;
  }

  void Number(const char* key, double low, double high, std::optional<double>* value) {
    double read = std::numeric_limits<double>::quiet_NaN();
    Number(key, low, high, &read);
    if (!std::isnan(read)) *value = read;
  }

  void Integer(const char* key, int low, int high, int* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (!node->is_integer()) return Wrong(*node, key, "is not a whole number");
    const int64_t read = node->as_integer()->get();
    if (read < low || read > high) {
      return Wrong(*node, key, Format("is out of range ({} to {})", low, high).c_str());
    }
    *value = static_cast<int>(read);
  }

  // A number of bytes, or a text such as "256KiB".
  void Bytes(const char* key, uint64_t low, uint64_t* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    uint64_t read = 0;
    if (node->is_integer() && node->as_integer()->get() >= 0) {
      read = static_cast<uint64_t>(node->as_integer()->get());
    } else if (node->is_string()) {
      const Result<uint64_t> parsed = ParseBytes(node->as_string()->get());
      if (!parsed.ok()) return Wrong(*node, key, "is not a size such as 65536 or \"64KiB\"");
      read = parsed.value();
    } else {
      return Wrong(*node, key, "is not a size such as 65536 or \"64KiB\"");
    }
    if (read < low) return Wrong(*node, key, Format("is below {}", size_t{low}).c_str());
    *value = read;
  }

  void Flag(const char* key, bool* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (!node->is_boolean()) return Wrong(*node, key, "is neither true nor false");
    *value = node->as_boolean()->get();
  }

  void Text(const char* key, size_t longest, std::string* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (!node->is_string()) return Wrong(*node, key, "is not a text in quotes");
    const std::string& read = node->as_string()->get();
    if (read.empty() || read.size() > longest) {
      return Wrong(*node, key, Format("must have 1 to {} bytes", longest).c_str());
    }
    for (const char c : read) {
      if (static_cast<unsigned char>(c) < 0x20) return Wrong(*node, key, "has control characters");
    }
    *value = read;
  }

  // One of `words`; the value is its index.
  void Word(const char* key, const std::vector<std::string>& words, int* value) {
    std::string text;
    Text(key, 64, &text);
    if (text.empty() || reader_->failed()) return;
    for (size_t i = 0; i < words.size(); ++i) {
      if (FoldName(words[i]) == FoldName(text)) {
        *value = static_cast<int>(i);
        return;
      }
    }
    Wrong(*table_.get(key), key, ("is '" + text + "'" + Suggestion(text, words)).c_str());
  }

  // The result of `parse` on the text.
  template <typename T, typename Parse>
  void Parsed(const char* key, Parse parse, T* value) {
    std::string text;
    Text(key, 64, &text);
    if (text.empty() || reader_->failed()) return;
    const auto read = parse(text);
    if (!read.ok()) return reader_->Fail(table_.get(key)->source(), read.status().message());
    *value = read.value();
  }

  void Ranks(const char* key, int most, std::vector<int>* ranks) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return Wrong(*node, key, "is not a list of ranks");
    for (const toml::node& item : *list) {
      const auto* number = item.as_integer();
      if (number == nullptr || number->get() < 0 || number->get() >= most) {
        return Wrong(item, key,
                     Format("has something that is no rank (0 to {})", most - 1).c_str());
      }
      ranks->push_back(static_cast<int>(number->get()));
    }
  }

  // Finish() reports missing ones.
  void Require(std::initializer_list<const char*> keys) {
    // One by one: g++ 12 wrongly warns of an overrun in a range insertion.
    for (const char* key : keys) required_.push_back(key);
  }

  // The table of a key, if there is one.
  const toml::table* Table(const char* key) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr) Wrong(*node, key, "is not a table");
    return node->as_table();
  }

  // The tables of [[key]].
  std::vector<const toml::table*> Tables(const char* key) {
    std::vector<const toml::table*> tables;
    const toml::node* node = Find(key);
    if (node == nullptr) return tables;
    const toml::array* list = node->as_array();
    if (list == nullptr || list->size() > kMostRows) {
      Wrong(*node, key, Format("is not a list of up to {} [[{}]]", kMostRows, key).c_str());
      return tables;
    }
    for (const toml::node& item : *list) {
      if (item.as_table() == nullptr) {
        Wrong(item, key, Format("is not a list of [[{}]]", key).c_str());
        return {};
      }
      tables.push_back(item.as_table());
    }
    return tables;
  }

  void Finish() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      bool found = false;
      for (const std::string& known : known_) found = found || known == name;
      if (!found) {
        reader_->Fail(key.source(),
                      Format("{} has no key '{:.60}'", title_, name) + Suggestion(name, known_));
      }
    }
    // Checked last: a missing key may be present with a typo.
    for (const char* key : required_) {
      if (!table_.contains(key)) {
        reader_->Fail(table_.source(), Format("{} has no '{}'", title_, key));
      }
    }
  }

  const toml::source_region& source() const { return table_.source(); }

 private:
  const toml::node* Find(const char* key) {
    known_.emplace_back(key);
    return reader_->failed() ? nullptr : table_.get(key);
  }
  void Wrong(const toml::node& node, const char* key, const char* what) {
    reader_->Fail(node.source(), Format("{}: '{}' {}", title_, key, what));
  }

  Reader* reader_;
  const toml::table& table_;
  std::string title_;
  std::vector<std::string> known_;
  std::vector<const char*> required_;
};

}  // namespace diapason::tomlfile
