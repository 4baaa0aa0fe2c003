#pragma once

#include <string>

#include "mpi_profile/mpi_profile.h"

namespace diapason::cli {

// What an MPI program does with its time: `diapason journal profile` of recordings.
std::string MpiProfileText(const mpi_profile::MpiProfile& profile);
std::string MpiProfileJson(const mpi_profile::MpiProfile& profile);

}  // namespace diapason::cli
