#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// Reads a whole regular file of at most `limit` bytes. A directory, a pipe, a device, a larger file
// or an unreadable one is an error that says so. Never blocks on a pipe without a writer.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// Writes a file so that a reader sees the old content or the new, never a part: a temporary file in
// the same folder, flushed, then renamed. Where the path is a symbolic link, the file that it
// points to is replaced, and the link stays; what is there and no regular file (a device, a pipe)
// is written into, never replaced. A pipe that nobody reads is an error.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// For those who write a file of their own bit by bit: the path that a finished file is renamed to,
// as above; "" where what is there has to be written into.
std::string WhatToReplace(const std::string& path);

bool FileExists(const std::string& path);

// errno as a sentence.
std::string ErrnoText(int error);

}  // namespace diapason
