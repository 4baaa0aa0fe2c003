#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/toml_section.h"
#include "domain/library_version.h"
#include "knobs/catalogue.h"

namespace diapason::knobs {
namespace {

using tomlfile::Reader;
using tomlfile::Section;

constexpr size_t kLongest = 2000;
constexpr size_t kMostItems = 256;

const std::vector<std::string>& Types() {
  static const std::vector<std::string> types = {"number", "switch", "word", "list", "text"};
  return types;
}

// Reads one table, including types that Section does not read: lists, large numbers, version
// ranges.
class KnobReader {
 public:
  KnobReader(Reader* reader, const toml::table& table, std::string title)
      : reader_(reader), table_(table), section_(reader, table, title), title_(std::move(title)) {}

  Knob Read(const std::string& group, const std::string& reader) {
    Knob knob;
    section_.Require({"name", "type", "text"});
    section_.Text("name", 64, &knob.name);
    if (!knob.name.empty()) {
      title_ = knob.name;
      CheckName(knob.name);
    }
    int type = static_cast<int>(KnobType::kText);
    section_.Word("type", Types(), &type);
    knob.type = static_cast<KnobType>(type);
    section_.Flag("exists", &knob.exists);
    knob.reader = reader;
    section_.Text("reader", 64, &knob.reader);
    std::string text;
    TextOrNone("default", &text);
    ReadLibrary("nccl", text, &knob.nccl);
    ReadLibrary("rccl", text, &knob.rccl);
    Strings("values", &knob.values);
    section_.Flag("fold_case", &knob.fold_case);
    knob.has_low = Number("low", &knob.low);
    knob.has_high = Number("high", &knob.high);
    Numbers("special", &knob.special);
    knob.group = group;
    section_.Text("group", 64, &knob.group);
    section_.Text("text", kLongest, &knob.text);
    section_.Text("trade", kLongest, &knob.trade);
    section_.Text("small", kLongest, &knob.advice.small);
    section_.Text("large", kLongest, &knob.advice.large);
    section_.Text("many", kLongest, &knob.advice.many);
    section_.Text("few", kLongest, &knob.advice.few);
    Strings("needs", &knob.needs);
    Strings("conflicts", &knob.conflicts);
    section_.Text("successor", kLongest, &knob.successor);
    section_.Text("note", kLongest, &knob.note);
    section_.Flag("documented", &knob.documented);
    int when = 0;
    const std::vector<std::string> moments = {"process", "communicator"};
    section_.Word("takes_effect", moments, &when);
    knob.takes_effect = moments[static_cast<size_t>(when)];
    section_.Finish();
    CheckWhole(knob);
    return knob;
  }

 private:
  const toml::node* Find(const char* key) {
    return section_.Has(key) && !reader_->failed() ? table_.get(key) : nullptr;
  }
  void Wrong(const toml::node& node, const std::string& what) {
    reader_->Fail(node.source(), title_ + ": " + what);
  }
  void CheckName(const std::string& name) {
    bool fine = name[0] >= 'A' && name[0] <= 'Z';
    for (const char c : name) {
      fine = fine && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
    }
    if (!fine) Wrong(*table_.get("name"), "'name' is no name of a variable");
  }

  // "" is a default, too: none.
  void TextOrNone(const char* key, std::string* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (node->is_string() && node->as_string()->get().empty()) {
      value->clear();
    } else {
      section_.Text(key, kLongest, value);
    }
  }
  bool Number(const char* key, int64_t* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return false;
    if (!node->is_integer()) {
      Wrong(*node, Format("'{}' is not a whole number", key));
      return false;
    }
    *value = node->as_integer()->get();
    return true;
  }
  const toml::array* List(const char* key) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    const toml::array* list = node->as_array();
    if (list == nullptr || list->size() > kMostItems) {
      Wrong(*node, Format("'{}' is not a list of up to {}", key, kMostItems));
      return nullptr;
    }
    return list;
  }
  void Numbers(const char* key, std::vector<int64_t>* numbers) {
    const toml::array* list = List(key);
    if (list == nullptr) return;
    for (const toml::node& item : *list) {
      if (!item.is_integer()) {
        return Wrong(item, Format("'{}' has something that is no whole number", key));
      }
      numbers->push_back(item.as_integer()->get());
    }
  }
  void Strings(const char* key, std::vector<std::string>* strings) {
    const toml::array* list = List(key);
    if (list == nullptr) return;
    for (const toml::node& item : *list) {
      if (!item.is_string() || item.as_string()->get().empty()) {
        return Wrong(item, Format("'{}' has something that is no text in quotes", key));
      }
      strings->push_back(item.as_string()->get());
    }
  }

  void ReadLibrary(const char* library, const std::string& default_text, KnobReading* reading) {
    const std::string default_key = std::string(library) + "_default";
    const std::string list_key = std::string(library) + "_defaults";
    std::string text;
    section_.Text(library, kLongest, &text);
    reading->default_text = default_text;
    TextOrNone(default_key.c_str(), &reading->default_text);
    if (!text.empty() && !reader_->failed()) ReadSpans(*table_.get(library), text, reading);
    std::vector<std::string> earlier;
    Strings(list_key.c_str(), &earlier);
    if (!earlier.empty()) ReadDefaults(*table_.get(list_key), earlier, reading);
    const std::string values_key = std::string(library) + "_values";
    std::vector<std::string> own;
    Strings(values_key.c_str(), &own);
    for (const std::string& one : own) {
      if (!ReadDated(one, &reading->own_values)) {
        return Wrong(*table_.get(values_key),
                     "'" + one + "' is no value with its version such as \"2.32.3=ATTN\"");
      }
    }
  }

