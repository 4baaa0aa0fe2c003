/* Tells the plugin where iterations end, if the collective library has loaded it. Here nothing has:
 * a program of this kind runs unchanged without it. An argument names a plugin to load all the
 * same. */
#include <dlfcn.h>
#include <stdio.h>

#include "diapason/diapason.h"

int main(int argc, char** argv) {
  if (argc == 2 && dlopen(argv[1], RTLD_NOW) == NULL) {
    fprintf(stderr, "steps: %s\n", dlerror());
    return 1;
  }
  void* plugin = dlopen("libnccl-tuner-diapason.so", RTLD_NOW | RTLD_NOLOAD);
  if (plugin == NULL) {
    puts("no plugin in this process");
    return 0;
  }
  __typeof__(&diapason_version) version = (__typeof__(version))dlsym(plugin, "diapason_version");
  __typeof__(&diapason_step) step = (__typeof__(step))dlsym(plugin, "diapason_step");
  if (version == NULL || step == NULL) return 1;
  for (int i = 0; i < 3; ++i) step();
  printf("3 steps, plugin %s\n", version());
  return 0;
}
