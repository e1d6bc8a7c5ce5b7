/*
 * Results by multicast, with daemons and workers as processes on loopback, which multicasts like a
 * network: sums are right, what is saved is counted, and where nobody hears the group, or no
 * longer, or not all that is sent to it, all goes on as without it.
 */
#define _GNU_SOURCE /* syscall() */
#include "netns/processes.h"
#include "support.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/key.h"
#include "net/udp/sock.h"
#include "wire/wire.h"

enum {
    WORKERS = 3,
    COUNT = 60000,
    DEADLINE_MS = 20000,
    ROUNDS = 5,
    GROUPS = 4, /* `jobs` of the switch */
    TRAIN_BYTES_MAX = 65536,
};

static struct gw_test_daemon sw, server; /* or sw is another server */
static struct gw_test_daemon *adder;     /* whichever adds up, and multicasts */
static struct gw_test_worker workers[2][WORKERS];
static uint16_t ports[3]; /* of the switch, the server and the groups */

static bool loses_results; /* workers that start now hear of a group its probes alone */

static bool is_result(int fd, const struct msghdr *msg, ssize_t size)
{
    struct sockaddr_in at = {.sin_family = AF_UNSPEC};
    socklen_t length = sizeof(at);
    return size > 0 && getsockname(fd, (struct sockaddr *)&at, &length) == 0 &&
           at.sin_family == AF_INET && IN_MULTICAST(ntohl(at.sin_addr.s_addr)) &&
           !gw_attach_is(msg->msg_iov[0].iov_base, (uint32_t)size);
}

/* Stands before the C library's function of that name, as a network with a filter. */
ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    const struct msghdr before = *msg;
    ssize_t size;
    while ((size = syscall(SYS_recvmsg, fd, msg, flags)) > 0 && loses_results &&
           is_result(fd, msg, size))
        *msg = before;
    return size;
}

static int set_up(void **state)
{
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
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
    adder = &sw;
}

static void start_job(const char *job, struct gw_test_worker *team, bool has_two_servers)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = {
            .job = job,
            .rank = rank,
            .world = WORKERS,
            .server = ports[1],
            .more_server = has_two_servers ? ports[0] : 0,
            .switch_ = adder == &sw && !has_two_servers ? ports[0] : 0,
            .count = COUNT,
            .deadline_ms = DEADLINE_MS,
        };
        gw_test_worker_start(&team[rank], &cfg);
    }
}

static uint32_t number_of(const char *job)
{
    struct gw_key key;
    gw_key_from_text("", 0, &key);
    return gw_key_job(&key, job);
}

/* All workers of the job hear its group, in whatever order they say so. */
static void await_hearing(const char *job)
{
    char text[64];
    snprintf(text, sizeof(text), "job %08x rank", number_of(job));
    for (int i = 0; i < WORKERS; i++) {
        gw_test_daemon_await(adder, text);
        gw_test_daemon_await(adder, "results come by multicast");
    }
}

/* Somebody who listens to a group beside the workers. */
static int open_spy(const char *group)
{
    struct gw_sock_addr addr, loopback;
    assert_int_equal(gw_sock_addr_parse(group, ports[2], &addr), 0);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", ports[0], &loopback), 0);
    assert_true(gw_sock_addr_reach_by(&addr, &loopback, &loopback));
    int fd = gw_sock_open_group(&addr, 0);
    assert_true(fd >= 0);
    return fd;
}

/* One train of what a spy has heard; its bytes, and in `segment` the length of each datagram. */
static uint32_t listen_in(int spy, uint8_t *bytes, uint32_t *segment)
{
    _Alignas(struct cmsghdr) char control[GW_SOCK_CONTROL_SIZE];
    struct iovec iov = {bytes, TRAIN_BYTES_MAX};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    struct gw_sock_news news = {0};
    ssize_t size = recvmsg(spy, &msg, MSG_DONTWAIT);
    if (size <= 0)
        return 0;
    gw_sock_read_control(&msg, &news);
    *segment = news.segment ? news.segment : (uint32_t)size;
    return (uint32_t)size;
}