  // "2.4.2=14": what holds from a version on.
  static bool ReadDated(const std::string& text, std::vector<std::pair<int, std::string>>* list) {
    const size_t equals = text.find('=');
    const Result<int> version = ParseLibraryVersion(std::string_view(text).substr(0, equals));
    if (equals == std::string::npos || !version.ok()) return false;
    list->emplace_back(version.value(), text.substr(equals + 1));
    return true;
  }

  void ReadSpans(const toml::node& node, const std::string& text, KnobReading* reading) {
    for (const std::string_view part : Split(text, ',')) {
      const std::string_view trimmed = Trim(part);
      const size_t dash = trimmed.find('-');
      VersionSpan span;
      const Result<int> first = ParseLibraryVersion(Trim(trimmed.substr(0, dash)));
      if (!first.ok()) return Wrong(node, first.status().message());
      span.first = span.last = first.value();
      if (dash != std::string_view::npos) {
        const std::string_view behind = Trim(trimmed.substr(dash + 1));
        span.last = 0;
        if (!behind.empty()) {
          const Result<int> last = ParseLibraryVersion(behind);
          if (!last.ok()) return Wrong(node, last.status().message());
          span.last = last.value();
        }
      }
      const bool backwards = span.last != 0 && span.last < span.first;
      const VersionSpan* before = reading->spans.empty() ? nullptr : &reading->spans.back();
      const bool overlaps = before != nullptr && (before->last == 0 || before->last >= span.first);
      if (backwards || overlaps) {
        return Wrong(node, "'" + text + "' does not go from old to new versions");
      }
      reading->spans.push_back(span);
    }
  }

  void ReadDefaults(const toml::node& node, const std::vector<std::string>& earlier,
                    KnobReading* reading) {
    for (const std::string& one : earlier) {
      auto& list = reading->earlier_defaults;
      if (!ReadDated(one, &list)) {
        return Wrong(node, "'" + one + "' is no earlier default such as \"2.4.2=14\"");
      }
      if (list.size() > 1 && list[list.size() - 2].first >= list.back().first) {
        return Wrong(node, "earlier defaults go from old to new versions");
      }
    }
    // "" in a list means that there is none.
    if (reading->earlier_defaults.back().second != reading->default_text) {
      Wrong(node, "the newest of the defaults, '" + reading->earlier_defaults.back().second +
                      "', is not the default '" + reading->default_text + "'");
    }
  }

  void CheckWhole(const Knob& knob) {
    const bool read = knob.nccl.Ever() || knob.rccl.Ever();
    const char* what = nullptr;
    if (knob.exists && !read && knob.reader.empty()) {
      what = "neither 'nccl' nor 'rccl' says which versions read it, and there is no 'reader'";
    } else if (!knob.exists && (read || !knob.reader.empty())) {
      what = "it does not exist, and yet there are versions that read it";
    } else if (knob.exists && knob.type == KnobType::kWord && knob.values.empty()) {
      what = "a word needs 'values'";
    } else if (knob.has_low && knob.has_high && knob.low > knob.high) {
      what = "'low' is above 'high'";
    } else if (knob.group.empty()) {
      what = "it has no group, and neither has the file";
    }
    if (what != nullptr) reader_->Fail(section_.source(), knob.name + ": " + what);
  }

  Reader* reader_;
  const toml::table& table_;
  Section section_;
  std::string title_;
};

}  // namespace

Result<Catalogue> Catalogue::Parse(const std::vector<std::pair<std::string, std::string>>& files) {
  Catalogue catalogue;
  for (const auto& [name, text] : files) {
    Reader reader(name);
    try {
      const toml::table parsed = toml::parse(text);
      Section root(&reader, parsed, "a table of variables");
      std::string group;
      root.Text("group", 64, &group);
      std::string reader_of_all;
      root.Text("reader", 64, &reader_of_all);
      std::string last;
      for (const toml::table* table : root.Tables("knob")) {
        Knob knob = KnobReader(&reader, *table, "a knob").Read(group, reader_of_all);
        if (reader.failed()) break;
        if (knob.name <= last) {
          reader.Fail(table->source(), knob.name + " stands behind " + last +
                                           "; they are sorted by name, each once");
        }
        last = knob.name;
        catalogue.knobs_.push_back(std::move(knob));
      }
      root.Require({"knob"});
      root.Finish();
    } catch (const toml::parse_error& error) {
      reader.Fail(error.source(), std::string(error.description()));
    } catch (const tomlfile::DamagedToml&) {
      return Invalid(name + ": this is no TOML");
    }
    if (reader.failed()) return reader.status();
  }
  std::sort(catalogue.knobs_.begin(), catalogue.knobs_.end(),
            [](const Knob& a, const Knob& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(catalogue.knobs_.begin(), catalogue.knobs_.end(),
                         [](const Knob& a, const Knob& b) { return a.name == b.name; });
  if (twice != catalogue.knobs_.end()) {
    return Invalid(twice->name + " is in two tables, of the groups '" + twice->group + "' and '" +
                   (twice + 1)->group + "'");
  }
  return catalogue;
}

}  // namespace diapason::knobs
