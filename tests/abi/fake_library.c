/* Stands for the library that loads the plugin. Built under three names: libnccl-fake.so,
 * librccl-fake.so (recognised by its name) and libframework-fake.so (a framework with RCCL linked
 * in, recognised by what it exports). */
int fake_version;  /* what ncclGetVersion answers; 0: an error */
int fake_lines[8]; /* log lines by level */

int ncclGetVersion(int* version);
int ncclGetVersion(int* version) {
  *version = fake_version;
  return fake_version == 0 ? 3 : 0;
}

void fake_log(int level, unsigned long flags, const char* file, int line, const char* format, ...);
void fake_log(int level, unsigned long flags, const char* file, int line, const char* format, ...) {
  (void)flags, (void)file, (void)line, (void)format;
  if (level >= 0 && level < 8) ++fake_lines[level];
}

#ifdef FAKE_FRAMEWORK
int mscclLoadAlgo(void);
int mscclLoadAlgo(void) { return 0; }
#endif
