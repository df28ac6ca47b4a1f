/* A library that starts a thread when it is loaded. With ENDS_AT_FORK set, it ends the thread before each fork, as
   OpenBLAS does; with ENDS_SOON, the thread ends by itself half a second after a fork; without both, it runs on. */

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t thread;
static sem_t end;
static int is_running;

static void *wait_for_end(void *unused) {
    (void)unused;
    sem_wait(&end);
    if (getenv("ENDS_SOON"))
        usleep(500000);
    return NULL;
}

static void begin_to_stop(void) {
    sem_post(&end);
}

static void stop(void) {
    if (is_running) {
        sem_post(&end);
        pthread_join(thread, NULL);
        is_running = 0;
    }
}

__attribute__((constructor)) static void start(void) {
    sem_init(&end, 0, 0);
    is_running = pthread_create(&thread, NULL, wait_for_end, NULL) == 0;
    if (getenv("ENDS_AT_FORK"))
        pthread_atfork(stop, NULL, NULL);
    if (getenv("ENDS_SOON"))
        pthread_atfork(begin_to_stop, NULL, NULL);
}
