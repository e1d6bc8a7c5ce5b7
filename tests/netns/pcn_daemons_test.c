/*
 * Bursts that are announced, between real processes: notices, answers and heads pass `gradwire
 * switch`, and its counters say so; where it makes no room, its status says why; and workers of one
 * job that announce differently are refused. Nothing here asserts how fast anything is.
 */
#define _GNU_SOURCE /* unshare() */
#include "netns/processes.h"
#include "support.h"

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gradwire.h"

enum {
    WORKERS = 3,
    COUNT = 20000,
    ROUNDS = 5,
    DEADLINE_MS = 20000,
};

/* Of a switch for which no announcement grows old before its head comes, however slow we are. */
#define PATIENT "rate: 500Mbps\nqueue: red\npcn: {hold: 10s}\n"

static struct gw_test_daemon sw, server;
static struct gw_test_worker workers[WORKERS];
static uint16_t ports[3]; /* of the switch, the server and rank 0 */

static int set_up(void **state)
{
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    return 0;
}

/* A switch whose config has these lines more, and a server behind it. */
static void start_fabric(const char *more, const char *both)
{
    char text[GW_DAEMON_CONFIG_MAX];
    snprintf(text, sizeof(text), "%s%s", more, both);
    gw_test_daemon_start(&sw, "switch", ports[0], text);
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n%s", ports[0], both);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
}

static struct gw_test_worker_cfg worker_cfg(int rank, const char *announce)
{
    return (struct gw_test_worker_cfg){
        .job = "bursts",
        .rank = rank,
        .world = WORKERS,
        .server = ports[1],
        .switch_ = ports[0],
        .count = COUNT,
        .announce = announce,
        .deadline_ms = DEADLINE_MS,
    };
}

/* Runs a job to its end; a ring, or one that the switch adds up. */
static void run_job(bool is_ring, const char *announce, const char *signals)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank, announce);
        cfg.join = is_ring ? ports[2] : 0;
        cfg.signals = signals;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    for (int rank = 0; rank < WORKERS; rank++)
        assert_int_equal(workers[rank].error, GRADWIRE_OK);
}

static json_int_t number(const json_t *pcn, const char *name)
{
    const json_t *value = json_object_get(pcn, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* What the switch says of bursts; the caller's. */
static json_t *pcn_of_switch(void)
{
    json_t *status = gw_test_daemon_status(&sw);
    json_t *pcn = json_incref(json_object_get(status, "pcn"));
    json_decref(status);
    assert_non_null(pcn);
    return pcn;
}

static void stop_all(void)
{
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&sw), 0);
}

/* All jobs have left, so every book is closed: what was announced came, or was given up. */
static void assert_announced(json_int_t before, json_int_t heads)
{
    json_t *pcn = pcn_of_switch();
    assert_true(json_is_true(json_object_get(pcn, "active")));
    assert_true(number(pcn, "notices") > before);
    assert_true(number(pcn, "heads") >= heads && number(pcn, "bursts") > 0);
    assert_int_equal(number(pcn, "notices"), number(pcn, "repeated") + number(pcn, "refused") +
                                                 number(pcn, "no_room") + number(pcn, "heads") +
                                                 number(pcn, "recoveries") + number(pcn, "moved") +
                                                 number(pcn, "dropped") + number(pcn, "open"));
    /* Four times what hosts take, 1 ms, and a full queue, 8 ms. */
    assert_true(number(pcn, "hold_us") >= 36000);
    json_decref(pcn);
}

static void pcn_switch__sees_notices_and_heads(void **state)
{
    (void)state;
    start_fabric(PATIENT, "");
    json_t *pcn = pcn_of_switch();
    assert_int_equal(number(pcn, "notices"), 0);
    assert_int_equal(number(pcn, "hold_us"), 10000000);
    json_decref(pcn);
    run_job(false, "10", NULL);
    assert_announced(0, 1);
    pcn = pcn_of_switch();
    json_int_t before = number(pcn, "notices"), came = number(pcn, "heads");
    json_decref(pcn);
    run_job(true, "1/4", NULL);
    assert_announced(before, came + 1);
    pcn = pcn_of_switch();
    before = number(pcn, "notices");
    json_decref(pcn);
    run_job(true, "no", NULL);
    pcn = pcn_of_switch();
    assert_int_equal(number(pcn, "notices"), before);
    json_decref(pcn);
    stop_all();
}

