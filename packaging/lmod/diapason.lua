-- Lmod: `module load diapason`. For `cmake --install build/release --prefix ROOT`: put this file into your module
-- tree as diapason/VERSION.lua and write ROOT into the line below, the only one to edit (in the installed copy
-- too). A package in /usr needs no module.
local root = "ROOT"

help([[Tuner for NCCL and RCCL collectives. `man diapason`]])
whatis("Name: diapason")

-- The folder that cmake chose: one of the first two on Debian and Ubuntu, one of the others elsewhere.
local plugin = "libnccl-tuner-diapason.so"
local lib = nil
for _, folder in ipairs({"lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "lib"}) do
  if lib == nil and isFile(pathJoin(root, folder, plugin)) then lib = pathJoin(root, folder) end
end
if lib == nil then
  LmodError("diapason is not installed in '" .. root .. "', which this module file names as its root")
end

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("LD_LIBRARY_PATH", lib)
prepend_path("PKG_CONFIG_PATH", pathJoin(lib, "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PYTHONPATH", pathJoin(root, "share/diapason/python"))

-- A tuner that is already set (by the site or the cloud) is asked first, and its answer is the default; "none" stays
-- none. If no tuner is set, the plugin finds the one that the library would have loaded.
local tuner = os.getenv("NCCL_TUNER_PLUGIN") or ""
local chain = os.getenv("DIAPASON_CHAIN") or ""
local ours = tuner == "diapason" or ("/" .. tuner):match("/lib[nr]ccl%-[^/]*%-diapason%.so$") ~= nil
if tuner:lower() == "none" then
  if chain == "" then chain = "none" end
elseif tuner ~= "" and not ours then
  chain = tuner
end
-- Pushed, so that unloading restores the previous value. An empty value is "not set".
pushenv("DIAPASON_CHAIN", chain)
-- Without a policy (DIAPASON_POLICY) the plugin leaves all choices to the library.
pushenv("NCCL_TUNER_PLUGIN", pathJoin(lib, plugin))
