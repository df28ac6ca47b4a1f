/* The stack of a crash, on stderr: a library that reports where a segmentation fault happened.
 *
 * Loading it is enough. The report is one line: the address whose access failed, and the functions from the innermost
 * one outwards, as far as the dynamic linker knows their names ("?" for a static function):
 *
 *     crash: access to 0x7c8 in PyThreadState_New < PyGILState_Ensure < foreign < ?
 *
 * Must never: hide the crash. The default action ends the process after the report.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DEEPEST = 64,   /* frames */
    HANDLERS = 2,   /* frames of this handler and of the kernel's return from it */
    LONGEST = 4096, /* bytes of the report */
};

static const char *name_of(const char *address)
{
    Dl_info found;
    return dladdr(address, &found) != 0 && found.dli_sname != NULL ? found.dli_sname : "?";
}

static void report(int number, siginfo_t *info, void *context)
{
    void *frames[DEEPEST];
    char line[LONGEST];
    int count = backtrace(frames, DEEPEST);
    int used = snprintf(line, sizeof line, "crash: access to %#lx in", (unsigned long)(uintptr_t)info->si_addr);
    (void)context;
    for (int i = HANDLERS; i < count && used < LONGEST - 1; i++) {
        /* All but the innermost frame are return addresses, which may belong to the function that follows. */
        const char *address = (const char *)frames[i] - (i > HANDLERS);
        used += snprintf(line + used, sizeof line - used, "%s%s", i == HANDLERS ? " " : " < ", name_of(address));
    }
    if (used > LONGEST - 2)
        used = LONGEST - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        _exit(1);
    signal(number, SIG_DFL); /* on return a failed access is repeated */
    if (info->si_code <= 0)  /* the signal was sent, by a process */
        raise(number);
}

__attribute__((constructor)) static void begin(void)
{
    void *frame;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO;
    backtrace(&frame, 1); /* the first call loads the unwinder, which allocates */
    sigaction(SIGSEGV, &action, NULL);
}
