#include "mpi_recorder/mpi_library.h"

#include <gtest/gtest.h>

namespace diapason::mpi_recorder {
namespace {

TEST(MpiLibrary, IsKnownByItsVersion) {
  EXPECT_EQ(FamilyOf("Open MPI v4.1.4, package: Debian OpenMPI"), MpiFamily::kOpenMpi);
  EXPECT_EQ(FamilyOf("MPICH Version:\t4.0.2"), MpiFamily::kMpich);
  EXPECT_EQ(FamilyOf("Intel(R) MPI Library 2021.10 for Linux* OS"), MpiFamily::kMpich);
  EXPECT_EQ(FamilyOf("MVAPICH2 Version      :\t2.3.7"), MpiFamily::kMpich);
  EXPECT_EQ(FamilyOf("MPI VERSION    : CRAY MPICH version 8.1.28"), MpiFamily::kMpich);
  EXPECT_EQ(FamilyOf("HPE MPT 2.28"), MpiFamily::kUnknown);
  EXPECT_EQ(FamilyOf(""), MpiFamily::kUnknown);
}

TEST(MpiLibrary, AProcessWithoutOneHasNone) {
  std::string why;
  EXPECT_FALSE(FindMpiLibrary(&why));
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(FindSymbol("PMPI_Comm_size"), nullptr);
}

TEST(MpiLibrary, HandlesOfFortranAreConvertedWhereTheyDiffer) {
  MpiLibrary library;
  EXPECT_EQ(library.CommOfFortran(0x44000000), 0x44000000u);
  EXPECT_EQ(library.CommOfFortran(-2), 0xfffffffeu);
  library.functions.comm_f2c = [](int comm) { return static_cast<Word>(comm) + 1000; };
  EXPECT_EQ(library.CommOfFortran(3), 1003u);
  EXPECT_EQ(library.Handle(0xabcd00000001u), 0xabcd00000001u);
  library.abi.int_handles = true;
  EXPECT_EQ(library.Handle(0xabcd00000001u), 1u);
}

}  // namespace
}  // namespace diapason::mpi_recorder
