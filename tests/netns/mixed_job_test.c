/*
 * One job that does everything at once, as processes: sums in switches, by the server and around a
 * ring, messages, pushes, pulls, broadcasts and gathers, all started before any has ended, while
 * packets are lost, doubled and late. Servers die and come back, and in the end a rank dies. Every
 * result of every round is checked.
 *
 * Who waits does so by epoll over gradwire_fd() alone: a call whose end were not shown would hang.
 */
#include "netns/processes.h"
#include "support.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gradwire.h"

enum {
    WORLD = 4,
    FLOATS = 60000,  /* of a sum: 171 fragments */
    LARGE = 599808,  /* more than one server takes alone: 2 x 852 fragments */
    DOUBLES = 10000, /* of a ring */
    BYTES = 70000,   /* of a broadcast, or a message */
    VALUES = 3000,   /* of a key */
    GATHERED = 500,  /* of each rank */
    TAG = 3,
    ROUNDS = 3,
    CALLS = 9,
    DEADLINE_MS = 20000,
    GUARD_S = 100,
};

static const char some_faults[] = "lose=0.01,duplicate=0.01,delay=0.01,seed=7";

/* What a rank has come to, in memory that all processes share. */
struct report {
    int error; /* enum gradwire_error, or WRONG */
    char text[256];
};

enum {
    WRONG = 1,
};

static struct report *reports;
static pid_t pids[WORLD];
static int rounds_done[WORLD]; /* a pipe of each: a byte for each round */
static struct gw_test_daemon servers[2];
static uint16_t ports[2];

/* Where a rank keeps what its calls are about. */
struct work {
    gradwire *job;
    int rank, epoll;
    uint32_t round;
    gradwire_call calls[CALLS];
    int count;
    float in[FLOATS], out[FLOATS];
    double doubles[DOUBLES];
    int32_t ints[FLOATS];
    uint8_t sent[BYTES], heard[BYTES], told[BYTES];
    float values[VALUES], pulled[VALUES];
    int64_t own[GATHERED], all[GATHERED * WORLD];
};

static int sum_of_ranks(int times)
{
    return times * WORLD * (WORLD - 1) / 2;
}

/* Waits for all calls, in the order in which they end. */
static int wait_all(struct work *w)
{
    struct epoll_event event;
    int left = w->count, code = 0;
    while (left && !code) {
        if (epoll_wait(w->epoll, &event, 1, -1) != 1)
            continue;
        for (int i = 0; i < w->count && !code; i++) {
            int done = 0;
            if (w->calls[i] == 0)
                continue;
            code = gradwire_test(w->job, w->calls[i], &done);
            if (done)
                w->calls[i] = 0;
            left -= done;
        }
    }
    w->count = 0;
    return code;
}

static void fill(struct work *w)
{
    int rank = w->rank, round = (int)w->round;
    for (int i = 0; i < FLOATS; i++) {
        w->in[i] = (float)(rank + round + i % 5);
        w->ints[i] = rank * 3 + i;
    }
    for (int i = 0; i < DOUBLES; i++)
        w->doubles[i] = rank + 0x1p-40 * i; /* no float32 holds it */
    memset(w->sent, 'a' + (rank + round) % 7, sizeof(w->sent));
    memset(w->told, rank == round % WORLD ? 'A' + round % 9 : 0, sizeof(w->told));
    for (int i = 0; i < VALUES; i++)
        w->values[i] = (float)(rank + i % 3);
    for (int i = 0; i < GATHERED; i++)
        w->own[i] = ((int64_t)rank << 40) + i + round;
}

/* Starts one of each. */
static int start_all(struct work *w)
{
    struct gradwire_call_options by_server;
    gradwire *job = w->job;
    gradwire_call *call = w->calls;
    int next = (w->rank + 1) % WORLD, before = (w->rank + WORLD - 1) % WORLD;
    gradwire_call_options_init(&by_server, sizeof(by_server));
    by_server.via = GRADWIRE_VIA_PS;
    int code = gradwire_allreduce_start(job, w->in, w->out, FLOATS, GRADWIRE_FLOAT32, GRADWIRE_SUM,
                                        call++);
    if (!code)
        code = gradwire_allreduce_start(job, w->doubles, w->doubles, DOUBLES, GRADWIRE_FLOAT64,
                                        GRADWIRE_SUM, call++);
    if (!code)
        code = gradwire_receive_start(job, w->heard, BYTES, before, TAG, call++);
    if (!code)
        code = gradwire_allreduce_with(job, w->ints, w->ints, FLOATS, GRADWIRE_INT32, GRADWIRE_SUM,
                                       &by_server, call++);
    if (!code)
        code = gradwire_send_start(job, w->sent, BYTES, next, TAG, call++);
    if (!code)
        code = gradwire_push_start(job, w->round, w->values, VALUES, GRADWIRE_FLOAT32, call++);
    if (!code)
        code = gradwire_broadcast_start(job, w->told, BYTES, GRADWIRE_UINT8, (int)w->round % WORLD,
                                        call++);
    if (!code)
        code = gradwire_allgather_start(job, w->own, w->all, GATHERED, GRADWIRE_INT64, call++);
    if (!code)
        code = gradwire_barrier_start(job, call++);
    w->count = (int)(call - w->calls);
    return code;
}

