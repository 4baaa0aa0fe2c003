#include "policy/source.h"

#include "base/file.h"
#include "base/text.h"
#include "domain/setting_conflicts.h"
#include "policy/inline.h"

namespace diapason::policy {

std::string LearnedFile(const Settings& settings) {
  const std::string& path = settings.Text(Setting::kLearned);
  return path.empty() || !settings.Flag(Setting::kOverlap) ? path : OverlapSibling(path);
}

namespace {

// The results of an earlier job; the first job finds no such file.
Source LearnedSource(const Settings& settings) {
  const std::string path = LearnedFile(settings);
  if (path.empty() || !FileExists(path)) return {};
  return {Source::Kind::kFile, path, ""};
}

}  // namespace

Source FindSource(const Settings& settings) {
  if (settings.IsSet(Setting::kPolicyInline)) {
    return {Source::Kind::kInline, settings.Source(Setting::kPolicyInline),
            settings.Text(Setting::kPolicyInline)};
  }
  if (settings.Flag(Setting::kOverlap)) {
    if (settings.IsSet(Setting::kPolicyOverlap)) {
      return {Source::Kind::kFile, settings.Text(Setting::kPolicyOverlap), ""};
    }
    if (settings.IsSet(Setting::kPolicy)) {
      return {Source::Kind::kFile, OverlapSibling(settings.Text(Setting::kPolicy)), ""};
    }
    return LearnedSource(settings);
  }
  if (settings.IsSet(Setting::kPolicy)) {
    return {Source::Kind::kFile, settings.Text(Setting::kPolicy), ""};
  }
  return LearnedSource(settings);
}

Result<Policy> LoadPolicy(const Source& source, const ParseOptions& options) {
  Policy empty;
  empty.library = options.library;
  if (source.kind == Source::Kind::kNone) return empty;

  Result<Policy> policy = empty;
  if (source.kind == Source::Kind::kInline) {
    policy = DecodeInline(source.text);
    if (!policy.ok()) return policy.status().WithContext(source.name);
  } else {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(source.name, kMostBytes));
    policy = ParseStrictly(text, source.name, options);
    if (!policy.ok()) return policy.status();
  }
  if (policy.value().library != options.library) {
    return Invalid(Format("{}: the policy is for {}, not for {}", source.name,
                          std::string(LibraryTitle(policy.value().library)),
                          std::string(LibraryTitle(options.library))));
  }
  return policy;
}

}  // namespace diapason::policy
