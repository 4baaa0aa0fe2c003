// The standard headers that most sources include, compiled once. Sources still
// include what they use: `./dev lint` compiles every header without this one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
