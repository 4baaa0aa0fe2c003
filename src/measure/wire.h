#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "measure/iteration.h"
#include "measure/measurer.h"

namespace diapason::measure {

// What travels between the ranks and between the processes of a measurement, each as one line of
// text. Both sides are of one version; what cannot be read is an error all the same.
std::string EncodeTrial(const Trial& trial);  // without its environment, which is set at the launch
Result<Trial> DecodeTrial(std::string_view text);

// Two ranks that send each other `bytes` at the same time, `iterations` times.
struct RankPair {
  int first = 0;
  int second = 0;
  uint64_t bytes = 0;
  int iterations = 1;
};
// What ranks can be asked for: a Measurement of a trial or a pair, or the IterationTimes of a spec.
using Order = std::variant<Trial, RankPair, IterationSpec>;
std::string EncodeOrder(const Order& order);
Result<Order> DecodeOrder(std::string_view text);

std::string EncodeMeasurement(const Measurement& measurement);
Result<Measurement> DecodeMeasurement(std::string_view text);
std::string EncodeTimes(const IterationTimes& times);
Result<IterationTimes> DecodeTimes(std::string_view text);
std::string EncodeSubject(const Subject& subject);
Result<Subject> DecodeSubject(std::string_view text);

// An error. What cannot be decoded is an error of its own.
std::string EncodeError(const Status& status);
Status DecodeError(std::string_view text);

// Such a line among whatever else ranks and launchers write to standard output. The text of a
// sealed line comes back; an error for one that was damaged on its way through a launcher, which
// must not become a figure; nothing for any other line.
std::string SealLine(std::string_view text);
Result<std::optional<std::string>> OpenLine(const std::string& line);

}  // namespace diapason::measure