/* The same by IPv4 options: the DSCP of no packet says anything of bursts. */
static void pcn_switch__sees_them_as_options(void **state)
{
    (void)state;
    start_fabric(PATIENT, "signals: option\n");
    run_job(false, "10", "option");
    assert_announced(0, 1);
    stop_all();
}

/* A switch that understands options takes the DSCP, too. Its hold is measured, so heads may be
 * late. */
static void pcn_switch__understands_both(void **state)
{
    (void)state;
    start_fabric("rate: 500Mbps\nqueue: red\n", "signals: option\n");
    run_job(true, "10", "dscp");
    assert_announced(0, 0);
    stop_all();
}

static void pcn_switch__says_why_it_makes_no_room(void **state)
{
    (void)state;
    static const struct {
        const char *more, *why;
    } cases[] = {
        {"", "without a rate nothing waits at the ports"},
        {"rate: 500Mbps\n", "the queue does not mark by its length"},
        {"rate: 500Mbps\nqueue: {kind: red, mark: off}\n", "the queue does not mark by its length"},
        {"rate: 500Mbps\nqueue: red\npcn: {enable: no}\n", "the config says pcn.enable: no"},
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        start_fabric(cases[i].more, "");
        run_job(false, "10", NULL);
        json_t *pcn = pcn_of_switch();
        assert_true(json_is_false(json_object_get(pcn, "active")));
        assert_string_equal(json_string_value(json_object_get(pcn, "why")), cases[i].why);
        json_decref(pcn);
        stop_all();
    }
}

/* Rank 2 brings another option: it is told so, and who is in the job goes nowhere without it. */
static void refuse_another(bool is_ring)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(rank, rank == 2 ? "15" : "10");
        cfg.join = is_ring ? ports[2] : 0;
        cfg.deadline_ms = 3000;
        if (rank == 2)
            usleep(300000); /* it comes last: whose option counts is not a matter of luck */
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_worker_join(&workers[2]);
    assert_int_equal(workers[2].error, GRADWIRE_ERR_PEER);
    if (!strstr(workers[2].text, "announce"))
        fail_msg("rank 2 is told: %s", workers[2].text);
    for (int rank = 0; rank < 2; rank++)
        gw_test_worker_crash(&workers[rank]);
}

static void pcn_job__announces_in_one_way(void **state)
{
    (void)state;
    start_fabric("", "");
    refuse_another(false);
    refuse_another(true);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&sw), 0);
}

static void pcn_config__names_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *key;
    } cases[] = {
        {"pcn: maybe\n", ":1: pcn: expected a map"},
        {"pcn:\n  enable: maybe\n", ":2: pcn.enable"},
        {"pcn: {hold: 1us}\n", "pcn.hold: expected a time from 1ms to 10s"},
        {"pcn: {share: 120%}\n", "pcn.share"},
        {"pcn: {floor: 0}\n", "pcn.floor"},
        {"pcn: {floor: 76}\n", "pcn.floor"},
        {"pcn: {jobs: 257}\n", "pcn.jobs"},
        {"pcn: {announcements: 0}\n", "pcn.announcements"},
        {"pcn: {save: 1000000s}\n", "pcn.save"},
        {"pcn: {lead: 1ms}\n", "pcn.lead: unknown key"},
        {"signals: ttl\n", "signals"},
        {"listen: '[::1]:4791'\nsignals: option\n", "signals: an option is one of IPv4"},
    };
    static struct gw_test_run run;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char path[] = "/tmp/gradwire_pcn_XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, cases[i].lines, strlen(cases[i].lines)), strlen(cases[i].lines));
        close(fd);
        const char *const arguments[] = {"switch", "--config", path, NULL};
        gw_test_run(&run, arguments);
        unlink(path);
        assert_int_equal(run.status, 2);
        if (!strstr(run.err, cases[i].key))
            fail_msg("%s: %s", cases[i].lines, run.err);
    }
}

/* Options of the IP header need rights that one has in a namespace of one's own. */
static void enter_namespace(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    assert_int_equal(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)), 0);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, gw_test_end_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pcn_switch__sees_notices_and_heads), CASE(pcn_switch__sees_them_as_options),
        CASE(pcn_switch__understands_both),       CASE(pcn_switch__says_why_it_makes_no_room),
        CASE(pcn_job__announces_in_one_way),      CASE(pcn_config__names_what_is_wrong),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
