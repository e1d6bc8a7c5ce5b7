/*
 * `gradwire switch` and `gradwire server` as processes, with jobs of the library over them: that
 * sums are right, that strangers stay out, that --status tells what is, and that a crash of any of
 * them costs a pause and never a wrong sum.
 */
#include "netns/processes.h"
#include "support.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gradwire.h"
#include "net/key.h"
#include "net/station/station.h"

enum {
    WORKERS = 4,
    COUNT = 60000,       /* elements: 171 fragments, so that a round takes several of them */
    DEADLINE_MS = 20000, /* of a worker's calls */
    ROUNDS = 5,
};

/* The daemons and workers of a case; static, because the logs are large. */
static struct gw_test_daemon top, leaves[2], server;
static struct gw_test_worker workers[2 * WORKERS];
static uint16_t ports[8];

static int set_up(void **state)
{
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    return 0;
}

/* Starts a switch at ports[0] and a server behind it at ports[1]. */
static void start_fabric(const char *more)
{
    char text[GW_DAEMON_CONFIG_MAX];
    gw_test_daemon_start(&top, "switch", ports[0], more);
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n%.512s", ports[0], more);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
}

/* Adds two switches below the one at ports[0], at ports[2] and ports[3]. */
static void start_leaves(void)
{
    char text[GW_DAEMON_CONFIG_MAX];
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    for (int i = 0; i < 2; i++) {
        gw_test_daemon_start(&leaves[i], "switch", ports[2 + i], text);
        gw_test_daemon_await(&leaves[i], ": up");
    }
}

static struct gw_test_worker_cfg worker_cfg(const char *job, int rank)
{
    return (struct gw_test_worker_cfg){
        .job = job,
        .rank = rank,
        .world = WORKERS,
        .server = ports[1],
        .switch_ = ports[0],
        .count = COUNT,
        .deadline_ms = DEADLINE_MS,
    };
}

/* Starts the workers of a job at the switch of ports[0]. */
static void start_job(const char *job, struct gw_test_worker *team)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(job, rank);
        gw_test_worker_start(&team[rank], &cfg);
    }
}

/* Starts the workers of a job, the first half at one leaf, the others at the other one. */
static void start_job_below(const char *job, struct gw_test_worker *team)
{
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg(job, rank);
        cfg.switch_ = ports[2 + 2 * rank / WORKERS];
        gw_test_worker_start(&team[rank], &cfg);
    }
}

