/*
 * Results by multicast, with daemons and workers as processes on loopback, which multicasts like a
 * network: sums are right, what is saved is counted, and where nobody hears the group, or no
 * longer, all goes on as without it.
 */
#include "netns/processes.h"
#include "support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

enum {
    WORKERS = 3,
    COUNT = 60000,
    DEADLINE_MS = 20000,
    ROUNDS = 5,
    GROUPS = 4, /* `jobs` of the switch */
};

static struct gw_test_daemon sw, server;
static struct gw_test_worker workers[2][WORKERS];
static uint16_t ports[3]; /* of the switch, the server and the groups */

static int set_up(void **state)
{
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gw_test_end_all();
    return 0;
}

static void start_fabric(void)
{
    char text[GW_DAEMON_CONFIG_MAX];
    snprintf(text, sizeof(text), "multicast: 239.77.1.254:%u\njobs: %d\n", ports[2], GROUPS);
    gw_test_daemon_start(&sw, "switch", ports[0], text);
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
}

static void start_job(const char *job, struct gw_test_worker *team)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = {
            .job = job,
            .rank = rank,
            .world = WORKERS,
            .server = ports[1],
            .switch_ = ports[0],
            .count = COUNT,
            .deadline_ms = DEADLINE_MS,
        };
        gw_test_worker_start(&team[rank], &cfg);
    }
}

static void await_hearing(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        gw_test_daemon_await(&sw, "results come by multicast");
}

static json_int_t copies_saved(void)
{
    json_t *status = gw_test_daemon_status(&sw);
    const json_t *saved = json_object_get(json_object_get(status, "aggregation"), "copies_saved");
    assert_true(json_is_integer(saved));
    json_int_t count = json_integer_value(saved);
    json_decref(status);
    return count;
}

/* Copies that the switch saves in so many rounds of all-reduce. */
static json_int_t saved_in(struct gw_test_worker *team, uint32_t rounds)
{
    json_int_t before = copies_saved();
    gw_test_workers_await(team, WORKERS, rounds);
    return copies_saved() - before;
}

static void stop_all(void)
{
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&sw), 0);
}

/* Each job has a group of its own; what one's workers hear the other's do not see. */
static void multicast__saves_copies_for_each_job(void **state)
{
    (void)state;
    start_fabric();
    start_job("left", workers[0]);
    await_hearing(WORKERS);
    assert_true(saved_in(workers[0], ROUNDS) > 0);
    start_job("right", workers[1]);
    await_hearing(WORKERS);
    gw_test_workers_stop(workers[0], WORKERS);
    assert_true(saved_in(workers[1], ROUNDS) > 0);
    gw_test_workers_stop(workers[1], WORKERS);
    stop_all();
}

static void multicast__comes_back_with_the_switch(void **state)
{
    (void)state;
    start_fabric();
    start_job("crash", workers[0]);
    await_hearing(WORKERS);
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    gw_test_daemon_crash(&sw);
    gw_test_daemon_restart(&sw);
    await_hearing(WORKERS);
    assert_true(saved_in(workers[0], ROUNDS) > 0);
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
}

/* Somebody else has the ports of all groups for himself: no worker can listen. */
static void multicast__is_not_needed(void **state)
{
    (void)state;
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_port = htons(ports[2])};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&taken, sizeof(taken)), 0);
    start_fabric();
    start_job("deaf", workers[0]);
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    assert_int_equal(saved_in(workers[0], ROUNDS), 0);
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
    close(fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(multicast__saves_copies_for_each_job),
        CASE(multicast__comes_back_with_the_switch),
        CASE(multicast__is_not_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
