#include "knobs/catalogue.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/tables.h"

namespace diapason::knobs {

std::string_view KnobTypeName(KnobType type) {
  switch (type) {
    case KnobType::kNumber:
      return "number";
    case KnobType::kSwitch:
      return "switch";
    case KnobType::kWord:
      return "word";
    case KnobType::kList:
      return "list";
    case KnobType::kText:
      return "text";
  }
  return "?";
}

std::string SpansText(const std::vector<VersionSpan>& spans) {
  if (spans.empty()) return "never";
  std::vector<std::string> parts;
  for (const VersionSpan& span : spans) {
    const std::string first = LibraryVersionText(span.first);
    if (span.last == 0) {
      parts.push_back("since " + first);
    } else if (span.last == span.first) {
      parts.push_back(first);
    } else {
      parts.push_back(first + " to " + LibraryVersionText(span.last));
    }
  }
  return Join(parts, ", ");
}

bool KnobReading::Reads(int version) const {
  return std::any_of(spans.begin(), spans.end(), [version](const VersionSpan& span) {
    return version == 0 ? span.last == 0 : span.Holds(version);
  });
}

std::string KnobReading::DefaultAt(int version) const {
  if (version == 0 || earlier_defaults.empty()) return default_text;
  std::string text = earlier_defaults.front().second;
  for (const auto& [first, value] : earlier_defaults) {
    if (first <= version) text = value;
  }
  return text;
}

const KnobReading& Knob::Of(Library library) const {
  return library == Library::kRccl ? rccl : nccl;
}

std::vector<std::string> Knob::ValuesOf(Library library, int version) const {
  std::vector<std::string> words = values;
  for (const auto& [first, word] : Of(library).own_values) {
    if (version == 0 || version >= first) words.push_back(word);
  }
  return words;
}

std::string AllowedText(const Knob& knob) {
  std::string text;
  if (!knob.values.empty()) {
    text = Join(knob.values, knob.values.size() == 2 ? " or " : ", ");
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      for (const auto& [first, word] : knob.Of(library).own_values) {
        text += ", " + word + " (" + std::string(LibraryTitle(library)) + " " +
                LibraryVersionText(first) + ")";
      }
    }
    if (knob.type == KnobType::kList) text = "list of " + text;
  } else if (knob.type == KnobType::kSwitch) {
    text = "0 or 1";
  } else if (knob.type == KnobType::kNumber) {
    const auto low = static_cast<long long>(knob.low);
    const auto high = static_cast<long long>(knob.high);
    if (knob.has_low && knob.has_high) {
      text = Format("{} to {}", low, high);
    } else if (knob.has_low) {
      text = Format("{} or more", low);
    } else if (knob.has_high) {
      text = Format("at most {}", high);
    } else {
      text = "number";
    }
  } else {
    text = KnobTypeName(knob.type);
  }
  for (const int64_t one : knob.special) text += Format(", or {}", one);
  return text;
}

const Catalogue& Catalogue::BuiltIn() {
  static const Catalogue catalogue = [] {
    Result<Catalogue> all = Parse(BuiltInTables());
    if (all.ok()) return std::move(all.value());
    std::fprintf(stderr, "diapason: warning: a table of variables is left out: %s\n",
                 all.status().message().c_str());
    std::vector<std::pair<std::string, std::string>> fine;
    for (const auto& table : BuiltInTables()) {
      fine.push_back(table);
      if (!Parse(fine).ok()) fine.pop_back();
    }
    Result<Catalogue> rest = Parse(fine);
    return rest.ok() ? std::move(rest.value()) : Catalogue();
  }();
  return catalogue;
}

const Knob* Catalogue::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      knobs_.begin(), knobs_.end(), name,
      [](const Knob& knob, std::string_view wanted) { return knob.name < wanted; });
  return found != knobs_.end() && found->name == name ? &*found : nullptr;
}

namespace {

// A search for latency also finds variables with advice for small messages.
bool IsGoal(const std::string& word, const Knob& knob) {
  if (word == "latency" || word == "small") return !knob.advice.small.empty();
  if (word == "throughput" || word == "bandwidth" || word == "large") {
    return !knob.advice.large.empty();
  }
  return false;
}

}  // namespace

std::vector<const Knob*> Catalogue::Search(const std::vector<std::string>& words) const {
  std::vector<const Knob*> found;
  for (const Knob& knob : knobs_) {
    const std::string text =
        ToLower(Join({knob.name, knob.group, knob.text, knob.trade, knob.advice.small,
                      knob.advice.large, knob.advice.many, knob.advice.few, knob.note},
                     "\n"));
    const bool all = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      const std::string lower = ToLower(word);
      return text.find(lower) != std::string::npos || IsGoal(lower, knob);
    });
    if (all) found.push_back(&knob);
  }
  return found;
}

// 2.31.2 was read as a whole; of 2.32.3 the user's guide and some files. RCCL 2.28.3 was read as a
// whole; of later releases the change log up to 2.31.2.
int Catalogue::NewestKnown(Library library) { return library == Library::kRccl ? 23102 : 23203; }
int Catalogue::NewestComplete(Library library) { return library == Library::kRccl ? 22803 : 23102; }

}  // namespace diapason::knobs
