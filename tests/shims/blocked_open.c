/* Blocks every process that opens a file called zarrd.json for reading, as every opening of a store does, as long as the
   file named by BLOCKED_OPEN exists. A file of that name with the suffix .waiting shows that an opening is blocked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hold(const char *path) {
    static const char name[] = "/zarrd.json";
    const char *marker = getenv("BLOCKED_OPEN");
    size_t length = path == NULL ? 0 : strlen(path);
    if (marker == NULL || length < sizeof name || strcmp(path + length - sizeof name + 1, name) != 0) {
        return;
    }
    while (access(marker, F_OK) == 0) {
        char waiting[4096];
        snprintf(waiting, sizeof waiting, "%s.waiting", marker);
        FILE *file = fopen(waiting, "w");
        if (file != NULL) {
            fclose(file);
        }
        usleep(5000);
    }
}

#define SHIM(name)                                                      \
    int name(const char *path, int flags, ...) {                        \
        static int (*real)(const char *, int, ...);                     \
        int (*call)(const char *, int, ...) = __atomic_load_n(&real, __ATOMIC_RELAXED); \
        if (call == NULL) {                                             \
            call = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
            __atomic_store_n(&real, call, __ATOMIC_RELAXED);            \
        }                                                               \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        mode_t mode = va_arg(rest, mode_t);                             \
        va_end(rest);                                                   \
        if ((flags & O_ACCMODE) == O_RDONLY) {                          \
            hold(path);                                                 \
        }                                                               \
        return call(path, flags, mode);                                 \
    }

SHIM(open)
SHIM(open64)