/* Whether every result is right. */
static bool is_right(const struct work *w)
{
    int round = (int)w->round, before = (w->rank + WORLD - 1) % WORLD;
    bool right = true;
    for (int i = 0; i < FLOATS; i++) {
        right &= w->out[i] == (float)(sum_of_ranks(1) + WORLD * (round + i % 5));
        right &= w->ints[i] == sum_of_ranks(3) + WORLD * i;
    }
    for (int i = 0; i < DOUBLES; i++)
        right &= w->doubles[i] == sum_of_ranks(1) + WORLD * 0x1p-40 * i;
    for (int i = 0; i < BYTES; i++) {
        right &= w->heard[i] == 'a' + (before + round) % 7;
        right &= w->told[i] == 'A' + round % 9;
    }
    for (int i = 0; i < VALUES; i++)
        right &= w->pulled[i] == (float)(sum_of_ranks(1) + WORLD * (i % 3));
    for (int i = 0; i < GATHERED * WORLD; i++)
        right &= w->all[i] == ((int64_t)(i / GATHERED) << 40) + i % GATHERED + round;
    return right;
}

/* The pushes of all ranks have ended when the barrier behind them has. */
static int do_round(struct work *w)
{
    fill(w);
    int code = start_all(w);
    if (!code)
        code = wait_all(w);
    if (!code)
        code = gradwire_barrier(w->job);
    if (!code)
        code = gradwire_pull(w->job, w->round, w->pulled, VALUES, GRADWIRE_FLOAT32);
    return code;
}

static void run_rank(int rank, const char *server, const char *join, int pipe_fd)
{
    struct gradwire_options options;
    struct work *w = calloc(1, sizeof(*w));
    gradwire_options_init(&options, sizeof(options));
    options.rank = w->rank = rank;
    options.world = WORLD;
    options.server = server;
    options.join = join;
    options.deadline_ms = DEADLINE_MS;
    int code = gradwire_open(&options, &w->job);
    struct epoll_event in = {.events = EPOLLIN};
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!code && epoll_ctl(w->epoll, EPOLL_CTL_ADD, gradwire_fd(w->job), &in) != 0)
        code = WRONG;
    while (!code) {
        code = do_round(w);
        if (!code)
            code = is_right(w) ? 0 : WRONG;
        if (!code && write(pipe_fd, "", 1) != 1)
            code = WRONG;
        w->round += code == 0;
    }
    reports[rank].error = code;
    snprintf(reports[rank].text, sizeof(reports[rank].text), "round %u: %s", w->round,
             code == WRONG ? "a result is wrong" : gradwire_last_error());
    gradwire_close(w->job);
    _exit(0);
}

