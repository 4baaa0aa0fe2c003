#pragma once

#include "mpi_recorder/mpi_library.h"

// Parameters, arguments and types of functions with so many words: DIAPASON_PARAMETERS(2) is
// `Word a0, Word a1`. DIAPASON_NEXT(2) is 3.
#define DIAPASON_PARAMETERS_0 void
#define DIAPASON_PARAMETERS_1 Word a0
#define DIAPASON_PARAMETERS_2 Word a0, Word a1
#define DIAPASON_PARAMETERS_3 Word a0, Word a1, Word a2
#define DIAPASON_PARAMETERS_4 Word a0, Word a1, Word a2, Word a3
#define DIAPASON_PARAMETERS_5 Word a0, Word a1, Word a2, Word a3, Word a4
#define DIAPASON_PARAMETERS_6 Word a0, Word a1, Word a2, Word a3, Word a4, Word a5
#define DIAPASON_PARAMETERS_7 Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6
#define DIAPASON_PARAMETERS_8 Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6, Word a7
#define DIAPASON_PARAMETERS_9 \
  Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6, Word a7, Word a8
#define DIAPASON_PARAMETERS_10 \
  Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6, Word a7, Word a8, Word a9
#define DIAPASON_PARAMETERS_11 \
  Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6, Word a7, Word a8, Word a9, Word a10
#define DIAPASON_ARGUMENTS_0
#define DIAPASON_ARGUMENTS_1 a0
#define DIAPASON_ARGUMENTS_2 a0, a1
#define DIAPASON_ARGUMENTS_3 a0, a1, a2
#define DIAPASON_ARGUMENTS_4 a0, a1, a2, a3
#define DIAPASON_ARGUMENTS_5 a0, a1, a2, a3, a4
#define DIAPASON_ARGUMENTS_6 a0, a1, a2, a3, a4, a5
#define DIAPASON_ARGUMENTS_7 a0, a1, a2, a3, a4, a5, a6
#define DIAPASON_ARGUMENTS_8 a0, a1, a2, a3, a4, a5, a6, a7
#define DIAPASON_ARGUMENTS_9 a0, a1, a2, a3, a4, a5, a6, a7, a8
#define DIAPASON_ARGUMENTS_10 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9
#define DIAPASON_ARGUMENTS_11 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10
#define DIAPASON_TYPES_0
#define DIAPASON_TYPES_1 Word
#define DIAPASON_TYPES_2 Word, Word
#define DIAPASON_TYPES_3 Word, Word, Word
#define DIAPASON_TYPES_4 Word, Word, Word, Word
#define DIAPASON_TYPES_5 Word, Word, Word, Word, Word
#define DIAPASON_TYPES_6 Word, Word, Word, Word, Word, Word
#define DIAPASON_TYPES_7 Word, Word, Word, Word, Word, Word, Word
#define DIAPASON_TYPES_8 Word, Word, Word, Word, Word, Word, Word, Word
#define DIAPASON_TYPES_9 Word, Word, Word, Word, Word, Word, Word, Word, Word
#define DIAPASON_TYPES_10 Word, Word, Word, Word, Word, Word, Word, Word, Word, Word
#define DIAPASON_TYPES_11 Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word
#define DIAPASON_NEXT_0 1
#define DIAPASON_NEXT_1 2
#define DIAPASON_NEXT_2 3
#define DIAPASON_NEXT_3 4
#define DIAPASON_NEXT_4 5
#define DIAPASON_NEXT_5 6
#define DIAPASON_NEXT_6 7
#define DIAPASON_NEXT_7 8
#define DIAPASON_NEXT_8 9
#define DIAPASON_NEXT_9 10
#define DIAPASON_NEXT_10 11

#define DIAPASON_JOIN(a, b) a##b
#define DIAPASON_PARAMETERS(words) DIAPASON_JOIN(DIAPASON_PARAMETERS_, words)
#define DIAPASON_ARGUMENTS(words) DIAPASON_JOIN(DIAPASON_ARGUMENTS_, words)
#define DIAPASON_TYPES(words) DIAPASON_JOIN(DIAPASON_TYPES_, words)
#define DIAPASON_NEXT(words) DIAPASON_JOIN(DIAPASON_NEXT_, words)
#define DIAPASON_EXPORT extern "C" __attribute__((visibility("default")))
