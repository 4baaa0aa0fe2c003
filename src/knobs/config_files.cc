#include <map>

#include "base/secrets.h"
#include "base/text.h"
#include "knobs/check.h"

namespace diapason::knobs {
namespace {

// Versions in which the library's reading of its files changed.
constexpr int kConfFileVariable = 22304;
constexpr int kDropsCarriageReturn = 23003;
constexpr size_t kLongestValue = 1023;
constexpr size_t kMostComplaints = 20;

class ConfigReader {
 public:
  ConfigReader(std::string source, const CheckedFor& checked_for, const Environment& environment,
               std::vector<Finding>* findings)
      : source_(std::move(source)),
        checked_for_(checked_for),
        environment_(environment),
        findings_(findings) {}

  void Line(std::string_view line, size_t number) {
    number_ = number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
      if (checked_for_.version < kDropsCarriageReturn && line.find('=') != line.npos &&
          line[0] != '#') {
        Complain(Severity::kWarning,
                 "the line ends as on Windows; " + Title() +
                     " before 2.30.3 takes the carriage return for a part of the value",
                 "Convert the file, e.g. with sed -i 's/\\r$//'");
      }
    }
    // Before 2.26.2 a comment with a '=' set a variable called "# NCCL_DEBUG": harmless.
    if (line.empty() || line[0] == '#') return;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      if (!Trim(line).empty() && IsCollectiveVariable(Bare(line))) {
        Complain(Severity::kError, "the line has no '=' and sets nothing", "Write NAME=VALUE");
      }
      return;
    }
    Set(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
  }

  std::vector<Assignment> Take() { return std::move(assignments_); }

 private:
  std::string Title() const { return std::string(LibraryTitle(checked_for_.library)); }

  // The intended name: without "export" and blanks.
  static std::string Bare(std::string_view text) {
    std::string_view bare = Trim(text);
    for (const std::string_view before : {"export ", "set ", "setenv "}) {
      if (bare.starts_with(before)) bare = Trim(bare.substr(before.size()));
    }
    return std::string(bare.substr(0, bare.find_first_of(" \t")));
  }

  void Set(const std::string& name, const std::string& written) {
    const std::string bare = Bare(name);
    if (!IsCollectiveVariable(bare)) return;
    std::string value = MaskSecrets(bare, written);
    if (bare != name) {
      Complain(Severity::kError,
               "the library takes '" + name.substr(0, 80) + "' for the whole name, so " + bare +
                   " is not set",
               "Write " + bare + "=" + std::string(Trim(value)) +
                   " without blanks and without 'export'");
      return;
    }
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
      Complain(Severity::kError, "the quotes around the value of " + name + " become a part of it",
               "Write " + name + "=" + value.substr(1, value.size() - 2));
    }
    const size_t hash = value.find(" #");
    if (hash != std::string::npos) {
      Complain(Severity::kWarning,
               "the comment behind the value of " + name + " becomes a part of it",
               "Put the comment on a line of its own");
    }
    if (value.size() > kLongestValue) {
      Complain(Severity::kError,
               Format("{} has {} characters, of which the library keeps {}", name, value.size(),
                      kLongestValue),
               "Shorten it");
      value.resize(kLongestValue);
    }
    const bool first = seen_.insert({name, value}).second;
    const bool overridden = !first || environment_.Get(name).has_value();
    Assignment one;
    one.name = name;
    one.value = std::move(value);
    one.source = source_ + Format(":{}", number_);
    one.overridden = overridden;
    one.global = true;
    assignments_.push_back(std::move(one));
  }

  void Complain(Severity severity, const std::string& title, const std::string& action) {
    if (findings_ == nullptr || ++complaints_ > kMostComplaints) return;
    findings_->push_back(
        {"env.bad-line", severity, title, {source_ + Format(":{}", number_)}, action});
  }

  const std::string source_;
  const CheckedFor checked_for_;
  const Environment& environment_;
  std::vector<Finding>* findings_;
  std::vector<Assignment> assignments_;
  std::map<std::string, std::string> seen_;
  size_t number_ = 0;
  size_t complaints_ = 0;
};

}  // namespace

std::vector<Assignment> FromConfigText(const std::string& text, const std::string& source,
                                       const CheckedFor& checked_for,
                                       const Environment& environment,
                                       std::vector<Finding>* findings) {
  ConfigReader reader(source, checked_for, environment, findings);
  size_t number = 0;
  for (const std::string_view line : Split(text, '\n')) reader.Line(line, ++number);
  return reader.Take();
}

std::vector<Assignment> FromConfigFiles(const RootFs& tree, const Environment& environment,
                                        std::vector<Finding>* findings,
                                        const CheckedFor& checked_for) {
  const std::string base = checked_for.library == Library::kRccl ? "rccl.conf" : "nccl.conf";
  const std::string named = environment.Get("NCCL_CONF_FILE").value_or("");
  const std::string home = environment.Get("HOME").value_or("");
  const bool knows_variable = checked_for.version == 0 || checked_for.version >= kConfFileVariable;
  std::vector<std::string> files;
  if (!named.empty() && knows_variable) {
    files.push_back(named);
    if (findings != nullptr && !tree.Exists(named)) {
      findings->push_back(
          {"env.bad-value",
           Severity::kError,
           "NCCL_CONF_FILE names a file that is not here, and ~/." + base + " is not read either",
           {"NCCL_CONF_FILE=" + named + " (environment)"},
           "Correct the path, or unset it"});
    }
  } else if (!home.empty()) {
    files.push_back(home + "/." + base);
  }
  files.push_back("/etc/" + base);

  std::vector<Assignment> all;
  std::map<std::string, std::string> before;
  for (const std::string& file : files) {
    const std::optional<std::string> text = tree.Read(file, 1 << 20);
    if (!text) continue;
    std::vector<Assignment> one = FromConfigText(*text, file, checked_for, environment, findings);
    for (Assignment& assignment : one) {
      if (before.count(assignment.name) > 0) assignment.overridden = true;
    }
    for (const Assignment& assignment : one) before.insert({assignment.name, assignment.value});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace diapason::knobs
