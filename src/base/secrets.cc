#include "base/secrets.h"

#include <algorithm>

#include "base/text.h"

namespace diapason {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kMark = "://";
// Characters that end a URL in a text, whatever its password contains.
constexpr std::string_view kEnd = " \t\r\n\"'`<>";

bool NamesASecret(std::string_view name) {
  const std::string folded = FoldName(name);
  if (folded.ends_with("file")) return false;
  for (const std::string_view word :
       {"password", "passwd", "passphrase", "secret", "token", "apikey", "credential"}) {
    if (folded.find(word) != std::string::npos) return true;
  }
  return false;
}

bool InAName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// "user:password" as it may be shown.
std::string MaskedUser(std::string_view who, bool of_redis) {
  const size_t colon = who.find(':');
  if (colon == std::string_view::npos) {
    // After a slash it is not a user: "http://host/x@2".
    const bool path = who.find('/') != std::string_view::npos;
    return std::string(of_redis || path ? who : kMask);
  }
  return std::string(who.substr(0, colon + 1)) + std::string(kMask);
}

// "?a=1&password=x" and "A=1": masks the values of names that indicate a secret.
std::string MaskedAssignments(std::string_view text) {
  std::string masked;
  size_t begin = 0;
  while (true) {
    const size_t equals = text.find('=', begin);
    if (equals == std::string_view::npos) return masked + std::string(text.substr(begin));
    size_t name = equals;
    while (name > begin && InAName(text[name - 1])) --name;
    masked += text.substr(begin, equals + 1 - begin);
    begin = equals + 1;
    if (!NamesASecret(text.substr(name, equals - name))) continue;
    // In a URL another parameter may follow; elsewhere the value is the rest of the word.
    const bool parameter = name > 0 && (text[name - 1] == '?' || text[name - 1] == '&');
    const size_t end = std::min(text.find_first_of(parameter ? "&#" : "", begin), text.size());
    if (end > begin) masked += kMask;
    begin = end;
  }
}

// A word without blanks that may contain a URL.
std::string MaskedWord(std::string_view word) {
  std::string masked;
  if (const size_t mark = word.find(kMark); mark != std::string_view::npos) {
    const size_t who = mark + kMark.size();
    // The last one: a password may contain others.
    const size_t at = word.rfind('@');
    if (at != std::string_view::npos && at >= who) {
      size_t scheme = mark;
      while (scheme > 0 && InAName(word[scheme - 1])) --scheme;
      const bool of_redis = ToLower(word.substr(scheme, mark - scheme)).starts_with("redis");
      masked = std::string(word.substr(0, who)) + MaskedUser(word.substr(who, at - who), of_redis) +
               std::string(word.substr(at));
      word = masked;
    }
  }
  return MaskedAssignments(word);
}

// Without "://" it is not a URL, but was probably meant as one.
std::string MaskedStore(std::string_view value) {
  const size_t at = value.rfind('@');
  const size_t colon = value.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) {
    return MaskSecretsIn(value);
  }
  return std::string(value.substr(0, colon + 1)) + std::string(kMask) +
         MaskSecretsIn(value.substr(at));
}

}  // namespace

std::string MaskSecrets(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  if (NamesASecret(name)) return std::string(kMask);
  if (name == "DIAPASON_STORE" && value.find(kMark) == std::string_view::npos) {
    return MaskedStore(value);
  }
  // A blank in the password does not end the URL of a store.
  if (const size_t mark = value.find(kMark); name == "DIAPASON_STORE") {
    const size_t who = mark + kMark.size();
    const size_t at = value.rfind('@');
    if (at != std::string_view::npos && at >= who) {
      return std::string(value.substr(0, who)) + MaskedUser(value.substr(who, at - who), true) +
             MaskSecretsIn(value.substr(at));
    }
  }
  return MaskSecretsIn(value);
}

std::string MaskSecretsIn(std::string_view text) {
  std::string masked;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find_first_of(kEnd, begin), text.size());
    masked += MaskedWord(text.substr(begin, end - begin));
    if (end < text.size()) masked += text[end];
    begin = end + 1;
  }
  return masked;
}

}  // namespace diapason
