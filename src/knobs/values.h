#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "knobs/check.h"

namespace diapason::knobs {

// A text as parsed by strtoll with base 0, which the libraries use for numbers.
struct NumberReading {
  int64_t value = 0;
  bool digits = false;    // it begins with a number; if not it is read as 0
  bool overflow = false;  // the library then uses the default
  bool octal = false;     // "010" is eight
  std::string rest;       // after the number: ignored
};
NumberReading ReadNumber(const std::string& text);

// How a library treats an invalid value.
struct ValueVerdict {
  std::string id;
  Severity severity = Severity::kError;
  std::string title;
  std::string action;
};

// Problems with a value, by the knob's type, words and range, plus special rules for some
// variables.
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
  // Whether any function can still choose `word` (lower case).
  bool Allows(const std::string& word) const;
  // Whether all functions are restricted to `words`.
  bool Only(const std::vector<std::string>& words) const;
};
Selection ReadSelection(const std::string& value);
std::vector<ValueVerdict> JudgeSelection(const Knob& knob, const std::string& value,
                                         const CheckedFor& checked_for);
// "NCCL_ALGO=", which is an empty list before 2.24, and counts as not set since.
std::vector<ValueVerdict> JudgeEmptySelection(const Knob& knob, const CheckedFor& checked_for);

// Lists of words with an optional '^' in front: NCCL_DEBUG_SUBSYS, NCCL_SOCKET_IFNAME, NCCL_IB_HCA,
// and others with known words.
std::vector<ValueVerdict> JudgeList(const Knob& knob, const std::string& value,
                                    const CheckedFor& checked_for);

}  // namespace diapason::knobs
