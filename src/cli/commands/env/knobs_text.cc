#include "cli/commands/env/knobs_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/printable.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/framework/json_text.h"
#include "domain/library_version.h"
#include "knobs/check.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using knobs::Knob;
using knobs::KnobReading;

constexpr size_t kWidth = 96;
constexpr size_t kIndent = 18;

std::string Cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  // Does not cut inside a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string FirstSentence(const std::string& text) {
  const size_t end = text.find(". ");
  std::string sentence = end == std::string::npos ? text : text.substr(0, end);
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// "label     text with its continuation lines aligned".
std::string Row(const std::string& label, const std::string& text) {
  if (text.empty()) return "";
  std::string rows = "  " + label;
  rows.resize(std::max(rows.size() + 1, kIndent), ' ');
  size_t column = rows.size();
  bool first = true;
  for (const std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    if (!first && column + 1 + word.size() > kWidth) {
      rows += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (!first) {
      rows += ' ';
      ++column;
    }
    rows += word;
    column += word.size();
    first = false;
  }
  return rows + "\n";
}

// The width of the terminal; 120 in a file.
size_t TableWidth() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return size.ws_col;
  }
  return 120;
}

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

std::string DefaultOf(const Knob& knob, const KnobView& view) {
  if (view.library_given) return knob.Of(view.library).DefaultAt(view.version);
  const std::string nccl = knob.nccl.DefaultAt(0);
  const std::string rccl = knob.rccl.DefaultAt(0);
  if (!knob.nccl.Ever() && !knob.OnlyOfPlugin()) return rccl;
  if (!knob.rccl.Ever() || nccl == rccl) return nccl;
  return OrNone(nccl) + " (RCCL " + OrNone(rccl) + ")";
}

// A default that is not one of the accepted words cannot be restored by setting the variable.
std::string Unwritable(const Knob& knob, const std::string& text) {
  const bool word = knob.type == knobs::KnobType::kWord && !knob.values.empty() && !text.empty();
  const bool written = std::find(knob.values.begin(), knob.values.end(), text) != knob.values.end();
  return word && !written ? ", which cannot be written" : "";
}

std::string ReadingText(const Knob& knob, const KnobReading& reading) {
  if (!reading.Ever()) return "never reads it";
  std::string text = SpansText(reading.spans);
  if (!reading.Reads(0)) text += ", not any more";
  text += "; default " + OrNone(reading.default_text) + Unwritable(knob, reading.default_text);
  if (reading.earlier_defaults.size() > 1) {
    std::vector<std::string> parts;
    for (const auto& [version, value] : reading.earlier_defaults) {
      parts.push_back(OrNone(value) + " from " + LibraryVersionText(version));
    }
    text += " (" + Join(parts, ", ") + ")";
  }
  return text;
}

std::string At(const Knob& knob, const KnobView& view) {
  const KnobReading& reading = knob.Of(view.library);
  const std::string version = LibraryVersionText(view.version);
  const int complete = knobs::Catalogue::NewestComplete(view.library);
  if (!reading.Reads(view.version) && (reading.Ever() || view.version <= complete)) {
    return version + " does not read it";
  }
  if (!reading.Ever()) {
    return "not known: all variables are known up to " + LibraryVersionText(complete);
  }
  const std::string text = reading.DefaultAt(view.version);
  return version + " reads it; default " + OrNone(text) + Unwritable(knob, text);
}

// Values of variables that do not belong to collectives are private.
std::string Present(const Knob& knob) {
  if (!knobs::IsCollectiveVariable(knob.name)) return "";
  const std::optional<std::string> value = ProcessEnvironment().Get(knob.name);
  return value ? "set to '" + Printable(Cut(MaskSecrets(knob.name, *value), 200)) + "'" : "not set";
}

// Groups in alphabetical order, variables that no version reads last.
std::map<std::pair<bool, std::string>, std::vector<const Knob*>> Groups(
    const std::vector<const Knob*>& knobs) {
  std::map<std::pair<bool, std::string>, std::vector<const Knob*>> groups;
  for (const Knob* knob : knobs) groups[{!knob->exists, knob->group}].push_back(knob);
  return groups;
}

nlohmann::ordered_json ReadingJson(const KnobReading& reading) {
  nlohmann::ordered_json spans = nlohmann::ordered_json::array();
  for (const knobs::VersionSpan& span : reading.spans) {
    nlohmann::ordered_json last = nullptr;
    if (span.last != 0) last = LibraryVersionText(span.last);
    spans.push_back({{"first", LibraryVersionText(span.first)}, {"last", last}});
  }
  nlohmann::ordered_json earlier = nlohmann::ordered_json::array();
  for (const auto& [version, value] : reading.earlier_defaults) {
    earlier.push_back({{"from", LibraryVersionText(version)}, {"default", value}});
  }
  return {{"read_by", spans}, {"default", reading.default_text}, {"defaults", earlier}};
}

