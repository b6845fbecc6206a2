// Only in wheels (MARGROVE_STUBS). libstdc++ reads this variable of glibc 2.32 to leave out atomic operations. The
// wheel has one of its own, which says that there are several threads, and so runs with an older glibc.
extern "C" {
__attribute__((visibility("hidden"))) extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
