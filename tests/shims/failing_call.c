/* Makes one call that concerns files below a directory fail, and counts those calls.
 *
 *   FAILING_CALL_ROOT    the directory, an absolute path without symbolic links
 *   FAILING_CALL_LOG     a file outside of it, with a line for each call: number, name and path
 *   FAILING_CALL_NUMBER  the number of the call that fails, from 1; 0 for none
 *   FAILING_CALL_ERRNO   the number of the error
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static void note(long number, const char *name, const char *path) {
    char line[PATH_MAX + 64];
    int len = snprintf(line, sizeof line, "%ld %s %s\n", number, name, path);
    const char *log = getenv("FAILING_CALL_LOG");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log == NULL ? "/dev/null" : log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) {
        (void)!syscall(SYS_write, fd, line, len);
        syscall(SYS_close, fd);
    }
}

/* The path itself, or, for one through a descriptor of the program's own (/proc/self/fd/N/...), where that leads. */
static const char *resolved(const char *path) {
    static const char prefix[] = "/proc/self/fd/";
    static __thread char found[2][PATH_MAX];
    static __thread int next;
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return path;
    size_t len = sizeof prefix - 1 + strspn(path + sizeof prefix - 1, "0123456789");
    char link[64];
    if (len >= sizeof link) return path;
    memcpy(link, path, len);
    link[len] = '\0';
    next = !next;
    ssize_t target = syscall(SYS_readlinkat, AT_FDCWD, link, found[next], PATH_MAX - 1);
    if (target <= 0 || strlen(path + len) + target >= PATH_MAX) return path;
    strcpy(found[next] + target, path + len);
    return found[next];
}

/* True if this call must fail; sets errno then. */
static int fails_at(const char *name, const char *path) {
    const char *root = getenv("FAILING_CALL_ROOT"), *number = getenv("FAILING_CALL_NUMBER");
    if (root == NULL || number == NULL || path == NULL) {
        return 0;
    }
    path = resolved(path);
    if (strncmp(path, root, strlen(root)) != 0) {
        return 0;
    }
    long mine = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    note(mine, name, path);
    if (mine != atol(number)) {
        return 0;
    }
    errno = atoi(getenv("FAILING_CALL_ERRNO"));
    return 1;
}

static int fd_fails(const char *name, int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (len <= 0) {
        return 0;
    }
    path[len] = 0;
    return fails_at(name, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENING(name)                                    \
    int name(const char *path, int flags, ...) {         \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode_t mode = va_arg(rest, mode_t);              \
        va_end(rest);                                    \
        if (fails_at("open", path)) {                    \
            return -1;                                   \
        }                                                \
        return REAL(name)(path, flags, mode);            \
    }

#define OPENING_AT(name)                                 \
    int name(int dir, const char *path, int flags, ...) { \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode_t mode = va_arg(rest, mode_t);              \
        va_end(rest);                                    \
        if (fails_at("open", path)) {                    \
            return -1;                                   \
        }                                                \
        return REAL(name)(dir, path, flags, mode);       \
    }

/* A call whose first argument is an open file. */
#define ON_FILE(result, name, parameters, ...)           \
    result name parameters {                             \
        if (fd_fails(#name, fd)) {                       \
            return -1;                                   \
        }                                                \
        return REAL(name)(__VA_ARGS__);                  \
    }

/* A call on a path. */
#define ON_PATH(name, parameters, ...)                   \
    int name parameters {                                \
        if (fails_at(#name, path)) {                     \
            return -1;                                   \
        }                                                \
        return REAL(name)(__VA_ARGS__);                  \
    }

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)
ON_FILE(ssize_t, write, (int fd, const void *bytes, size_t len), fd, bytes, len)
ON_FILE(ssize_t, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
ON_FILE(ssize_t, pwrite, (int fd, const void *bytes, size_t len, off_t at), fd, bytes, len, at)
ON_FILE(ssize_t, pwrite64, (int fd, const void *bytes, size_t len, off64_t at), fd, bytes, len, at)
ON_FILE(int, fsync, (int fd), fd)
ON_FILE(int, fdatasync, (int fd), fd)
ON_FILE(int, sync_file_range, (int fd, off64_t at, off64_t len, unsigned flags), fd, at, len, flags)
ON_FILE(int, ftruncate, (int fd, off_t len), fd, len)
ON_FILE(int, ftruncate64, (int fd, off64_t len), fd, len)
ON_FILE(int, fallocate, (int fd, int mode, off_t at, off_t len), fd, mode, at, len)
ON_FILE(int, fallocate64, (int fd, int mode, off64_t at, off64_t len), fd, mode, at, len)
ON_PATH(rename, (const char *path, const char *to), path, to)
ON_PATH(unlink, (const char *path), path)
ON_PATH(mkdir, (const char *path, mode_t mode), path, mode)