static void start_ranks(const char *server, const char *join)
{
    reports = mmap(NULL, WORLD * sizeof(*reports), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(reports != MAP_FAILED);
    assert_int_equal(setenv("GRADWIRE_FAULTS", some_faults, 1), 0);
    fflush(NULL);
    for (int rank = 0; rank < WORLD; rank++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        rounds_done[rank] = ends[0];
        pids[rank] = fork();
        if (pids[rank] == 0) {
            alarm(GUARD_S);
            run_rank(rank, server, join, ends[1]);
        }
        assert_true(pids[rank] > 0);
        close(ends[1]);
    }
    assert_int_equal(unsetenv("GRADWIRE_FAULTS"), 0);
}

/* Waits until every rank has done so many more rounds. */
static void await_rounds(int count)
{
    for (int i = 0; i < count; i++)
        for (int rank = 0; rank < WORLD; rank++) {
            char byte;
            if (read(rounds_done[rank], &byte, 1) != 1)
                fail_msg("rank %d: %s", rank, reports[rank].text);
        }
}

/* Kills a rank; all others must say so. */
static void lose_rank(int victim)
{
    char name[16];
    snprintf(name, sizeof(name), "rank %d", victim);
    assert_int_equal(kill(pids[victim], SIGKILL), 0);
    for (int rank = 0; rank < WORLD; rank++) {
        assert_int_equal(waitpid(pids[rank], NULL, 0), pids[rank]);
        close(rounds_done[rank]);
        if (rank == victim)
            continue;
        if (reports[rank].error != GRADWIRE_ERR_PEER || !strstr(reports[rank].text, name))
            fail_msg("rank %d ends with %d: %s", rank, reports[rank].error, reports[rank].text);
    }
    munmap(reports, WORLD * sizeof(*reports));
}

static void start_server(int i)
{
    gw_test_daemon_start(&servers[i], "server", ports[i], "");
}

static void mixed_job__does_everything_at_once(void **state)
{
    (void)state;
    char server[32];
    gw_test_free_ports(ports, 1);
    start_server(0);
    snprintf(server, sizeof(server), "127.0.0.1:%u", ports[0]);
    start_ranks(server, NULL);
    await_rounds(ROUNDS);
    gw_test_daemon_crash(&servers[0]);
    gw_test_daemon_restart(&servers[0]);
    await_rounds(ROUNDS);
    lose_rank(2);
    assert_int_equal(gw_test_daemon_stop(&servers[0]), 0);
}

/* The home is in the process of rank 0, and goes with it. */
static void mixed_job__needs_no_server(void **state)
{
    (void)state;
    char join[32];
    gw_test_free_ports(ports, 1);
    snprintf(join, sizeof(join), "127.0.0.1:%u", ports[0]);
    start_ranks(NULL, join);
    await_rounds(ROUNDS);
    lose_rank(0);
}

static void mixed_job__goes_on_when_one_of_two_servers_restarts(void **state)
{
    (void)state;
    char names[64];
    gw_test_free_ports(ports, 2);
    for (int i = 0; i < 2; i++)
        start_server(i);
    snprintf(names, sizeof(names), "127.0.0.1:%u,127.0.0.1:%u", ports[0], ports[1]);
    start_ranks(names, NULL);
    await_rounds(ROUNDS);
    for (int i = 1; i >= 0; i--) {
        gw_test_daemon_crash(&servers[i]);
        gw_test_daemon_restart(&servers[i]);
        await_rounds(ROUNDS);
    }
    lose_rank(3);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gw_test_daemon_stop(&servers[i]), 0);
}

static json_int_t total(const struct gw_test_daemon *daemon, const char *what)
{
    json_t *status = gw_test_daemon_status(daemon);
    json_int_t count = json_integer_value(json_object_get(json_object_get(status, "totals"), what));
    json_decref(status);
    return count;
}

/* Small tensors belong to the servers in turn, a large one to both. */
static void sum_evenly(int rank, const char *names)
{
    struct gradwire_options options;
    gradwire *job = NULL;
    float *x = calloc(LARGE, sizeof(*x));
    alarm(GUARD_S);
    gradwire_options_init(&options, sizeof(options));
    options.rank = rank;
    options.world = WORLD;
    options.server = names;
    options.deadline_ms = DEADLINE_MS;
    int code = gradwire_open(&options, &job);
    for (int i = 0; i < 4 && !code; i++)
        code = gradwire_allreduce(job, x, x, FLOATS, GRADWIRE_FLOAT32, GRADWIRE_SUM);
    if (!code)
        code = gradwire_allreduce(job, x, x, LARGE, GRADWIRE_FLOAT32, GRADWIRE_SUM);
    if (code)
        fprintf(stderr, "rank %d: %s\n", rank, gradwire_last_error());
    gradwire_close(job);
    _exit(code ? 1 : 0);
}

/* With m servers each has |U|/m in and as much out: 2|U|/m (ATP, A.5). */
static void mixed_job__servers_share_the_bytes(void **state)
{
    (void)state;
    char names[64];
    const json_int_t fragments = 2 * ((FLOATS + 351) / 352) + LARGE / 2 / 352;
    const json_int_t payload = 4 * (2 * FLOATS + LARGE / 2);
    gw_test_free_ports(ports, 2);
    for (int i = 0; i < 2; i++)
        start_server(i);
    snprintf(names, sizeof(names), "127.0.0.1:%u,127.0.0.1:%u", ports[0], ports[1]);
    fflush(NULL);
    for (int rank = 0; rank < WORLD; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            sum_evenly(rank, names);
    }
    for (int rank = 0; rank < WORLD; rank++) {
        int status;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(total(&servers[i], "results"), fragments);
        json_int_t bytes = total(&servers[i], "bytes");
        print_message("server %d: %lld bytes in for %lld of payload\n", i, (long long)bytes,
                      (long long)payload);
        assert_true(bytes >= payload && bytes < 2 * payload); /* headers, and what was repeated */
        assert_int_equal(gw_test_daemon_stop(&servers[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(mixed_job__does_everything_at_once, gw_test_end_all),
        cmocka_unit_test_teardown(mixed_job__needs_no_server, gw_test_end_all),
        cmocka_unit_test_teardown(mixed_job__goes_on_when_one_of_two_servers_restarts,
                                  gw_test_end_all),
        cmocka_unit_test_teardown(mixed_job__servers_share_the_bytes, gw_test_end_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
