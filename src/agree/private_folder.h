#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::agree {

// Opens the folder `name` in the folder `parent`, and creates it if it does not exist. Fails unless
// it is a real directory of this user without access for others: a user who can write to it can
// make ranks disagree. `shown` is its path, for messages.
Result<Descriptor> OpenPrivateFolder(int parent, const std::string& name, const std::string& shown);

// The same for an existing folder; kNotFound if there is none.
Result<Descriptor> OpenExistingFolder(int parent, const std::string& name,
                                      const std::string& shown);

// Why a file is not a regular file of this user; "" if it is.
std::string NotOurs(const struct stat& info);

// Whether `name` in `folder` still is the file with this status.
bool StillNamed(int folder, const std::string& name, const struct stat& info);

// From the system's random source; different everywhere, but not for secrets.
uint64_t RandomWord();
std::string RandomName();  // 16 hexadecimal digits

// Letters, digits and "._-", not too long, and no leading dot, which is reserved for internal
// names.
Status CheckKey(std::string_view key);
Status CheckValue(std::string_view value);
Status CheckJob(std::string_view job);

}  // namespace diapason::agree
