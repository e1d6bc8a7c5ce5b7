/*
 * Processes that do not run for a while, stopped by a signal: a server blames nobody for what it
 * did not hear meanwhile, and a rank that the others have given up says so, and not that they are
 * silent. A new job of the name begins without it.
 */
#include "netns/processes.h"
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "gradwire.h"

enum {
    WORLD = 2,
    COUNT = 20000,
    DEADLINE_MS = 20000,
    AWAY_S = 3, /* longer than a silence */
    ROUNDS = 5,
};

/* A switch, a server and a job. */
struct fabric {
    bool is_ring; /* so is the job: ranks have sessions with each other, too */
    struct gw_test_daemon top, server;
    uint16_t ports[2];
    struct gw_test_worker workers[WORLD], again[WORLD];
};

static struct fabric of_server, of_rank = {.is_ring = true};

static void start_job(const struct fabric *f, struct gw_test_worker *team)
{
    for (int rank = 0; rank < WORLD; rank++) {
        const struct gw_test_worker_cfg cfg = {
            .job = "job",
            .rank = rank,
            .world = WORLD,
            .server = f->ports[1],
            .switch_ = f->ports[0],
            .sums_in_switches = !f->is_ring,
            .count = COUNT,
            .deadline_ms = DEADLINE_MS,
        };
        gw_test_worker_start(&team[rank], &cfg);
    }
}

static void start(struct fabric *f, const uint16_t *ports)
{
    char text[64];
    memcpy(f->ports, ports, sizeof(f->ports));
    gw_test_daemon_start(&f->top, "switch", ports[0], "");
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    gw_test_daemon_start(&f->server, "server", ports[1], text);
    gw_test_daemon_await(&f->server, ": up");
    start_job(f, f->workers);
    gw_test_workers_await(f->workers, WORLD, ROUNDS);
}

static void stop(struct fabric *f, struct gw_test_worker *team)
{
    gw_test_workers_stop(team, WORLD);
    assert_int_equal(gw_test_daemon_stop(&f->server), 0);
    assert_int_equal(gw_test_daemon_stop(&f->top), 0);
}

static void away__is_not_the_others_silence(void **state)
{
    (void)state;
    const struct timespec away = {.tv_sec = AWAY_S};
    uint16_t ports[4];
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    start(&of_server, ports);
    start(&of_rank, ports + 2);
    struct gw_test_worker *stopped = &of_rank.workers[1];
    assert_int_equal(kill(of_server.server.pid, SIGSTOP), 0);
    assert_int_equal(kill(stopped->pid, SIGSTOP), 0);
    nanosleep(&away, NULL);
    assert_int_equal(kill(of_server.server.pid, SIGCONT), 0);
    start_job(&of_rank, of_rank.again);
    assert_int_equal(kill(stopped->pid, SIGCONT), 0);
    gw_test_worker_join(stopped);
    assert_int_equal(stopped->error, GRADWIRE_ERR_PEER);
    if (!strstr(stopped->text, "rank 1, which is this one"))
        fail_msg("%s", stopped->text);
    gw_test_worker_join(&of_rank.workers[0]);
    assert_string_equal(of_rank.workers[0].text, "rank 1 is lost");
    gw_test_workers_await(of_server.workers, WORLD, ROUNDS);
    gw_test_workers_await(of_rank.again, WORLD, ROUNDS);
    stop(&of_server, of_server.workers);
    stop(&of_rank, of_rank.again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(away__is_not_the_others_silence, gw_test_end_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
