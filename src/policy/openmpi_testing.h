#pragma once

// Reads Open MPI's rules files as Open MPI does, for tests.

#include <gtest/gtest.h>

#include <climits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace diapason::policy {

// A rules file as coll_tuned reads it: numbers and comments, then nested lists whose lengths come
// first. And as it looks things up there.
class RulesFile {
 public:
  struct Choice {
    long algorithm = 0;
    long fan = 0;
    long segment = 0;
    bool operator==(const Choice&) const = default;
  };
  struct Message {
    uint64_t bytes = 0;
    Choice choice;
  };
  struct Size {
    long ranks = 0;
    std::vector<Message> messages;
  };

  // Nothing where coll_tuned would ignore the file.
  static std::optional<RulesFile> Read(const std::string& text) {
    RulesFile file;
    file.text_ = &text;
    if (!file.ReadCollectives()) return std::nullopt;
    file.text_ = nullptr;
    return file;
  }

  Choice Find(int id, long ranks, uint64_t bytes) const {
    const auto found = collectives_.find(id);
    if (found == collectives_.end() || found->second.empty()) return {};
    const Size* size = &found->second.front();
    for (const Size& next : found->second) {
      if (next.ranks > ranks) break;
      size = &next;
    }
    Choice choice;
    for (const Message& message : size->messages) {
      if (message.bytes > bytes) break;
      choice = message.choice;
    }
    return choice;
  }

  const std::map<long, std::vector<Size>>& collectives() const { return collectives_; }

 private:
  bool ReadCollectives() {
    long count = 0;
    if (!Next(&count) || count > 22) return false;
    for (long i = 0; i < count; ++i) {
      long id = 0;
      long sizes = 0;
      if (!Next(&id) || id >= 22 || collectives_.contains(id) || !Next(&sizes)) return false;
      for (long j = 0; j < sizes; ++j) {
        Size size;
        if (!ReadSize(&size)) return false;
        collectives_[id].push_back(size);
      }
    }
    long more = 0;
    return !Next(&more);
  }

  bool ReadSize(Size* size) {
    long messages = 0;
    if (!Next(&size->ranks) || !Next(&messages) || messages == 0) return false;
    for (long i = 0; i < messages; ++i) {
      long bytes = 0;
      Message message;
      if (!Next(&bytes) || !Next(&message.choice.algorithm) || !Next(&message.choice.fan) ||
          !Next(&message.choice.segment)) {
        return false;
      }
      message.bytes = static_cast<uint64_t>(bytes);
      if (i == 0 ? bytes != 0 : size->messages.back().bytes >= message.bytes) return false;
      size->messages.push_back(message);
    }
    return true;
  }

  // The next number that is not in a comment; false at the end, or where it is none that fits.
  bool Next(long* value) {
    const std::string& text = *text_;
    while (at_ < text.size()) {
      if (text[at_] == '#') {
        while (at_ < text.size() && text[at_] != '\n') ++at_;
      } else if (text[at_] == ' ' || text[at_] == '\n') {
        ++at_;
      } else {
        const size_t end = std::min(text.find_first_of(" \n#", at_), text.size());
        int64_t number = 0;
        // A leading 0 would make it octal.
        if (!ParseSigned(std::string_view(text).substr(at_, end - at_), &number) || number < 0 ||
            (text[at_] == '0' && end != at_ + 1)) {
          ADD_FAILURE() << "not a number Open MPI reads: " << text.substr(at_, end - at_);
          return false;
        }
        at_ = end;
        *value = number;
        return true;
      }
    }
    return false;
  }

  const std::string* text_ = nullptr;
  size_t at_ = 0;
  std::map<long, std::vector<Size>> collectives_;
};

}  // namespace diapason::policy