nlohmann::ordered_json EntryJson(const Knob& knob, const KnobView& view) {
  nlohmann::ordered_json entry{{"name", knob.name},
                               {"group", knob.group},
                               {"exists", knob.exists},
                               {"reader", knob.reader},
                               {"type", KnobTypeName(knob.type)},
                               {"allowed", AllowedText(knob)},
                               {"values", knob.values},
                               {"nccl", ReadingJson(knob.nccl)},
                               {"rccl", ReadingJson(knob.rccl)},
                               {"text", knob.text},
                               {"trade", knob.trade},
                               {"advice",
                                {{"small", knob.advice.small},
                                 {"large", knob.advice.large},
                                 {"many", knob.advice.many},
                                 {"few", knob.advice.few}}},
                               {"needs", knob.needs},
                               {"conflicts", knob.conflicts},
                               {"successor", knob.successor},
                               {"note", knob.note},
                               {"documented", knob.documented},
                               {"takes_effect", knob.takes_effect}};
  if (view.library_given) entry["default"] = DefaultOf(knob, view);
  const std::optional<std::string> value =
      knobs::IsCollectiveVariable(knob.name) ? ProcessEnvironment().Get(knob.name) : std::nullopt;
  entry["value"] = value ? nlohmann::ordered_json(MaskSecrets(knob.name, *value))
                         : nlohmann::ordered_json(nullptr);
  return entry;
}

}  // namespace

std::string KnobEntry(const Knob& knob, const KnobView& view) {
  std::string text = knob.name + "  (" + knob.group + ")\n" + Row("", knob.text);
  if (!knob.exists) {
    text += Row("read by", "no version of NCCL or RCCL");
  } else {
    text += Row("read by", knob.reader);
    if (knob.OnlyOfPlugin()) {
      text += Row("default", knob.nccl.default_text);
    } else {
      text += Row("NCCL", ReadingText(knob, knob.nccl));
      text += Row("RCCL", ReadingText(knob, knob.rccl));
    }
    if (view.version != 0 && !knob.OnlyOfPlugin()) text += Row("here", At(knob, view));
    text += Row("type", std::string(KnobTypeName(knob.type)));
    const std::string allowed = AllowedText(knob);
    if (allowed != KnobTypeName(knob.type)) {
      text += Row("values", allowed + (knob.fold_case ? ", in any case" : ""));
    }
  }
  text += Row("trade", knob.trade);
  text += Row("small messages", knob.advice.small);
  text += Row("large messages", knob.advice.large);
  text += Row("many at a time", knob.advice.many);
  text += Row("few at a time", knob.advice.few);
  text += Row("needs", Join(knob.needs, ", "));
  text += Row("fights with", Join(knob.conflicts, ", "));
  text += Row("instead", knob.successor);
  text += Row("note", knob.note);
  if (knob.exists) {
    text += Row("change", knob.takes_effect == "communicator"
                              ? "is seen by communicators made after it"
                              : "needs a restart: it is read once in a process");
    if (!knob.documented) text += Row("manual", "does not have it: it may vanish without notice");
  }
  text += Row("now", Present(knob));
  return text;
}

std::string KnobTables(const std::vector<const Knob*>& knobs, const KnobView& view) {
  const size_t width = TableWidth();
  std::string text;
  for (const auto& [key, list] : Groups(knobs)) {
    const char* third = view.present ? "here" : "values";
    std::vector<std::vector<std::string>> rows = {{key.second, "default", third}};
    for (const Knob* knob : list) {
      const std::string preset = DefaultOf(*knob, view);
      rows.push_back(
          {knob->name, preset.empty() ? "-" : Cut(preset, 20),
           view.present
               ? Cut(MaskSecrets(knob->name, ProcessEnvironment().Get(knob->name).value_or("-")),
                     40)
           : knob->exists ? Cut(AllowedText(*knob), 24)
                          : "-"});
    }
    size_t used = 0;
    for (size_t column = 0; column < 3; ++column) {
      size_t widest = 0;
      for (const auto& row : rows) widest = std::max(widest, row[column].size());
      used += widest + 2;
    }
    const size_t left = std::max<size_t>(30, width > used ? width - used : 0);
    report::Table table({key.second, "default", third, "what it does"});
    for (size_t i = 0; i < list.size(); ++i) {
      std::vector<std::string> row = rows[i + 1];
      row.push_back(Cut(FirstSentence(list[i]->text), left));
      table.Add(std::move(row));
    }
    text += (text.empty() ? "" : "\n") + table.Text();
  }
  return text;
}

std::string KnobMarkdown(const std::vector<const Knob*>& knobs, const KnobView& view) {
  // A '|' would end a table cell.
  const auto cell = [](const std::string& raw) {
    std::string safe;
    for (const char c : raw) safe += c == '|' ? std::string("\\|") : std::string(1, c);
    return safe.empty() ? std::string("-") : safe;
  };
  std::string text = "# Environment variables of NCCL and RCCL\n";
  for (const auto& [key, list] : Groups(knobs)) {
    text +=
        "\n## " + key.second +
        "\n\n| name | NCCL | RCCL | default | values | what it does |\n|---|---|---|---|---|---|\n";
    for (const Knob* knob : list) {
      text += "| `" + knob->name + "` | " + SpansText(knob->nccl.spans) + " | " +
              SpansText(knob->rccl.spans) + " | " + cell(DefaultOf(*knob, view)) + " | " +
              cell(knob->exists ? AllowedText(*knob) : "") + " | " +
              cell((knob->reader.empty() ? "" : "Read by " + knob->reader + ". ") + knob->text) +
              " |\n";
    }
  }
  return text;
}

std::string KnobJson(const std::vector<const Knob*>& knobs, const KnobView& view) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Knob* knob : knobs) list.push_back(EntryJson(*knob, view));
  return JsonText(list) + "\n";
}

}  // namespace diapason::cli
