/* Ranks of a job as processes of their own on loopback, for tests of the public library. */
#ifndef GW_TESTS_RANKS_FIXTURE_H
#define GW_TESTS_RANKS_FIXTURE_H

#include "support.h"

#include "rank_check.h"

#include <sys/wait.h>
#include <unistd.h>

#include "net/udp/sock.h"

enum {
    WORLD = 4,
    DEADLINE_MS = 2000,
    GUARD_S = 60,
};

static char join[GW_SOCK_ADDR_NAME_MAX];
static enum gradwire_via via; /* of the jobs to come */

/* A free port of an address, for rank 0. */
static inline void choose_join(const char *host)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    assert_int_equal(gw_sock_addr_parse(host, 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &fd, error), 0);
    gw_sock_close_row(&fd, 1);
    gw_sock_addr_format(&addr, join, sizeof(join));
}

static inline struct gradwire_options options_of(int rank)
{
    struct gradwire_options options;
    gradwire_options_init(&options, sizeof(options));
    options.rank = rank;
    options.world = WORLD;
    options.join = join;
    options.deadline_ms = DEADLINE_MS;
    options.via = via;
    return options;
}

static inline pid_t start_rank(const struct gradwire_options *options, rank_fn *fn)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        gradwire *job;
        alarm(GUARD_S);
        int code = gradwire_open(options, &job);
        if (code)
            fprintf(stderr, "rank %d: %s\n", options->rank, gradwire_last_error());
        if (!code) {
            code = fn(job, options->rank);
            gradwire_close(job);
        }
        _exit(code ? 1 : 0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Waits for all ranks; every one must have succeeded. */
static inline void await_ranks(const pid_t pids[WORLD])
{
    for (int rank = 0; rank < WORLD; rank++) {
        int status;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* Runs `fn` on all ranks; every one must succeed. */
static inline void run_with(rank_fn *fn, void (*change)(struct gradwire_options *))
{
    pid_t pids[WORLD];
    unsetenv("GRADWIRE_FAULTS"); /* those of another run */
    for (int rank = 0; rank < WORLD; rank++) {
        struct gradwire_options options = options_of(rank);
        if (change)
            change(&options);
        pids[rank] = start_rank(&options, fn);
    }
    await_ranks(pids);
}

static inline void with_faults(struct gradwire_options *options)
{
    assert_int_equal(setenv("GRADWIRE_FAULTS", "lose=0.01,duplicate=0.01,delay=0.01,seed=7", 1), 0);
    options->deadline_ms = 20000;
}

#endif
