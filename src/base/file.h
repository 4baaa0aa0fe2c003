#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// Reads a whole regular file of at most `limit` bytes. Fails for a directory, a pipe, a device, a
// larger file or an unreadable one. Never blocks on a pipe without a writer.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// Writes a file atomically: a temporary file in the same folder, flushed, then renamed. If the path
// is a symbolic link, the target is replaced and the link stays. A device or a pipe is written
// into, never replaced. A pipe without a reader is an error.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// For callers that write a file piece by piece: the path to rename the finished file to, as above;
// "" if the existing device or pipe has to be written into.
std::string WhatToReplace(const std::string& path);

bool FileExists(const std::string& path);

// The message for an errno.
std::string ErrnoText(int error);

}  // namespace diapason
