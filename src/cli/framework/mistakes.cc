#include "cli/framework/mistakes.h"

#include "base/text.h"

namespace diapason::cli {
namespace {

// The known option closest to an unknown one.
std::string NearestOption(const CommandInfo& command, const std::string& name) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options) {
    for (const std::string& one : option.names) {
      if (one.starts_with("--")) names.push_back(one);
    }
  }
  // "--library" for "--library-file": a prefix is a closer match than a similar name.
  if (name.size() >= 5) {
    for (const std::string& one : names) {
      if (one.starts_with(name)) return one;
    }
  }
  const std::string near = ClosestName(name, names);
  if (!near.empty() || name.size() < 6) return near;
  // An edit distance of two is close enough: there are few options.
  for (const std::string& one : names) {
    if (name.size() < 64 && EditDistance(name, one) <= 2) return one;
  }
  for (const std::string& one : names) {
    if (one.size() >= 6 && (one.ends_with(name.substr(1)) || name.ends_with(one.substr(1)))) {
      return one;
    }
  }
  return "";
}

}  // namespace

std::string WrongCommand(const std::vector<std::string>& words, const CommandInfo** command) {
  for (size_t at = 0; (*command)->needs_command; ++at) {
    const std::string given = at < words.size() ? words[at] : "";
    // --help and --version.
    if (given.starts_with('-')) return "";
    std::vector<std::string> names;
    for (const CommandInfo* one : (*command)->Shown()) names.push_back(one->name());
    const bool tool = (*command)->path.size() == 1;
    if (given.empty()) {
      return (tool ? "no command" : (*command)->Words() + " needs a command") + "; there are " +
             Join(names, ", ");
    }
    const CommandInfo* next = (*command)->Find(given);
    if (next == nullptr) {
      return "unknown command '" + given + "'" + (tool ? "" : " of " + (*command)->name()) +
             Suggestion(given, names);
    }
    *command = next;
  }
  return "";
}

std::string UnknownWord(const CommandInfo& command, const std::string& given) {
  const std::string of = command.path.size() > 1
                             ? " of " + Join({command.path.begin() + 1, command.path.end()}, " ")
                             : "";
  if (given.size() < 2 || !given.starts_with('-')) {
    return "'" + given + "' was not expected" + (of.empty() ? "" : " by" + of.substr(3));
  }
  const std::string name = given.substr(0, given.find('='));
  const std::string near = NearestOption(command, name);
  return "unknown option '" + name + "'" + of +
         (near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace diapason::cli
