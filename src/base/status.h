#pragma once

// The error type is part of the public interface: comm.h returns it.
#include "diapason/status.h"  // IWYU pragma: export
