# NCCL behind comm.h on a real GPU; skips with a reason where there is none.
add_executable(comm_gpu comm_gpu.cc ../comm/device.cc)
target_link_libraries(comm_gpu PRIVATE comm diapason_base ${CMAKE_DL_LIBS})
add_test(NAME gpu.comm
         COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/comm_lab.py --programs ${PROJECT_BINARY_DIR}/bin)
set_tests_properties(gpu.comm PROPERTIES SKIP_RETURN_CODE 77 LABELS gpu RUN_SERIAL ON)
add_test(NAME gpu.comm.selftest
         COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/comm_lab.py --self-test)
set_tests_properties(gpu.comm.selftest PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
