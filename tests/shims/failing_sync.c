/* Makes fsync and fdatasync fail with EIO as soon as the file that FAILING_SYNC names exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *marker = getenv("FAILING_SYNC");
    return marker != NULL && access(marker, F_OK) == 0;
}

#define SHIM(name)                                                      \
    int name(int fd) {                                                  \
        static int (*real)(int);                                        \
        int (*call)(int) = __atomic_load_n(&real, __ATOMIC_RELAXED);    \
        if (call == NULL) {                                             \
            call = (int (*)(int))dlsym(RTLD_NEXT, #name);               \
            __atomic_store_n(&real, call, __ATOMIC_RELAXED);            \
        }                                                               \
        if (fails()) {                                                  \
            errno = EIO;                                                \
            return -1;                                                  \
        }                                                               \
        return call(fd);                                                \
    }

SHIM(fsync)
SHIM(fdatasync)
