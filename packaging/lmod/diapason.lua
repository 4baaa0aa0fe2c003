-- Lmod: `module load diapason`. For `cmake --install build/release --prefix ROOT`; put this file into your module
-- tree as diapason/VERSION.lua and write ROOT below. (A package in /usr needs no module.)
help([[Tuner for NCCL and RCCL collectives. `man diapason`]])
whatis("Name: diapason")

local root = "ROOT"
-- Debian and Ubuntu: lib/x86_64-linux-gnu. Others: lib or lib64, as cmake said.
local lib = pathJoin(root, "LIBDIR")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("LD_LIBRARY_PATH", lib)
prepend_path("PKG_CONFIG_PATH", pathJoin(lib, "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PYTHONPATH", pathJoin(root, "share/diapason/python"))
-- Without a policy (DIAPASON_POLICY) the plugin steps aside.
setenv("NCCL_TUNER_PLUGIN", pathJoin(lib, "libnccl-tuner-diapason.so"))
