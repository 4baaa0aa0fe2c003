#include <algorithm>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "knobs/check.h"

namespace diapason::knobs {
namespace {

// Longer lines or more variables are not written by hand; such a file is something else.
constexpr size_t kLongestLine = 65536;
constexpr size_t kMostAssignments = 10000;
constexpr size_t kMostComplaints = 20;

// In lower case: "nccl_debug" is a misspelt NCCL_DEBUG. "ncll_" is the most common typo.
constexpr const char* kFamilies[] = {"nccl_", "rccl_",       "msccl",     "ncll_",    "hsa_",
                                     "gloo_", "torch_nccl_", "diapason_", "ofi_nccl_"};
// Of the networks below plugins. In capitals only: the short ones could begin a private name.
constexpr const char* kNetworks[] = {"FI_", "UCX_", "SHARP_COLL_", "OFI_HISTOGRAM_"};
// Not of a family, but read by the libraries.
constexpr const char* kSingles[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"};

bool IsNameChar(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool IsName(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), IsNameChar);
}

// The words of a line as a shell splits it. `strict`: the line is certainly shell syntax; otherwise
// "a;b" may be a value, as `env` prints it.
std::vector<std::string> ShellWords(std::string_view line, bool strict) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else if (c == '\\' && quote == '"' && i + 1 < line.size() &&
                 (line[i + 1] == '"' || line[i + 1] == '\\')) {
        word += line[++i];
      } else {
        word += c;
      }
      continue;
    }
    const bool last = i + 1 == line.size() || line[i + 1] == ' ' || line[i + 1] == '\t';
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (blank || (c == ';' && (strict || last)) || ((c == '&' || c == '|') && last)) {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else if (c == '#' && !inside) {
      break;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      inside = true;
    } else if (c != '\\') {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

class TextReader {
 public:
  TextReader(std::string source, std::vector<Finding>* findings)
      : source_(std::move(source)), findings_(findings) {}

  void Line(std::string_view line, size_t number) {
    if (line.size() > kLongestLine) {
      return Complain(number, "a line is longer than anything a person sets and is left out", "");
    }
    const std::string_view trimmed = Trim(line);
    set_here_.clear();
    if (trimmed.starts_with("#SBATCH")) {
      // A comment to the shell, options to Slurm; only variables are considered.
      const std::vector<std::string> options = ShellWords(trimmed.substr(7), /*strict=*/true);
      for (size_t i = 0; i < options.size(); ++i) (void)Exported(options, i, number);
      return;
    }
    if (trimmed.empty() || trimmed[0] == '#') return;
    const bool direct = IsName(trimmed.substr(0, trimmed.find('=')));
    const std::vector<std::string> words = ShellWords(trimmed, !direct);
    if (words.empty()) return;
    if (words[0] == "unset") {
      for (size_t i = 1; i < words.size(); ++i) Override(words[i]);
      return;
    }
    if (words[0] == "setenv" && words.size() >= 2 && IsCollectiveVariable(words[1])) {
      return Set(words[1], words.size() > 2 ? words[2] : "", number);
    }
    bool any = false;
    for (size_t i = 0; i < words.size(); ++i) any = Word(words, i, number) || any;
    if (any || !Malformed(words, number)) NotUnderstood(words, number);
  }

  // An entry of /proc/PID/environ: everything after '=' is the value.
  void Entry(std::string_view entry, size_t number) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.size() > kLongestLine) return;
    const std::string name(entry.substr(0, equals));
    if (IsName(name) && IsCollectiveVariable(name)) {
      Set(name, std::string(entry.substr(equals + 1)), number);
    }
  }

  std::vector<Assignment> Take() { return std::move(assignments_); }

 private:
  bool Word(const std::vector<std::string>& words, size_t i, size_t number) {
    if (Exported(words, i, number) || Pair(words, i, number) || Defaulted(words[i], number)) {
      return true;
    }
    if (i > 0 && words[i - 1] == "--export") return false;  // read with its option
    // "--env=NCCL_DEBUG=INFO" and "-eNCCL_DEBUG=INFO", as container tools take them.
    std::string word = words[i];
    for (const char* before : {"--env=", "-e"}) {
      if (word.starts_with(before)) word = word.substr(std::string_view(before).size());
    }
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = word.substr(0, equals);
    if (!IsName(name) || !IsCollectiveVariable(name)) return false;
    if (equals + 1 == word.size() && i + 1 < words.size() && i <= 1) {
      // "NCCL_DEBUG= INFO": the shell sets an empty value and runs INFO. It may be a real command,
      // so only a word that could be a value is reported.
      if (words.size() == i + 2 && words[i + 1].find('/') == std::string::npos) {
        Complain(number, name + "= is followed by a blank, so a shell sets it to nothing",
                 "Write " + name + "=" + words[i + 1] + " without the blank");
      }
    }
    Set(name, word.substr(equals + 1), number);
    return true;
  }

  // "--export=ALL,A=1,B=2" and "--export ALL,A=1", as Slurm accepts them: quoted values may contain
  // commas.
  bool Exported(const std::vector<std::string>& words, size_t i, size_t number) {
    constexpr std::string_view kOption = "--export";
    std::string_view list = words[i];
    if (!list.starts_with(kOption)) return false;
    list.remove_prefix(kOption.size());
    if (list.starts_with('=')) {
      list.remove_prefix(1);
    } else if (list.empty() && i + 1 < words.size()) {
      list = words[i + 1];
    } else {
      return false;
    }
    bool any = false;
    std::string part;
    char quote = '\0';
    for (size_t at = 0; at <= list.size(); ++at) {
      const char c = at < list.size() ? list[at] : ',';
      if (at < list.size() && quote != '\0') {
        if (c == quote) {
          quote = '\0';
        } else {
          part += c;
        }
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == ',') {
        const size_t equals = part.find('=');
        const std::string name = part.substr(0, equals);
        if (equals != std::string::npos && IsName(name) && IsCollectiveVariable(name)) {
          Set(name, part.substr(equals + 1), number);
          any = true;
        }
        part.clear();
      } else {
        part += c;
      }
    }
    return any;
  }

  // "-genv NAME VALUE", as MPICH's mpirun and similar launchers accept it.
  bool Pair(const std::vector<std::string>& words, size_t i, size_t number) {
    const std::string& option = words[i];
    if (option != "-genv" && option != "-env" && option != "--genv") return false;
    if (i + 2 >= words.size() || !IsName(words[i + 1]) || !IsCollectiveVariable(words[i + 1])) {
      return false;
    }
    Set(words[i + 1], words[i + 2], number);
    return true;
  }

  // ": ${NAME:=VALUE}" sets a variable only if it is not set yet.
  bool Defaulted(const std::string& word, size_t number) {
    if (!word.starts_with("${") || !word.ends_with('}')) return false;
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const bool colon = word[equals - 1] == ':';
    const std::string name = word.substr(2, equals - 2 - (colon ? 1 : 0));
    if (!IsName(name) || !IsCollectiveVariable(name)) return false;
    const auto found = live_.find(name);
    const bool set = found != live_.end() && !(colon && assignments_[found->second].value.empty());
    if (!set) Set(name, word.substr(equals + 1, word.size() - equals - 2), number);
    return true;
  }

  void Set(const std::string& name, const std::string& value, size_t number) {
    set_here_.insert(name);
    Override(name);
    if (assignments_.size() >= kMostAssignments) return;
    assignments_.push_back({name, MaskSecrets(name, value), source_ + Format(":{}", number),
                            /*overridden=*/false, /*global=*/false});
    live_[name] = assignments_.size() - 1;
  }
  void Override(const std::string& name) {
    const auto found = live_.find(name);
    if (found == live_.end()) return;
    assignments_[found->second].overridden = true;
    live_.erase(found);
  }

  // "NCCL_DEBUG = INFO", "export NCCL_DEBUG INFO", "NCCL_DEBUG: INFO".
  bool Malformed(const std::vector<std::string>& words, size_t number) {
    size_t at = words[0] == "export" || words[0] == "set" || words[0] == "declare" ? 1 : 0;
    if (at + 1 >= words.size()) return false;
    std::string name = words[at];
    if (name.ends_with(":")) name.pop_back();
    if (!IsName(name) || !IsCollectiveVariable(name)) return false;
    // "export NCCL_DEBUG NCCL_ALGO" exports existing values.
    const std::string& next = words[at + 1];
    if (at == 1 && IsName(next) && IsCollectiveVariable(next)) return false;
    const std::string value = next == "=" && at + 2 < words.size() ? words[at + 2] : next;
    Complain(number, "this line does not set " + name + ", for it is not NAME=VALUE",
             "Write " + name + "=" + (value == "=" ? "VALUE" : MaskSecrets(name, value)));
    return true;
  }

  // Reports text that looks like an assignment inside syntax that is not parsed, so that the user
  // does not take the silence for approval.
  void NotUnderstood(const std::vector<std::string>& words, size_t number) {
    if (words[0] == "echo" || words[0] == "printf") return;
    for (const std::string& word : words) {
      const std::string name = Mentioned(word);
      if (name.empty() || set_here_.count(name) > 0) continue;
      return Complain(
          number, Format("line {} mentions {} and was not understood", number, name.substr(0, 64)),
          "", Severity::kNote);
    }
  }

  // The first NCCL_X or RCCL_X in a word that is followed by one '=', and is not an expansion
  // ($NAME).
  static std::string Mentioned(const std::string& word) {
    for (size_t equals = word.find('='); equals != std::string::npos;
         equals = word.find('=', equals + 1)) {
      size_t begin = equals;
      while (begin > 0 && IsNameChar(word[begin - 1])) --begin;
      const std::string name = word.substr(begin, equals - begin);
      const bool ours = (name.starts_with("NCCL_") || name.starts_with("RCCL_")) &&
                        name.size() > 5 && name[5] >= 'A' && name[5] <= 'Z';
      const bool used = begin > 0 && (word[begin - 1] == '$' || word[begin - 1] == '{');
      const bool compared = equals + 1 < word.size() && word[equals + 1] == '=';
      if (ours && !used && !compared) return name;
    }
    return "";
  }

  void Complain(size_t number, const std::string& title, const std::string& action,
                Severity severity = Severity::kError) {
    if (findings_ == nullptr || ++complaints_ > kMostComplaints) return;
    findings_->push_back(
        {"env.bad-line", severity, title, {source_ + Format(":{}", number)}, action});
  }

  const std::string source_;
  std::vector<Finding>* findings_;
  std::vector<Assignment> assignments_;
  std::map<std::string, size_t> live_;
  std::set<std::string> set_here_;  // by the current line
  size_t complaints_ = 0;
};

}  // namespace

