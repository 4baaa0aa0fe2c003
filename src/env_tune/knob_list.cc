#include "env_tune/knob_list.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/toml_section.h"
#include "domain/library_version.h"

namespace diapason::env_tune {
namespace {

constexpr size_t kMostCandidates = 200;
constexpr size_t kLongest = 4096;

bool NameIsFine(std::string_view name) {
  if (name.empty() || name.size() > 256 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// One line of a built-in list.
struct BuiltIn {
  const char* name;
  std::vector<std::string> values;
  const char* why;
};

std::vector<BuiltIn> ListFor(Binds binds) {
  const BuiltIn soon = {"NCCL_PROGRESS_APPENDOP_FREQ", {"1", "4"}, "new operations start sooner"};
  const BuiltIn late = {"NCCL_PROGRESS_APPENDOP_FREQ",
                        {"16", "32"},
                        "the proxy moves data for longer between visits to its pool"};
  const BuiltIn few = {
      "NCCL_PROXY_APPEND_BATCH_SIZE", {"4", "8"}, "the first of a batch start sooner"};
  const BuiltIn many = {"NCCL_PROXY_APPEND_BATCH_SIZE", {"32", "64"}, "less overhead an operation"};
  const BuiltIn threads = {"NCCL_SOCKET_NTHREADS", {"4"}, "more threads for TCP"};
  const BuiltIn sockets = {"NCCL_NSOCKS_PERTHREAD", {"4"}, "more connections for TCP"};
  const BuiltIn queues = {"NCCL_IB_QPS_PER_CONNECTION", {"4"}, "spreads over paths of a fabric"};
  const BuiltIn copies = {"NCCL_P2P_USE_CUDA_MEMCPY", {"1"}, "frees multiprocessors of the GPU"};
  const BuiltIn memory = {"NCCL_SHM_LOCALITY", {"1"}, "shared memory on the sender's node"};
  switch (binds) {
    case Binds::kLatency:
      return {soon, few, memory};
    case Binds::kBandwidth:
      return {late, many, threads, sockets, queues, copies};
    case Binds::kCpu:
      return {late, many};
    case Binds::kUnknown:
      break;
  }
  return {{soon.name, {"1", "16"}, "sooner starts, or fewer visits to the pool"},
          {few.name, {"4", "32"}, "smaller or larger batches"},
          threads,
          sockets};
}

}  // namespace

Result<std::vector<KnobValue>> ParseKnob(const std::string& text) {
  const size_t mark = text.find('=');
  const std::string name = text.substr(0, mark);
  if (mark == std::string::npos || !NameIsFine(name)) {
    return Invalid(Format("'{:.80}' is not NAME=VALUE,VALUE,...", text));
  }
  std::vector<KnobValue> candidates;
  for (const std::string_view value : Split(std::string_view(text).substr(mark + 1), ',')) {
    if (value.size() > kLongest) return Invalid("a value of " + name + " is too long");
    candidates.push_back({name, std::string(value), ""});
  }
  if (candidates.size() > kMostCandidates) return Invalid("too many values of " + name);
  return candidates;
}

Result<std::vector<KnobValue>> ParseKnobFile(const std::string& text, const std::string& file) {
  tomlfile::Reader reader(file);
  std::vector<KnobValue> candidates;
  try {
    const toml::table root = toml::parse(text, file);
    tomlfile::Section top(&reader, root, "the file");
    for (const toml::table* table : top.Tables("knob")) {
      tomlfile::Section section(&reader, *table, "[[knob]]");
      std::string name;
      std::string why;
      section.Require({"name", "values"});
      section.Text("name", 256, &name);
      section.Text("why", 1000, &why);
      const toml::array* values =
          section.Has("values") ? table->get("values")->as_array() : nullptr;
      section.Finish();
      if (reader.failed()) break;
      if (!NameIsFine(name)) {
        reader.Fail(table->source(), "'" + name + "' is not the name of a variable");
      } else if (values == nullptr || values->empty()) {
        reader.Fail(table->source(), "'values' is not a list of values");
      } else {
        for (const toml::node& item : *values) {
          if (item.is_string() && item.as_string()->get().find('\0') == std::string::npos) {
            candidates.push_back({name, item.as_string()->get(), why});
          } else if (item.is_integer()) {
            candidates.push_back({name, Format("{}", item.as_integer()->get()), why});
          } else {
            reader.Fail(item.source(), "a value is neither a text nor a whole number");
          }
        }
      }
      if (reader.failed()) break;
    }
    top.Finish();
  } catch (const toml::parse_error& error) {
    reader.Fail(error.source(), std::string(error.description()));
  } catch (const tomlfile::DamagedToml&) {
    return Invalid(file + ": this is not TOML");
  }
  if (reader.failed()) return reader.status();
  if (candidates.empty()) return Invalid(file + ": there is no [[knob]] in it");
  if (candidates.size() > kMostCandidates) {
    return Invalid(Format("{}: more than {} values", file, kMostCandidates));
  }
  return candidates;
}

std::vector<KnobValue> BuiltInKnobs(Library library, int version, Binds binds,
                                    const knobs::Catalogue& catalogue,
                                    std::vector<std::string>* left_out) {
  std::vector<KnobValue> candidates;
  for (const BuiltIn& line : ListFor(binds)) {
    const knobs::Knob* knob = catalogue.Find(line.name);
    if (knob == nullptr || !knob->Of(library).Reads(version)) {
      left_out->push_back(std::string(line.name) + ": " + std::string(LibraryTitle(library)) + " " +
                          LibraryVersionText(version) + " does not read it");
      continue;
    }
    for (const std::string& value : line.values) {
      if (knob->Of(library).DefaultAt(version) == value) continue;
      candidates.push_back({line.name, value, line.why});
    }
  }
  return candidates;
}

std::vector<KnobValue> WithoutPresent(std::vector<KnobValue> candidates,
                                      const Environment& environment,
                                      std::vector<std::string>* left_out) {
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<KnobValue> kept;
  for (KnobValue& candidate : candidates) {
    if (environment.Get(candidate.name) == candidate.value) {
      left_out->push_back(candidate.name + "=" + candidate.value + ": it is set already");
    } else if (seen.insert({candidate.name, candidate.value}).second) {
      kept.push_back(std::move(candidate));
    }
  }
  return kept;
}

}  // namespace diapason::env_tune
