/* Injected delays and failures: a library to be loaded with LD_PRELOAD.
 *
 * The hooks call libc through relocations of their own library, so their calls of
 * the futex system call, the clock, pthread_mutex_(try)lock and -unlock pass through
 * this library, as do the interpreter's. These are the points at which a thread may
 * be delayed during a hand-over. Must never: change a result, except that of the one
 * mprotect that is requested to fail.
 *
 * SABOTEUR_SEED: seed of the delays; 0 or empty for none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned seed, next_thread, mprotects_to_failure, foreign_turns;
static __thread uint32_t state;

static long (*real_syscall)(long, long, long, long, long, long, long);
static int (*real_trylock)(pthread_mutex_t *), (*real_unlock)(pthread_mutex_t *), (*real_mprotect)(void *, size_t, int);

/* Also run by the first call: constructors of other libraries may run before this one. */
__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SABOTEUR_SEED");
    if (real_syscall != NULL)
        return;
    real_trylock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    real_unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    real_mprotect = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "mprotect");
    real_syscall = (long (*)(long, long, long, long, long, long, long))dlsym(RTLD_NEXT, "syscall");
    seed = text ? (unsigned)atoi(text) : 0;
}

/* Delays one call in sixteen: by a yield, or for up to a millisecond. */
static void delay(void)
{
    int saved = errno;
    if (seed == 0)
        return;
    if (state == 0)
        state = seed * 2654435761u + ++next_thread * 40503u + 1;
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    if (state % 16 == 0)
        sched_yield();
    else if (state % 64 == 1) {
        struct timespec pause = {0, (long)(state >> 8) % 1000000};
        real_syscall(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    }
    errno = saved;
}

long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    begin();
    delay();
    long result = real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    delay();
    return result;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    begin();
    delay();
    return real_trylock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    begin();
    int result = real_unlock(mutex);
    delay();
    return result;
}

int mprotect(void *address, size_t size, int protection)
{
    if (mprotects_to_failure > 0 && --mprotects_to_failure == 0) {
        errno = EPERM;
        return -1;
    }
    begin();
    return real_mprotect(address, size, protection);
}

/* Makes the nth mprotect from now fail, once; 0: none. */
void saboteur_fail_mprotect(int nth)
{
    mprotects_to_failure = (unsigned)nth;
}

/* Foreign threads: they acquire and release the GIL until the process ends. Python's
 * functions are looked up at run time, so that other programs can load this library too. */
static int (*ensure)(void);
static void (*release)(int);

static void *(*save)(void);

/* The thread state is made early: creating one after finalisation crashes stock
 * interpreters (14 of 60 runs of 3.13.0, 15 of 60 of 3.12.1, 1 of 60 of 3.11.7;
 * new_threadstate in Python/pystate.c), with and without the scheduler. A thread whose
 * state was deleted creates another one, so that crash remains, but is rare. */
static void *foreign(void *unused)
{
    ensure();
    save();
    for (;;) {
        int gil = ensure();
        foreign_turns++;
        release(gil);
    }
    return unused;
}

int saboteur_start_foreign_threads(int count)
{
    ensure = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    save = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, foreign, NULL) != 0)
            return i;
        pthread_detach(thread);
    }
    return count;
}

static void ensure_late(void)
{
    ensure();
}

/* Acquires the GIL when the interpreter is gone, as such a thread now and then does: before 3.14
 * that crashes. */
void saboteur_acquire_after_the_end(void)
{
    ensure = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    atexit(ensure_late);
}

unsigned saboteur_foreign_turns(void)
{
    return foreign_turns;
}
