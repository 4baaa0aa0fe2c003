#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "knobs/check.h"

namespace diapason::knobs {

// A text as strtoll with base 0 reads it, which is how the libraries read numbers.
struct NumberReading {
  int64_t value = 0;
  bool digits = false;    // it begins with a number at all; if not it is read as 0
  bool overflow = false;  // the library takes the default then
  bool octal = false;     // "010" is eight
  std::string rest;       // behind the number: not looked at
};
NumberReading ReadNumber(const std::string& text);

// What a library does with a value that is not what it should be.
struct ValueVerdict {
  std::string id;
  Severity severity = Severity::kError;
  std::string title;
  std::string action;
};

// What is wrong with a value; the knob's type, words and range say what would be right, and some
// variables have ways of their own.
std::vector<ValueVerdict> JudgeValue(const Knob& knob, const std::string& value,
                                     const CheckedFor& checked_for);

// NCCL_ALGO and NCCL_PROTO: "ring,tree", "^ll128", and by function since 2.24:
// "ring;allreduce:tree,nvls".
struct Selection {
  struct Part {
    std::string function;            // lower case; "" for all
    bool negated = false;            // '^': all but these
    std::vector<std::string> words;  // lower case
  };
  std::vector<Part> parts;
  // Whether `word` (lower case) can still be chosen by any function.
  bool Allows(const std::string& word) const;
  // Whether all functions are left with nothing but `words`.
  bool Only(const std::vector<std::string>& words) const;
};
Selection ReadSelection(const std::string& value);
std::vector<ValueVerdict> JudgeSelection(const Knob& knob, const std::string& value,
                                         const CheckedFor& checked_for);
// "NCCL_ALGO=", which is a list of nothing before 2.24, and no list at all since.
std::vector<ValueVerdict> JudgeEmptySelection(const Knob& knob, const CheckedFor& checked_for);

// Lists of words with '^' in front: NCCL_DEBUG_SUBSYS, NCCL_SOCKET_IFNAME, NCCL_IB_HCA, and any
// other whose words are known.
std::vector<ValueVerdict> JudgeList(const Knob& knob, const std::string& value,
                                    const CheckedFor& checked_for);

}  // namespace diapason::knobs
