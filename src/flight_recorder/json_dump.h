#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "flight_recorder/record.h"

namespace diapason::flight_recorder {

// ReadDump for JSON.
Status ReadJsonDump(int fd, std::string_view start, const std::string& name, FlightRecord* record);

}  // namespace diapason::flight_recorder
