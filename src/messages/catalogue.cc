#include "messages/catalogue.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "base/text.h"
#include "base/toml_section.h"
#include "messages/tables.h"

namespace diapason::messages {
namespace {

using tomlfile::Reader;
using tomlfile::Section;

constexpr size_t kLongest = 600;
constexpr size_t kMostItems = 64;

const std::vector<std::string>& CauseNames() {
  static const std::vector<std::string> names = {"resource", "death",   "program", "hardware",
                                                 "network",  "cascade", "benign"};
  return names;
}

constexpr int kWeights[] = {80, 65, 60, 70, 50, 12, 100};

class MessageReader {
 public:
  MessageReader(Reader* reader, const toml::table& table)
      : reader_(reader), table_(table), section_(reader, table, "a message") {}

  Message Read() {
    Message message;
    section_.Require({"id", "cause", "find", "title", "action", "example"});
    section_.Text("id", 64, &message.id);
    int cause = 0;
    section_.Word("cause", CauseNames(), &cause);
    message.cause = static_cast<Cause>(cause);
    message.weight = kWeights[cause];
    section_.Integer("weight", 1, 99, &message.weight);
    int severity = 0;
    section_.Word("severity", {"error", "warning", "note"}, &severity);
    message.severity = static_cast<Severity>(static_cast<int>(Severity::kError) - severity);
    if (message.cause == Cause::kBenign) message.severity = Severity::kFine;
    int level = 0;
    section_.Word("level", {"any", "warn"}, &level);
    message.only_warn = level == 1;
    section_.Flag("quote", &message.quote);
    section_.Flag("fallback", &message.fallback);
    Strings("find", Matcher::kShortest, &message.find);
    Strings("with", 2, &message.with);
    Strings("without", 2, &message.without);
    Strings("example", 4, &message.examples);
    section_.Text("title", kLongest, &message.title);
    section_.Text("action", kLongest, &message.action);
    section_.Finish();
    return message;
  }

 private:
  void Strings(const char* key, size_t shortest, std::vector<std::string>* strings) {
    if (!section_.Has(key) || reader_->failed()) return;
    const toml::array* list = table_.get(key)->as_array();
    if (list == nullptr || list->empty() || list->size() > kMostItems) {
      return Wrong(*table_.get(key), Format("'{}' is not a list of at most {}", key, kMostItems));
    }
    for (const toml::node& item : *list) {
      if (!item.is_string() || item.as_string()->get().size() < shortest) {
        return Wrong(item, Format("'{}' has something that is no text of at least {} characters",
                                  key, shortest));
      }
      strings->push_back(item.as_string()->get());
    }
  }
  void Wrong(const toml::node& node, const std::string& what) {
    reader_->Fail(node.source(), "a message: " + what);
  }

  Reader* reader_;
  const toml::table& table_;
  Section section_;
};

bool AnyIn(const std::vector<std::string>& texts, std::string_view line) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return line.find(text) != std::string_view::npos;
  });
}

// Whether a line that fits both is `a`.
bool Precedes(const Message& a, const Message& b) {
  if (a.fallback != b.fallback) return b.fallback;
  return a.weight > b.weight;
}

}  // namespace

std::string_view CauseName(Cause cause) { return CauseNames()[static_cast<size_t>(cause)]; }

Result<Catalogue> Catalogue::Parse(const std::vector<std::pair<std::string, std::string>>& files) {
  Catalogue catalogue;
  for (const auto& [name, text] : files) {
    Reader reader(name);
    try {
      const toml::table parsed = toml::parse(text);
      Section root(&reader, parsed, "a table of messages");
      for (const toml::table* table : root.Tables("message")) {
        Message message = MessageReader(&reader, *table).Read();
        if (reader.failed()) break;
        catalogue.messages_.push_back(std::move(message));
      }
      root.Require({"message"});
      root.Finish();
    } catch (const toml::parse_error& error) {
      reader.Fail(error.source(), std::string(error.description()));
    } catch (const tomlfile::DamagedToml&) {
      return Invalid(name + ": this is no TOML");
    }
    if (reader.failed()) return reader.status();
  }
  std::unordered_map<std::string, uint32_t> known;
  for (size_t i = 0; i < catalogue.messages_.size(); ++i) {
    for (const std::string& text : catalogue.messages_[i].find) {
      const auto next = static_cast<uint32_t>(catalogue.texts_.size());
      const auto [entry, fresh] = known.emplace(text, next);
      if (fresh) {
        catalogue.texts_.push_back(text);
        catalogue.owners_.emplace_back();
      }
      catalogue.owners_[entry->second].push_back(static_cast<uint32_t>(i));
    }
  }
  catalogue.matcher_.emplace_back(catalogue.texts_);
  return catalogue;
}

const Catalogue& Catalogue::BuiltIn() {
  static const Catalogue catalogue = [] {
    Result<Catalogue> all = Parse(BuiltInTables());
    if (all.ok()) return std::move(all.value());
    // The tests read every table; this is a damaged build.
    std::fprintf(stderr, "diapason: warning: a table of messages is left out: %s\n",
                 all.status().message().c_str());
    std::vector<std::pair<std::string, std::string>> fine;
    for (const auto& table : BuiltInTables()) {
      fine.push_back(table);
      if (!Parse(fine).ok()) fine.pop_back();
    }
    return std::move(Parse(fine).value());
  }();
  return catalogue;
}

int Catalogue::Classify(std::string_view line, bool warning) const {
  std::vector<uint32_t> found;
  matcher_[0].All(line, &found);
  int best = -1;
  for (const uint32_t text : found) {
    for (const uint32_t index : owners_[text]) {
      const Message& message = messages_[index];
      if (message.only_warn && !warning) continue;
      if (best >= 0 && !Precedes(message, messages_[static_cast<size_t>(best)])) continue;
      if (!message.with.empty() && !AnyIn(message.with, line)) continue;
      if (AnyIn(message.without, line)) continue;
      best = static_cast<int>(index);
    }
  }
  return best;
}

}  // namespace diapason::messages