bool IsCollectiveVariable(std::string_view name) {
  const std::string lower = ToLower(name.substr(0, 64));
  for (const char* family : kFamilies) {
    if (lower.starts_with(family)) return true;
  }
  for (const char* network : kNetworks) {
    if (name.starts_with(network)) return true;
  }
  for (const char* single : kSingles) {
    if (name == single) return true;
  }
  return false;
}

std::vector<Assignment> FromEnvironment(const Environment& environment, const std::string& source) {
  const std::vector<std::string> listed = environment.Names();
  const std::set<std::string> names(listed.begin(), listed.end());
  std::vector<Assignment> assignments;
  for (const std::string& name : names) {
    if (!IsCollectiveVariable(name)) continue;
    const std::optional<std::string> value = environment.Get(name);
    if (value) assignments.push_back({name, MaskSecrets(name, *value), source, false, false});
  }
  return assignments;
}

std::vector<Assignment> FromText(const std::string& text, const std::string& source,
                                 std::vector<Finding>* findings) {
  TextReader reader(source, findings);
  // The kernel's copy of a process's environment has NULs between the variables.
  const bool environ_file = text.find('\0') != std::string::npos;
  size_t number = 0;
  for (const std::string_view line : Split(text, environ_file ? '\0' : '\n')) {
    ++number;
    if (environ_file) {
      reader.Entry(line, number);
    } else {
      reader.Line(line, number);
    }
  }
  return reader.Take();
}

}  // namespace diapason::knobs
