/* Leads the system calls that the program makes itself, without the C library, to the functions of record_files.c, which
 * includes this at its end. A filter of the kernel turns such calls, recognized by the address of the instruction, into
 * SIGSYS; its handler makes them through the C library, whose own instructions are not filtered.
 */
#include <link.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifdef __x86_64__

/* The calls that change files, open or close them, or make them durable. */
static const int direct_calls[] = {
    SYS_open, SYS_openat, SYS_openat2, SYS_close, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl, SYS_write, SYS_writev, SYS_pwrite64,
    SYS_pwritev, SYS_pwritev2, SYS_ftruncate, SYS_fallocate, SYS_rename, SYS_renameat, SYS_renameat2, SYS_link, SYS_linkat,
    SYS_symlinkat, SYS_unlink, SYS_unlinkat, SYS_rmdir, SYS_mkdir, SYS_mkdirat, SYS_fsync, SYS_fdatasync,
    SYS_copy_file_range, SYS_sendfile, SYS_splice,
};
#define DIRECT_CALLS (sizeof direct_calls / sizeof *direct_calls)

/* The first and the last address of the program's instructions. */
static uint64_t first_instruction = UINT64_MAX, last_instruction;

static int find_instructions(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uint64_t first = object->dlpi_addr + part->p_vaddr, last = first + part->p_memsz - 1;
        if (first < first_instruction) first_instruction = first;
        if (last > last_instruction) last_instruction = last;
    }
    return 1; /* The program is the first object. */
}

/* Opens a file with openat2. */
static int opened_with(int at, const char *path, const struct open_how *how, size_t size) {
    int dir = at;
    const char *rest = within(&dir, path);
    if (rest == NULL) {
        int fd = syscall(SYS_openat2, at, path, how, size);
        if (fd >= 0 && fd < MOST_FDS) fds[fd] = FOREIGN;
        return fd;
    }
    int saved = lock();
    int fd = syscall(SYS_openat2, at, path, how, size);
    if (fd >= 0)
        register_open(fd, dir, rest, how->flags);
    else
        saved = errno;
    unlock(saved);
    return fd;
}

static long made(const greg_t *registers, int call) {
    long a = registers[REG_RDI], b = registers[REG_RSI], c = registers[REG_RDX], d = registers[REG_R10];
    long e = registers[REG_R8], f = registers[REG_R9];
    const char *path = (const char *)a, *second = (const char *)b, *fourth = (const char *)d;
    switch (call) {
    case SYS_open: return opened(AT_FDCWD, path, b, c);
    case SYS_openat: return opened(a, second, c, d);
    case SYS_openat2: return opened_with(a, second, (const struct open_how *)c, d);
    case SYS_close: return close(a);
    case SYS_dup: return dup(a);
    case SYS_dup2: return dup2(a, b);
    case SYS_dup3: return dup3(a, b, c);
    case SYS_fcntl: return controlled(a, b, c);
    case SYS_write: return write(a, second, c);
    case SYS_writev: return writev(a, (const struct iovec *)b, c);
    case SYS_pwrite64: return pwritten(a, second, c, d);
    case SYS_pwritev: return pwrittenv(a, (const struct iovec *)b, c, d);
    case SYS_pwritev2: return pwrittenv2(a, (const struct iovec *)b, c, d, f);
    case SYS_ftruncate: return truncated(a, b);
    case SYS_fallocate: return allocated(a, b, c, d);
    case SYS_rename: return rename(path, second);
    case SYS_renameat: return renameat(a, second, c, fourth);
    case SYS_renameat2: return renameat2(a, second, c, fourth, e);
    case SYS_link: return link(path, second);
    case SYS_linkat: return linkat(a, second, c, fourth, e);
    case SYS_symlinkat: return symlinkat(path, b, (const char *)c);
    case SYS_unlink: return unlink(path);
    case SYS_unlinkat: return unlinkat(a, second, c);
    case SYS_rmdir: return rmdir(path);
    case SYS_mkdir: return mkdir(path, b);
    case SYS_mkdirat: return mkdirat(a, second, c);
    case SYS_fsync: return fsync(a);
    case SYS_fdatasync: return fdatasync(a);
    case SYS_copy_file_range: return copy_file_range(a, (off64_t *)b, c, (off64_t *)d, e, f);
    case SYS_sendfile: return sendfile64(a, b, (off64_t *)c, d);
    case SYS_splice: return splice(a, (off64_t *)b, c, (off64_t *)d, e, f);
    default: die("a system call that is filtered has no function"); return -1;
    }
}

static void make_direct_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;
    long result = made(registers, info->si_syscall);
    registers[REG_RAX] = result < 0 ? -errno : result;
    errno = saved;
}

static void record_direct_calls(void) {
    dl_iterate_phdr(find_instructions, NULL);
    struct sigaction action = {.sa_sigaction = make_direct_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    if (sigaction(SIGSYS, &action, NULL) != 0) die("SIGSYS cannot be handled");
    uint32_t first_high = first_instruction >> 32, last_high = last_instruction >> 32;
    uint32_t first_low = first_instruction, last_low = last_instruction;
    struct sock_filter filter[DIRECT_CALLS + 16];
    unsigned count = 0;
#define EMIT(...) filter[count++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) EMIT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field))
    LOAD(offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < DIRECT_CALLS; i++)
        EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, direct_calls[i], DIRECT_CALLS - i, 0));
    EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    /* The address is not before the first instruction, and not after the last one: their halves are compared, in one of two
     * ways, since the program may cross a boundary of 4 GiB. */
    LOAD(offsetof(struct seccomp_data, instruction_pointer) + 4);
    if (first_high == last_high) {
        EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_high, 0, 4));
        LOAD(offsetof(struct seccomp_data, instruction_pointer));
        EMIT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_low, 0, 2));
        EMIT(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_low, 1, 0));
    } else {
        EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_high, 0, 2));
        LOAD(offsetof(struct seccomp_data, instruction_pointer));
        EMIT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_low, 3, 4));
        EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, last_high, 0, 3));
        LOAD(offsetof(struct seccomp_data, instruction_pointer));
        EMIT(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_low, 1, 0));
    }
    EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
#undef LOAD
#undef EMIT
    struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        die("the kernel does not filter system calls");
}

#else

static void record_direct_calls(void) { die("direct system calls are recorded on x86-64 only"); }

#endif
