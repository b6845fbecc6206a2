# Compile for Linux on aarch64 with zig, which brings Clang, libc++ and the symbols of an old glibc (release/wheels.py).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(zig $ENV{MARGROVE_ZIG})
set(CMAKE_CXX_COMPILER ${zig} c++ -target aarch64-linux-gnu.$ENV{MARGROVE_GLIBC})
# nanobind calls fprintf, which neither libc++ nor Python's header for the stable ABI declares.
set(CMAKE_CXX_FLAGS_INIT "-include cstdio")
set(CMAKE_CXX_ARCHIVE_CREATE "${zig} ar qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
# The strip of this machine knows the files of its own processor only; the linker does it.
set(CMAKE_STRIP true)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
set(MARGROVE_PRECOMPILE OFF)
