/* Makes reads and writes at positions of files below a directory fail or wait, while a file says so.
 *
 *   FAILING_DISK_ROOT   the directory, an absolute path without symbolic links
 *   FAILING_DISK        the file: "fail" for EIO, "hang" to wait until it is gone; as long as there is none, nothing happens
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The first character of the file; 0 if there is none. */
static char state(void) {
    const char *path = getenv("FAILING_DISK");
    int fd = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char first = 0;
    if (fd >= 0) {
        (void)!syscall(SYS_read, fd, &first, 1);
        syscall(SYS_close, fd);
    }
    return first;
}

static int fails(int fd) {
    const char *root = getenv("FAILING_DISK_ROOT");
    char link[64], path[PATH_MAX];
    if (root == NULL || state() == 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = 0;
    if (strncmp(path, root, strlen(root)) != 0) return 0;
    while (state() == 'h') usleep(20000);
    if (state() != 'f') return 0;
    errno = EIO;
    return 1;
}

#define AT(name, buffer)                                                        \
    ssize_t name(int fd, buffer bytes, size_t len, off_t at) {                  \
        static ssize_t (*real)(int, buffer, size_t, off_t);                     \
        if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, #name);     \
        return fails(fd) ? -1 : real(fd, bytes, len, at);                       \
    }

AT(pread, void *)
AT(pread64, void *)
AT(pwrite, const void *)
AT(pwrite64, const void *)