/* Closes the spy; how many results it has heard. All must be of this job. */
static uint32_t heard_of(int spy, const char *job)
{
    static uint8_t bytes[TRAIN_BYTES_MAX];
    uint32_t size, segment, count = 0;
    while ((size = listen_in(spy, bytes, &segment)) > 0) {
        for (uint32_t at = 0; at < size; at += segment) {
            uint32_t length = size - at < segment ? size - at : segment;
            struct gw_wire_hdr hdr;
            if (gw_attach_is(bytes + at, length))
                continue;
            assert_int_equal(gw_wire_decode(bytes + at, length, &hdr), 0);
            assert_int_equal(hdr.kind, GW_WIRE_PARAM);
            assert_int_equal(hdr.flow, number_of(job));
            count++;
        }
    }
    close(spy);
    return count;
}

static json_int_t copies_saved(void)
{
    json_t *status = gw_test_daemon_status(adder);
    const json_t *at_switch = json_object_get(status, "aggregation");
    const json_t *saved = json_object_get(at_switch ? at_switch : status, "copies_saved");
    assert_true(json_is_integer(saved));
    json_int_t count = json_integer_value(saved);
    json_decref(status);
    return count;
}

/* Copies that whoever adds up saves in so many rounds of all-reduce. */
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
    int spies[2] = {open_spy("239.77.1.254"), open_spy("239.77.1.255")};
    start_job("left", workers[0], false);
    await_hearing("left");
    assert_true(saved_in(workers[0], ROUNDS) > 0);
    start_job("right", workers[1], false);
    await_hearing("right");
    gw_test_workers_await(workers[1], WORKERS, ROUNDS); /* both at once */
    gw_test_workers_stop(workers[0], WORKERS);
    assert_true(saved_in(workers[1], ROUNDS) > 0);
    gw_test_workers_stop(workers[1], WORKERS);
    stop_all();
    assert_true(heard_of(spies[0], "left") > 0);
    assert_true(heard_of(spies[1], "right") > 0);
}

static void multicast__comes_back_with_the_switch(void **state)
{
    (void)state;
    start_fabric();
    start_job("crash", workers[0], false);
    await_hearing("crash");
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    gw_test_daemon_crash(&sw);
    gw_test_daemon_restart(&sw);
    await_hearing("crash");
    assert_true(saved_in(workers[0], ROUNDS) > 0);
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
}

/* Groups that the config does not name are chosen, unless it says that there are to be none. */
static void multicast__needs_no_word_in_the_config(void **state)
{
    (void)state;
    gw_test_daemon_start(&server, "server", ports[1], "");
    adder = &server;
    start_job("default", workers[0], false);
    await_hearing("default");
    assert_true(saved_in(workers[0], ROUNDS) > 0);
    gw_test_workers_stop(workers[0], WORKERS);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
}

/* Sums are of two servers in turns, and each has a group of its own. */
static void multicast__is_of_each_server(void **state)
{
    (void)state;
    struct gw_test_daemon *const both[2] = {&server, &sw};
    json_int_t before[2];
    gw_test_daemon_start(&server, "server", ports[1], "");
    gw_test_daemon_start(&sw, "server", ports[0], "");
    start_job("twice", workers[0], true);
    for (int i = 0; i < 2; i++) {
        adder = both[i];
        for (int rank = 0; rank < WORKERS; rank++)
            gw_test_daemon_await(adder, "results come by multicast");
        before[i] = copies_saved();
    }
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    for (int i = 0; i < 2; i++) {
        adder = both[i];
        assert_true(copies_saved() > before[i]);
    }
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
}

/* Waits until somebody who listens hears a result. */
static void await_result(int spy)
{
    static uint8_t bytes[TRAIN_BYTES_MAX];
    struct pollfd waits = {.fd = spy, .events = POLLIN};
    uint32_t segment, size;
    do {
        assert_int_equal(poll(&waits, 1, DEADLINE_MS), 1);
        size = listen_in(spy, bytes, &segment);
    } while (size == 0 || gw_attach_is(bytes, size < segment ? size : segment));
}

/* A job without a server: rank 0 adds up, and multicasts. A rank that is to hear nothing has its
 * own copies. */
