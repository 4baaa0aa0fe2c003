#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "measure/measurer.h"

namespace diapason::measure {

// What travels between the ranks and between the processes of a measurement, each as one line of
// text. Both sides are of one version; what cannot be read is an error all the same.
std::string EncodeTrial(const Trial& trial);  // without its environment, which is set at the launch
Result<Trial> DecodeTrial(std::string_view text);
std::string EncodeMeasurement(const Measurement& measurement);
Result<Measurement> DecodeMeasurement(std::string_view text);
std::string EncodeSubject(const Subject& subject);
Result<Subject> DecodeSubject(std::string_view text);

}  // namespace diapason::measure