static json_int_t number(const json_t *object, const char *outer, const char *inner)
{
    const json_t *value = json_object_get(outer ? json_object_get(object, outer) : object, inner);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* Fragments that the switch has added up altogether. */
static json_int_t added_up(const struct gw_test_daemon *daemon)
{
    json_t *status = gw_test_daemon_status(daemon);
    json_int_t count = number(status, "aggregation", "completed");
    json_decref(status);
    return count;
}

/* Waits until the server says of a job that it ... */
static void await_job(const char *name, const char *what)
{
    struct gw_key key;
    char text[64];
    gw_key_from_text("", 0, &key);
    snprintf(text, sizeof(text), "job %08x %s", gw_key_job(&key, name), what);
    gw_test_daemon_await(&server, text);
}

static void stop_all(void)
{
    struct gw_test_daemon *const all[] = {&server, &leaves[0], &leaves[1], &top};
    for (size_t i = 0; i < GW_COUNT_OF(all); i++)
        if (all[i]->pid)
            assert_int_equal(gw_test_daemon_stop(all[i]), 0);
}

static void daemons_sum__two_jobs_at_once(void **state)
{
    (void)state;
    start_fabric("");
    start_job("one", workers);
    start_job("two", workers + WORKERS);
    gw_test_workers_await(workers, 2 * WORKERS, ROUNDS);
    json_t *status = gw_test_daemon_status(&server);
    const json_t *jobs = json_object_get(status, "jobs");
    assert_int_equal(json_array_size(jobs), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *job = json_array_get(jobs, i);
        assert_int_equal(number(job, NULL, "workers"), WORKERS);
        assert_string_equal(json_string_value(json_object_get(job, "phase")), "runs");
        /* Nearly all was added up in the switch: the server saw sums, not gradients. */
        assert_true(number(job, NULL, "complete") > number(job, NULL, "results") / 2);
    }
    assert_string_not_equal(json_string_value(json_object_get(json_array_get(jobs, 0), "job")),
                            json_string_value(json_object_get(json_array_get(jobs, 1), "job")));
    json_decref(status);
    status = gw_test_daemon_status(&top);
    assert_int_equal(number(status, NULL, "ports"), 2 * WORKERS + 1); /* and the server */
    assert_int_equal(number(status, NULL, "jobs"), 2);
    json_decref(status);
    gw_test_workers_stop(workers, WORKERS);
    gw_test_workers_stop(workers + WORKERS, WORKERS);
    gw_test_daemon_await(&server, " ends\n");
    gw_test_daemon_await(&server, " ends\n");
    status = gw_test_daemon_status(&server);
    assert_int_equal(json_array_size(json_object_get(status, "jobs")), 0);
    json_decref(status);
    status = gw_test_daemon_status(&top);
    assert_int_equal(number(status, NULL, "jobs"), 0);
    json_decref(status);
    stop_all();
}

/* There is room for two jobs, and for more of them one after the other. */
static void daemons_sum__jobs_make_room(void **state)
{
    (void)state;
    start_fabric("jobs: 2\n");
    start_job("first", workers);
    gw_test_workers_await(workers, WORKERS, 1);
    for (int i = 0; i < 3; i++) {
        /* One that never begins: the others do not come, and it dies. */
        struct gw_test_worker_cfg cfg = worker_cfg("abandoned", i);
        gw_test_worker_start(&workers[WORKERS], &cfg);
        await_job("abandoned", "of 4 workers waits");
        /* A third one finds no room. */
        cfg = worker_cfg("third", 0);
        gw_test_worker_start(&workers[WORKERS + 1], &cfg);
        gw_test_worker_join(&workers[WORKERS + 1]);
        assert_int_equal(workers[WORKERS + 1].error, GRADWIRE_ERR_PEER);
        assert_non_null(strstr(workers[WORKERS + 1].text, "no room for the job"));
        gw_test_worker_crash(&workers[WORKERS]);
        await_job("abandoned", "ends");
        start_job("second", workers + WORKERS);
        gw_test_workers_await(workers + WORKERS, WORKERS, 1);
        gw_test_workers_stop(workers + WORKERS, WORKERS);
        await_job("second", "ends");
    }
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_sum__over_two_levels(void **state)
{
    (void)state;
    start_fabric("");
    start_leaves();
    start_job_below("tree", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    assert_true(added_up(&leaves[0]) > 0);
    assert_true(added_up(&leaves[1]) > 0);
    assert_true(added_up(&top) > 0);
    stop_all();
}

static void daemons_sum__at_a_server_alone(void **state)
{
    (void)state;
    gw_test_daemon_start(&server, "server", ports[1], "");
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg("alone", rank);
        cfg.switch_ = 0;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__switch_costs_a_pause(void **state)
{
    (void)state;
    start_fabric("");
    start_job("crash", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&top);
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    assert_true(added_up(&top) > 0); /* it is back in the tree */
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__leaf_costs_a_pause(void **state)
{
    (void)state;
    start_fabric("");
    start_leaves();
    start_job_below("crash", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&leaves[1]);
    gw_test_daemon_restart(&leaves[1]);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&top);
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    assert_true(added_up(&leaves[1]) > 0);
    assert_true(added_up(&top) > 0);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__server_costs_a_pause(void **state)
{
    (void)state;
    start_fabric("");
    start_job("crash", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&server);
    gw_test_daemon_restart(&server);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    json_t *status = gw_test_daemon_status(&server);
    const json_t *job = json_array_get(json_object_get(status, "jobs"), 0);
    assert_true(number(job, NULL, "results") > 0);
    assert_true(number(job, NULL, "complete") > 0);
    json_decref(status);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__lone_server_costs_a_pause(void **state)
{
    (void)state;
    gw_test_daemon_start(&server, "server", ports[1], "");
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg("alone", rank);
        cfg.switch_ = 0;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&server);
    gw_test_daemon_restart(&server);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__server_forgets_sums_that_overflow(void **state)
{
    (void)state;
    start_fabric("");
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg("large", rank);
        cfg.overflows = true;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&server);
    gw_test_daemon_restart(&server);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    json_t *status = gw_test_daemon_status(&server);
    const json_t *job = json_array_get(json_object_get(status, "jobs"), 0);
    assert_true(number(job, NULL, "overflowed") > 0);
    json_decref(status);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

/* Gone for so long that all have noticed: it is a longer pause. */
static void daemons_crash__absence_is_a_pause(void **state)
{
    (void)state;
    char name[64];
    start_fabric("");
    start_job("patient", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&top);
    gw_test_daemon_await(&server, ": down");
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&server);
    snprintf(name, sizeof(name), "host 127.0.0.1:%u, ", ports[1]);
    gw_test_daemon_await(&top, name); /* up */
    gw_test_daemon_await(&top, name); /* down */
    gw_test_daemon_restart(&server);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__all_of_them_at_once(void **state)
{
    (void)state;
    start_fabric("");
    start_job("crash", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_daemon_crash(&server);
    gw_test_daemon_crash(&top);
    gw_test_daemon_restart(&top);
    gw_test_daemon_restart(&server);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

static void daemons_crash__worker_ends_the_calls_of_all(void **state)
{
    (void)state;
    enum { VICTIM = 2 };
    char text[32];
    start_fabric("");
    start_job("crash", workers);
    start_job("other", workers + WORKERS);
    gw_test_workers_await(workers, 2 * WORKERS, ROUNDS);
    gw_test_worker_crash(&workers[VICTIM]);
    snprintf(text, sizeof(text), "rank %d is lost", VICTIM);
    for (int rank = 0; rank < WORKERS; rank++) {
        if (rank == VICTIM)
            continue;
        gw_test_worker_join(&workers[rank]);
        assert_int_equal(workers[rank].error, GRADWIRE_ERR_PEER);
        assert_non_null(strstr(workers[rank].text, text));
    }
    /* The other job does not notice, and the name is free again. */
    gw_test_workers_await(workers + WORKERS, WORKERS, ROUNDS);
    start_job("crash", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    gw_test_workers_stop(workers + WORKERS, WORKERS);
    stop_all();
}

static void daemons_attach__needs_the_key(void **state)
{
    (void)state;
    char ours[GW_TEST_PATH_MAX], theirs[GW_TEST_PATH_MAX], text[GW_DAEMON_CONFIG_MAX];
    gw_test_write_file(ours, "open sesame\n");
    gw_test_write_file(theirs, "open barley\n");
    snprintf(text, sizeof(text), "key_files: [%.128s]\n", ours);
    start_fabric(text);
    struct gw_test_worker_cfg cfg = worker_cfg("secret", 0);
    const char *const keys[] = {theirs, NULL};
    cfg.deadline_ms = 1000; /* who has another key cannot be told apart from anybody who says so */
    for (size_t i = 0; i < GW_COUNT_OF(keys); i++) {
        cfg.key_file = keys[i];
        gw_test_worker_start(&workers[0], &cfg);
        gw_test_worker_join(&workers[0]);
        assert_int_equal(workers[0].error, GRADWIRE_ERR_PEER);
        assert_non_null(strstr(workers[0].text, "refuses us: it does not know our key"));
    }
    /* A switch of others is no more welcome, and says why. */
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\nkey_files: [%.128s]\n", ports[0], theirs);
    gw_test_daemon_start(&leaves[0], "switch", ports[2], text);
    gw_test_daemon_await(&leaves[0], "refuses us: it does not know our key");
    for (int rank = 0; rank < WORKERS; rank++) {
        cfg = worker_cfg("secret", rank);
        cfg.key_file = ours;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
    unlink(ours);
    unlink(theirs);
}

/* A tenant's key lets hosts in, and no switch: that one could say what it likes of all jobs. Where
 * no key is named for switches, nobody is one. */
static void daemons_attach__as_a_switch_needs_its_key(void **state)
{
    (void)state;
    static const char named[] = "switch_keys: [%.128s]\nkey_files: [%.128s]\n";
    char fabric[GW_TEST_PATH_MAX], tenant[GW_TEST_PATH_MAX], text[GW_DAEMON_CONFIG_MAX];
    gw_test_write_file(fabric, "open sesame\n");
    gw_test_write_file(tenant, "open barley\n");
    snprintf(text, sizeof(text), named, fabric, tenant);
    start_fabric(text); /* the server is let in with the first key of switches */
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\nkey_files: [%.128s]\n", ports[0], tenant);
    gw_test_daemon_start(&leaves[0], "switch", ports[2], text);
    gw_test_daemon_await(&leaves[0], "refuses us: our key is not one of its switch_keys");
    gw_test_daemon_await(&top, "it says that it is a switch, without one of switch_keys");
    assert_int_equal(gw_test_daemon_stop(&leaves[0]), 0);
    for (int i = 0; i < 2; i++) {
        size_t used = (size_t)snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
        snprintf(text + used, sizeof(text) - used, named, fabric, tenant);
        gw_test_daemon_start(&leaves[i], "switch", ports[2 + i], text);
        gw_test_daemon_await(&leaves[i], ": up");
    }
    for (int rank = 0; rank < WORKERS; rank++) {
        struct gw_test_worker_cfg cfg = worker_cfg("tenant", rank);
        cfg.switch_ = ports[2 + 2 * rank / WORKERS];
        cfg.key_file = tenant;
        gw_test_worker_start(&workers[rank], &cfg);
    }
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    assert_true(added_up(&top) > 0);
    assert_int_equal(gw_test_daemon_stop(&leaves[0]), 0);
    /* A leaf without switch_keys takes no switch at all, not even with the key that it has. */
    snprintf(text, sizeof(text), "key_files: [%.128s]\n", fabric);
    gw_test_daemon_start(&leaves[0], "switch", ports[2], text);
    assert_int_equal(gw_test_daemon_stop(&leaves[1]), 0);
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\nkey_files: [%.128s]\n", ports[2], fabric);
    gw_test_daemon_start(&leaves[1], "switch", ports[3], text);
    gw_test_daemon_await(&leaves[1], "refuses us: our key is not one of its switch_keys");
    stop_all();
    unlink(fabric);
    unlink(tenant);
}

/* The server's address can be computed. With the key of a tenant nobody attaches with it, not even
 * where the server has never been seen, and is not there. */
static void daemons_attach__nobody_takes_a_servers_address(void **state)
{
    (void)state;
    char fabric[GW_TEST_PATH_MAX], tenant[GW_TEST_PATH_MAX], text[GW_DAEMON_CONFIG_MAX];
    char error[GW_NET_ERROR_MAX], name[32];
    struct gw_station *hostile;
    struct gw_neighbour_event event = {.kind = GW_NEIGHBOUR_UP};
    struct gw_key key;
    gw_test_write_file(fabric, "open sesame\n");
    gw_test_write_file(tenant, "open barley\n");
    snprintf(text, sizeof(text), "switch_keys: [%.128s]\nkey_files: [%.128s]\n", fabric, tenant);
    start_fabric(text);
    const char *said = strstr(server.log, "address ");
    assert_non_null(said);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_key_from_file(tenant, false, &key, error), 0);
    struct gw_station_cfg cfg = {
        .address = "127.0.0.1",
        .entropies = 1,
        .packets = 1024,
        .mtu = 1024,
        .peers_max = 4,
        .role = GW_ATTACH_HOST,
        .node_address = (uint32_t)strtoul(said + strlen("address "), NULL, 16),
        .keys = &key,
        .key_count = 1,
    };
    assert_int_equal(gw_station_open(&cfg, &hostile, error), 0);
    snprintf(name, sizeof(name), "127.0.0.1:%u", ports[0]);
    assert_true(gw_station_dial(hostile, name, &(struct gw_greeting){.job = 0}, error) >= 0);
    for (uint32_t i = 0; i < 1000 && event.kind != GW_NEIGHBOUR_REFUSED; i++) {
        gw_time now = gw_loop_now(gw_station_loop(hostile));
        assert_int_equal(gw_station_turn(hostile, now + 20 * GW_MS, error), 0);
        gw_station_poll(hostile, &event);
    }
    assert_int_equal(event.kind, GW_NEIGHBOUR_REFUSED);
    assert_int_equal(event.said.reason, GW_ATTACH_ROLE);
    gw_test_daemon_await(&top, "it says that it is of the fabric, without one of switch_keys");
    gw_station_close(hostile);
    gw_station_free(hostile);
    stop_all();
    unlink(fabric);
    unlink(tenant);
}

static void daemons_status__nobody_answers(void **state)
{
    (void)state;
    static struct gw_test_run run;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    const char *const arguments[] = {"switch", "--config", top.config, "--status", NULL};
    gw_test_run(&run, arguments);
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "ports"));
    assert_int_equal(gw_test_daemon_stop(&top), 0);
    gw_test_run(&run, arguments);
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, "");
    assert_non_null(strstr(run.err, "no switch answers at 127.0.0.1"));
    assert_ptr_equal(strchr(run.err, '\n'), run.err + strlen(run.err) - 1);
}

/* The socket of the status is the daemon's user's alone. What another life has left is replaced;
 * another daemon, and what is no socket, stay. */
static void daemons_status__is_not_for_others(void **state)
{
    (void)state;
    static struct gw_test_run run;
    char path[2 * GW_TEST_PATH_MAX], text[GW_DAEMON_CONFIG_MAX], config[GW_TEST_PATH_MAX];
    struct stat status;
    gw_test_daemon_start(&top, "switch", ports[0], "");
    snprintf(path, sizeof(path), "%s.sock", top.config);
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0600);
    snprintf(text, sizeof(text), "listen: 127.0.0.1:%u\nstatus: %s\n", ports[1], path);
    gw_test_write_file(config, text);
    const char *const arguments[] = {"switch", "--config", config, NULL};
    gw_test_run(&run, arguments);
    assert_int_equal(run.status, 1);
    assert_non_null(strstr(run.err, "another one is running"));
    gw_test_daemon_crash(&top);
    assert_int_equal(stat(path, &status), 0);
    gw_test_daemon_restart(&top);
    json_decref(gw_test_daemon_status(&top));
    assert_int_equal(gw_test_daemon_stop(&top), 0);
    assert_int_equal(stat(path, &status), -1);
    assert_int_equal(symlink(config, path), 0); /* as if somebody wanted the config overwritten */
    gw_test_run(&run, arguments);
    assert_int_equal(run.status, 1);
    assert_non_null(strstr(run.err, "it is no socket"));
    assert_int_equal(lstat(path, &status), 0);
    unlink(path);
    unlink(config);
}

/* Reads a whole answer of HTTP; `lines` are further ones of the request. */
static void get_with(uint16_t port, const char *path, const char *lines, char *text, size_t size)
{
    struct gw_sock_addr addr;
    char request[256];
    size_t used = 0;
    ssize_t got = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd more = {.fd = fd, .events = POLLIN};
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", port, &addr), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr.storage, addr.length), 0);
    int length = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n%s\r\n", path, lines);
    assert_int_equal(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
    while (got > 0) {
        assert_int_equal(poll(&more, 1, GW_GUARD_MS), 1);
        got = read(fd, text + used, size - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    text[used] = '\0';
    close(fd);
}

static void get(uint16_t port, const char *path, char *text, size_t size)
{
    get_with(port, path, "", text, size);
}

/* Of a server with a token; the wrong ones are as long, longer, shorter, and of another scheme. */
static void assert_asks_for_token(uint16_t port)
{
    static const char *const wrong[] = {
        "", "Authorization: Bearer sesamE\r\n", "Authorization: Bearer sesame2\r\n",
        "Authorization: Bearer \r\n", "Authorization: Basic sesame\r\n"};
    char answer[1024];
    for (size_t i = 0; i < GW_COUNT_OF(wrong); i++) {
        get_with(port, "/metrics", wrong[i], answer, sizeof(answer));
        assert_non_null(strstr(answer, " 401 "));
        assert_non_null(strstr(answer, "WWW-Authenticate: Bearer"));
        assert_null(strstr(answer, "gradwire"));
    }
}

static void daemons_metrics__follow_the_status(void **state)
{
    (void)state;
    static const char token[] = "Authorization: Bearer sesame\r\n";
    static char answer[GW_DAEMON_LOG_MAX];
    char text[GW_DAEMON_CONFIG_MAX], own[80], secret[GW_TEST_PATH_MAX];
    gw_test_write_file(secret, "sesame\n");
    snprintf(text, sizeof(text), "metrics: %u\n", ports[5]); /* of the loopback */
    gw_test_daemon_start(&top, "switch", ports[0], text);
    snprintf(text, sizeof(text),
             "switch: 127.0.0.1:%u\nmetrics: 127.0.0.1:%u\nmetrics_token_file: %s\n", ports[0],
             ports[4], secret);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, "metrics are at");
    assert_asks_for_token(ports[4]);
    get_with(ports[4], "/nothing", token, answer, sizeof(answer));
    assert_non_null(strstr(answer, " 404 "));
    start_job("watched", workers);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    json_t *status = gw_test_daemon_status(&server);
    const json_t *job = json_array_get(json_object_get(status, "jobs"), 0);
    snprintf(text, sizeof(text), "\ngradwire_server_jobs_workers{job=\"%s\"} %d\n",
             json_string_value(json_object_get(job, "job")), WORKERS);
    const json_t *tenant = json_array_get(json_object_get(status, "tenants"), 0);
    snprintf(own, sizeof(own), "\ngradwire_server_tenants_jobs{key=\"%s\"} 1\n",
             json_string_value(json_object_get(tenant, "key")));
    json_decref(status);
    /* The snapshot is renewed now and then: the job is in one of them, with all workers. */
    do
        get_with(ports[4], "/metrics", token, answer, sizeof(answer));
    while (!strstr(answer, text) || !strstr(answer, "\ngradwire_server_neighbours 4\n"));
    assert_non_null(strstr(answer, " 200 "));
    assert_non_null(strstr(answer, "\ngradwire_server_datagrams_received "));
    assert_non_null(strstr(answer, own));
    do
        get(ports[5], "/metrics", answer, sizeof(answer));
    while (!strstr(answer, "\ngradwire_switch_queues_losses_shed{class=\"7\"} 0\n"));
    assert_non_null(strstr(answer, "\ngradwire_switch_queues_losses_drops{class=\"0\"} 0\n"));
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
    unlink(secret);
}

/* Without a token they tell of no key and no job: not its number, not its epoch, not how many
 * workers of which it has. */
static void daemons_metrics__tell_strangers_of_no_job(void **state)
{
    (void)state;
    static char answer[GW_DAEMON_LOG_MAX];
    char text[GW_DAEMON_CONFIG_MAX];
    snprintf(text, sizeof(text), "metrics: %u\n", ports[4]);
    gw_test_daemon_start(&server, "server", ports[1], text);
    for (int i = 0; i < 2; i++) {
        struct gw_test_worker_cfg cfg = worker_cfg(i ? "other" : "watched", 0);
        cfg.switch_ = 0;
        cfg.world = 1;
        gw_test_worker_start(&workers[i], &cfg);
    }
    do
        get(ports[4], "/metrics", answer, sizeof(answer));
    while (!strstr(answer, "\ngradwire_server_jobs_workers 2\n"));
    assert_non_null(strstr(answer, "\ngradwire_server_tenants_jobs 2\n"));
    assert_null(strstr(answer, "job="));
    assert_null(strstr(answer, "key="));
    assert_null(strstr(answer, "epoch "));
    gw_test_workers_stop(workers, 1);
    gw_test_workers_stop(workers + 1, 1);
    stop_all();
}

static void daemons_stop__waits_for_neighbours(void **state)
{
    (void)state;
    start_fabric("drain: 50ms\n");
    start_job("drain", workers);
    gw_test_workers_await(workers, WORKERS, 1);
    /* They do not leave: the time is over, and the rest is as in a crash. */
    assert_int_equal(gw_test_daemon_stop(&top), 0);
    assert_non_null(strstr(top.log, "SIGTERM"));
    gw_test_daemon_restart(&top);
    gw_test_workers_await(workers, WORKERS, ROUNDS);
    gw_test_workers_stop(workers, WORKERS);
    stop_all();
}

/* Bad input: exit status 2, and one line that names what is wrong. */
static const struct {
    const char *kind, *text, *says;
} bad_configs[] = {
    {"switch", "lisent: 127.0.0.1:1\n", ":1: lisent"},
    {"switch", "listen: 127.0.0.1:1\nports: many\n", ":2: ports"},
    {"switch", "ports: 0\n", ":1: ports"},
    {"switch", "queue: 64MiB\n", ":1: queue: unknown"},
    {"switch", "listen: 127.0.0.1:1\nqueue: trim\n", ":2: queue: without a rate nothing waits"},
    {"switch", "rate: 1Gbps\nqueue: {capacity: 1KiB}\n", ":2: queue.capacity: capacity is"},
    {"switch", "rate: 1Gbps\nqueue: {capacity: 1bdp}\n", ":2: queue.capacity"},
    {"switch", "rate: 1Gbps\nqueue: {kind: red, kmax: much}\n", ":2: queue.kmax"},
    {"switch", "rate: 1Gbps\nqueue: {kind: red, lossless: yes}\n", ":2: queue.lossless"},
    {"switch", "rate: 1Gbps\nqueue: {kind: dlcp, limits: [1KB, 1us]}\n", ":2: queue.limits"},
    {"switch", "rate: 1Gbps\nqueue: {kind: dlcp, thresholds: [1, 1, 1, 1, 1, 1, 1, 1]}\n",
     ":2: queue.thresholds: value out of range"},
    {"switch", "rate: 1Gbps\nqueue: {kind: dlcp, step: -1}\n", ":2: queue.step: below"},
    {"switch", "rate: 1Gbps\nqueue: {kind: dlcp, thresholds: [9KB], threshold: 9KB}\n",
     ":2: queue.threshold: says nothing beside thresholds"},
    {"switch", "rate: 1Gbps\nqueue: {kind: dlcp, limits: [9KB]}\n", ":2: queue.limits: no queue"},
    {"switch", "values: 7\n", ":1: values"},
    {"switch", "jobs: 65\n", ":1: jobs"},
    {"switch", "aggregators: 0\n", ":1: aggregators"},
    {"switch", "listen: nowhere\n", ":1: listen"},
    {"switch", "switch: nowhere\n", ":1: switch"},
    {"switch", "rate: fast\n", ":1: rate"},
    {"switch", "metrics: here\n", ":1: metrics"},
    {"switch", "metrics: 9\nmetrics_token_file: /nonexistent/token\n", ":2: metrics_token_file"},
    {"switch", "multicast: 10.0.0.1:9\n", ":1: multicast: 10.0.0.1:9 is no multicast address"},
    {"switch", "multicast: '[ff02::5]:9'\n", ":1: multicast: [ff02::5]:9 is no multicast"},
    {"switch", "multicast: 239.1.1.1\n", ":1: multicast: not HOST:PORT"},
    {"switch", "authenticate: yes\nmulticast: 239.1.1.1:9\n", ":2: multicast: authentication"},
    {"switch", "encrypt: yes\nmulticast: 239.1.1.1:9\n", ":2: multicast: encryption"},
    {"server", "switch: 127.0.0.1:1\nmulticast: 239.1.1.1:9\n", ":2: multicast: this server"},
    {"switch", "authenticate: yes\n", ":1: authenticate: needs `key_files`"},
    {"switch", "encrypt: yes\n", ":1: encrypt: needs `key_files`"},
    {"switch", "key_files: [/nonexistent/key]\n", ":1: key_files"},
    {"switch", "key_files: /nonexistent/key\n", ":1: key_files"},
    {"server", "switch_keys: [/nonexistent/key]\n", ":1: switch_keys"},
    {"switch", "switch_keys: []\n", ":1: switch_keys: expected a list of 1 to 16 key files"},
    {"switch", "window: 64\n", ":1: window"},
    {"server", "listen: 127.0.0.1:1\nwindow: 100\n", ":2: window"},
    {"server", "switch: nowhere\n", ":1: switch"},
    {"server", "queue: red\n", ":1: queue"},
    {"server", "- a\n- b\n", ":1: expected a map of keys and values"},
    {"switch", "", ":1: expected a map of keys and values"},
    /* Names that keys had once. */
    {"server", "keys: [a]\n", ":1: keys: is called key_files now"},
    {"switch", "uplink: 127.0.0.1:1\n", ":1: uplink: is called switch now"},
    {"switch", "queue_bytes: 1MiB\n", ":1: queue_bytes: is called queue.capacity now"},
    {"switch", "pcn_floor: 5\n", ":1: pcn_floor: is called pcn.floor now"},
    {"switch", "pcn_hold: 5ms\n", ":1: pcn_hold: is called pcn.hold now"},
    {"switch", "pcn_share: 5%\n", ":1: pcn_share: is called pcn.share now"},
};

static void daemons_config__names_what_is_wrong(void **state)
{
    (void)state;
    static struct gw_test_run run;
    char path[GW_TEST_PATH_MAX], says[2 * GW_TEST_PATH_MAX];
    for (size_t i = 0; i < GW_COUNT_OF(bad_configs); i++) {
        const char *const arguments[] = {bad_configs[i].kind, "--config", path, NULL};
        gw_test_write_file(path, bad_configs[i].text);
        snprintf(says, sizeof(says), "%s%s", path, bad_configs[i].says);
        gw_test_run(&run, arguments);
        if (run.status != 2 || !strstr(run.err, says))
            fail_msg("%s with '%s': status %d: %s", bad_configs[i].kind, bad_configs[i].text,
                     run.status, run.err);
        assert_ptr_equal(strchr(run.err, '\n'), run.err + strlen(run.err) - 1);
        unlink(path);
    }
    const char *const missing[] = {"switch", "--config", "/nonexistent/file.yaml", NULL};
    gw_test_run(&run, missing);
    assert_int_equal(run.status, 2);
    assert_non_null(strstr(run.err, "/nonexistent/file.yaml"));
    const char *const none[] = {"server", NULL};
    gw_test_run(&run, none);
    assert_int_equal(run.status, 2);
    assert_non_null(strstr(run.err, "--config"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, gw_test_end_all)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(daemons_sum__two_jobs_at_once),
        CASE(daemons_sum__jobs_make_room),
        CASE(daemons_sum__over_two_levels),
        CASE(daemons_sum__at_a_server_alone),
        CASE(daemons_crash__switch_costs_a_pause),
        CASE(daemons_crash__leaf_costs_a_pause),
        CASE(daemons_crash__server_costs_a_pause),
        CASE(daemons_crash__lone_server_costs_a_pause),
        CASE(daemons_crash__server_forgets_sums_that_overflow),
        CASE(daemons_crash__absence_is_a_pause),
        CASE(daemons_crash__all_of_them_at_once),
        CASE(daemons_crash__worker_ends_the_calls_of_all),
        CASE(daemons_attach__needs_the_key),
        CASE(daemons_attach__as_a_switch_needs_its_key),
        CASE(daemons_attach__nobody_takes_a_servers_address),
        CASE(daemons_status__nobody_answers),
        CASE(daemons_metrics__follow_the_status),
        CASE(daemons_metrics__tell_strangers_of_no_job),
        CASE(daemons_status__is_not_for_others),
        CASE(daemons_stop__waits_for_neighbours),
        CASE(daemons_config__names_what_is_wrong),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