static void start_joined(uint32_t count, uint32_t threads)
{
    char group[32];
    snprintf(group, sizeof(group), "239.77.1.254:%u", ports[2]);
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = {
            .job = "joined",
            .rank = rank,
            .world = WORKERS,
            .join = ports[1],
            .sums_in_switches = true,
            .multicast = rank == WORKERS - 1 ? "none" : group,
            .count = count,
            .deadline_ms = DEADLINE_MS,
            .threads = threads,
        };
        gw_test_worker_start(&workers[0][rank], &cfg);
    }
}

static void multicast__is_rank_0s_where_there_is_no_server(void **state)
{
    (void)state;
    int spy = open_spy("239.77.1.254");
    start_joined(COUNT, 1);
    await_result(spy);
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    gw_test_workers_stop(workers[0], WORKERS);
    assert_true(heard_of(spy, "joined") > 0);
}

/* As many groups as threads, one address after the other. */
static void multicast__is_of_each_thread(void **state)
{
    (void)state;
    int spies[2] = {open_spy("239.77.1.254"), open_spy("239.77.1.255")};
    start_joined(10 * COUNT, GW_COUNT_OF(spies)); /* large enough that it is cut */
    for (size_t i = 0; i < GW_COUNT_OF(spies); i++) {
        await_result(spies[i]);
        close(spies[i]);
    }
    gw_test_workers_await(workers[0], WORKERS, 1);
    gw_test_workers_stop(workers[0], WORKERS);
}

/* Whether such a daemon with these lines in its config begins to multicast. */
static bool multicasts(const char *kind, const char *more)
{
    gw_test_daemon_start(&server, kind, ports[1], more);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    return strstr(server.log, "results are multicast") != NULL;
}

static void multicast__is_not_for_all(void **state)
{
    (void)state;
    char text[GW_DAEMON_CONFIG_MAX], keys[2][GW_TEST_PATH_MAX];
    gw_test_write_file(keys[0], "the key of one tenant, long enough");
    gw_test_write_file(keys[1], "and that of somebody else, as long");
    assert_true(multicasts("server", ""));
    assert_false(multicasts("server", "multicast: none\n"));
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    assert_false(multicasts("server", text));
    assert_false(multicasts("switch", ""));
    snprintf(text, sizeof(text), "key_files: [%.128s]\n", keys[0]);
    assert_true(multicasts("server", text));
    snprintf(text, sizeof(text), "key_files: [%.128s]\nauthenticate: yes\n", keys[0]);
    assert_false(multicasts("server", text));
    snprintf(text, sizeof(text), "key_files: [%.128s, %.128s]\n", keys[0], keys[1]);
    assert_false(multicasts("server", text));
    unlink(keys[0]);
    unlink(keys[1]);
}

/* Somebody else has the ports of all groups for himself: no worker can listen. */
static void multicast__is_not_needed(void **state)
{
    (void)state;
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_port = htons(ports[2])};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&taken, sizeof(taken)), 0);
    start_fabric();
    start_job("deaf", workers[0], false);
    gw_test_workers_await(workers[0], WORKERS, ROUNDS);
    assert_int_equal(saved_in(workers[0], ROUNDS), 0);
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
    close(fd);
}

/* Probes alone arrive, so all workers say that they hear; then they find out. */
static void multicast__is_given_up_when_results_do_not_come(void **state)
{
    (void)state;
    start_fabric();
    loses_results = true;
    start_job("filtered", workers[0], false);
    loses_results = false;
    for (int i = 0; i < WORKERS; i++)
        gw_test_daemon_await(&sw, "results come by unicast again");
    assert_int_equal(saved_in(workers[0], ROUNDS), 0);
    gw_test_workers_stop(workers[0], WORKERS);
    stop_all();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, gw_test_end_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(multicast__saves_copies_for_each_job),
        CASE(multicast__comes_back_with_the_switch),
        CASE(multicast__needs_no_word_in_the_config),
        CASE(multicast__is_of_each_server),
        CASE(multicast__is_rank_0s_where_there_is_no_server),
        CASE(multicast__is_of_each_thread),
        CASE(multicast__is_not_for_all),
        CASE(multicast__is_not_needed),
        CASE(multicast__is_given_up_when_results_do_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
