/* Work in a child process with limits; see confined.h. */
#include "cli/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "cli/stopwatch.h"

enum {
    PATIENCE = 20, /* times the processor time is how long a child may take on a busy machine */
    PATIENCE_MS = 1000, /* and this much longer */
};

/* Bytes of address space in use, 0 when unknown. Sanitizers use terabytes from the start. */
static uint64_t used_memory(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Lowers a limit, never above the one that is there. */
static void limit(int resource, uint64_t most)
{
    struct rlimit old;
    if (getrlimit(resource, &old) != 0)
        return;
    if (old.rlim_cur > most)
        old.rlim_cur = most;
    setrlimit(resource, &old);
}

/* SIGPROF ends a child that has worked for too long: RLIMIT_CPU knows whole seconds only. */
static void confine(uint32_t cpu_ms)
{
    struct itimerval time = {
        .it_value = {.tv_sec = cpu_ms / 1000, .tv_usec = cpu_ms % 1000 * 1000},
    };
    /* Handlers of this program, such as a test's, are not for a child that crashes. */
    static const int fatal[] = {SIGPROF, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPROF);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        signal(fatal[i], SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    setitimer(ITIMER_PROF, &time, NULL);
    limit(RLIMIT_CORE, 0);
    uint64_t used = used_memory();
    if (used)
        limit(RLIMIT_AS, used + ((uint64_t)GW_CONFINED_MEMORY_MIB << 20));
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
}

static _Noreturn void be_child(const struct gw_confined *confined, int to_parent)
{
    confine(confined->cpu_ms);
    confined->work(confined->arg, confined->result);
    ssize_t size = write(to_parent, confined->result, confined->result_size);
    /* Not exit(): what this process is about to print is the parent's. */
    _exit(size == (ssize_t)confined->result_size ? 0 : 1);
}

/* Waits until the child has written or ended. False: it did neither in time. */
static bool wait_for(int from_child, double seconds)
{
    struct pollfd waiting = {.fd = from_child, .events = POLLIN};
    double end = gw_seconds() + seconds;
    for (;;) {
        double left = end - gw_seconds();
        int ready = left > 0 ? poll(&waiting, 1, (int)(left * 1000) + 1) : 0;
        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

static bool read_result(const struct gw_confined *confined, int from_child)
{
    ssize_t size;
    do
        size = read(from_child, confined->result, confined->result_size);
    while (size < 0 && errno == EINTR);
    return size == (ssize_t)confined->result_size;
}

enum gw_confined_end gw_confined_run(const struct gw_confined *confined)
{
    int ends[2], status = 0;
    GW_ASSERT(confined->result_size <= GW_CONFINED_RESULT_MAX);
    if (pipe(ends) != 0)
        return GW_CONFINED_FAILED;
    pid_t child = fork();
    if (child == 0)
        be_child(confined, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return GW_CONFINED_FAILED;
    }
    bool in_time = wait_for(ends[0], (PATIENCE * (double)confined->cpu_ms + PATIENCE_MS) / 1000);
    bool done = in_time && read_result(confined, ends[0]);
    close(ends[0]);
    if (!in_time)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (done)
        return GW_CONFINED_DONE;
    bool out_of_time = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
    return !in_time || out_of_time ? GW_CONFINED_SLOW : GW_CONFINED_FAILED;
}
