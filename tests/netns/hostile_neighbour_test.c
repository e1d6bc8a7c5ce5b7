/*
 * A tenant with a listed key beside a job of another key, at daemons that run as processes. He has
 * sessions of his own, as a rank of his job and as a host of none, at the job's switch and straight
 * at its server, and knows all but the key: the job's number and epoch, and every address. He comes
 * first with the number, and then sends well-formed packets of all kinds, also in the name of
 * others, while the job reduces. Every sum is checked, no epoch ends, and what a host may not say
 * is counted as forbidden, by the daemon that it was said to.
 */
#include "netns/processes.h"
#include "stranger.h"
#include "support.h"

#include <stdio.h>
#include <unistd.h>

#include "core/job.h"
#include "net/key.h"
#include "net/station/station.h"

enum {
    RANKS = 2,
    COUNT = 30000, /* elements: 86 fragments */
    DEADLINE_MS = 20000,
    STEPS = 4,          /* in each of which a round ends */
    STEP_PKTS = 250,    /* of each session of the tenant */
    TURNS_MAX = 100000, /* of the tenant: what has not happened by then does not */
    LOOKS_MAX = 500,    /* at a status */
    MTU = 1408,         /* values of a whole fragment */
    PKTS = 512,
};

/* The sessions of the tenant; the others are at the switch. */
enum {
    RANK_AT_SWITCH,
    HOST_AT_SWITCH,
    RANK_AT_SERVER,
    HOST_AT_SERVER,
    SESSIONS,
    PLACES = SESSIONS, /* of a switch with few of them */
};

struct tenant {
    struct gw_station *station;
    struct gw_stranger stranger;
    struct gw_neighbour_event last;
    bool has_news;
};

static struct gw_test_daemon top, server;
static struct gw_test_worker ranks[RANKS];
static struct tenant tenants[PLACES + 1];
static uint16_t ports[2];
static char fabric[GW_TEST_PATH_MAX], blue[GW_TEST_PATH_MAX], green[GW_TEST_PATH_MAX];
static struct gw_key ours, theirs; /* of the job, and of the tenant */

static int set_up(void **state)
{
    char error[GW_NET_ERROR_MAX];
    (void)state;
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    gw_test_write_file(fabric, "the fabric's\n");
    gw_test_write_file(blue, "open sesame\n");
    gw_test_write_file(green, "open barley\n");
    assert_int_equal(gw_key_setup(), 0);
    assert_int_equal(gw_key_from_file(blue, false, &ours, error), 0);
    assert_int_equal(gw_key_from_file(green, false, &theirs, error), 0);
    return 0;
}

static void start_fabric(void)
{
    char text[GW_DAEMON_CONFIG_MAX], keys[GW_DAEMON_CONFIG_MAX / 2];
    snprintf(keys, sizeof(keys), "switch_keys: [%.128s]\nkey_files: [%.128s, %.128s]\n", fabric,
             blue, green);
    gw_test_daemon_start(&top, "switch", ports[0], keys);
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n%s", ports[0], keys);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
}

static int tear_down(void **state)
{
    for (size_t i = 0; i < GW_COUNT_OF(tenants); i++)
        if (tenants[i].station) {
            gw_station_close(tenants[i].station);
            gw_station_free(tenants[i].station);
            tenants[i].station = NULL;
        }
    unlink(fabric);
    unlink(blue);
    unlink(green);
    return gw_test_end_all(state);
}

static bool is_at_server(int session)
{
    return session == RANK_AT_SERVER || session == HOST_AT_SERVER;
}

static bool is_rank(int session)
{
    return session == RANK_AT_SWITCH || session == RANK_AT_SERVER;
}

/* Opens a process with that key, which attaches with this greeting. */
static void dial_at(int session, const struct gw_key *key, uint16_t port,
                    const struct gw_greeting *greeting)
{
    struct tenant *t = &tenants[session];
    char error[GW_NET_ERROR_MAX], name[32];
    const struct gw_station_cfg cfg = {
        .address = "127.0.0.1",
        .entropies = 1,
        .packets = PKTS,
        .mtu = MTU,
        .peers_max = 4,
        .role = GW_ATTACH_HOST,
        .node_address = gw_key_random_address(),
        .keys = key,
        .key_count = 1,
    };
    *t = (struct tenant){.station = NULL};
    assert_int_equal(gw_station_open(&cfg, &t->station, error), 0);
    snprintf(name, sizeof(name), "127.0.0.1:%u", port);
    assert_true(gw_station_dial(t->station, name, greeting, error) >= 0);
    const struct gw_stranger_cfg own = {
        .seed = 18 + (uint64_t)session,
        .address = cfg.node_address,
        .own_job = greeting->job,
        .job = gw_key_job(&ours, "job"),
        .mtu = MTU,
        .pause = GW_MS / 4,
        .pool = gw_station_pool(t->station),
        .is_unchecked = true,
    };
    gw_stranger_open(&t->stranger, &own);
    gw_stranger_hush(&t->stranger.node);
    gw_loop_add(gw_station_loop(t->station), &t->stranger.node);
}

/* The tenant attaches, and says that it is of this job. */
static void dial(int session, uint32_t job)
{
    const struct gw_greeting greeting = {
        .job = job, .world = job ? 7 : 0, .is_direct = is_at_server(session)};
    dial_at(session, &theirs, ports[is_at_server(session)], &greeting);
}

static void turn(struct tenant *t)
{
    char error[GW_NET_ERROR_MAX];
    struct gw_loop *loop = gw_station_loop(t->station);
    struct gw_neighbour_event event;
    assert_int_equal(gw_station_turn(t->station, gw_loop_now(loop) + GW_MS / 16, error), 0);
    while (gw_station_poll(t->station, &event)) {
        t->last = event;
        t->has_news = true;
        if (event.kind == GW_NEIGHBOUR_UP)
            gw_loop_link(loop, (struct gw_loop_port){0, 0}, event.peer, true);
    }
}

static void await_news(struct tenant *t)
{
    t->has_news = false;
    for (uint32_t i = 0; i < TURNS_MAX && !t->has_news; i++)
        turn(t);
    assert_true(t->has_news);
}

static void hang_up(struct tenant *t)
{
    gw_stranger_close(&t->stranger);
    gw_station_close(t->station);
    gw_station_free(t->station);
    t->station = NULL;
}

/* Before any rank of the job: he says its number, and those of its other parts, with another number
 * of ranks. */
static void come_first(void)
{
    uint32_t job = gw_key_job(&ours, "job");
    const uint32_t numbers[] = {job, gw_job_shard_direct(job), gw_job_shard(job, 1)};
    for (size_t i = 0; i < GW_COUNT_OF(numbers); i++)
        for (int session = 0; session < SESSIONS; session++) {
            if (!is_rank(session))
                continue;
            dial(session, numbers[i]);
            await_news(&tenants[session]);
            assert_int_equal(tenants[session].last.kind, GW_NEIGHBOUR_REFUSED);
            assert_int_equal(tenants[session].last.said.reason, GW_ATTACH_FOREIGN);
            hang_up(&tenants[session]);
        }
}

static void start_job(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct gw_test_worker_cfg cfg = {
            .job = "job",
            .rank = rank,
            .world = RANKS,
            .server = ports[1],
            .switch_ = ports[0],
            .key_file = blue,
            .count = COUNT,
            .deadline_ms = DEADLINE_MS,
        };
        gw_test_worker_start(&ranks[rank], &cfg);
    }
    gw_test_workers_await(ranks, RANKS, 1);
}

static json_int_t number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* What the server says of the job, borrowed. */
static const json_t *job_of(const json_t *status)
{
    char text[16];
    size_t i;
    const json_t *job;
    snprintf(text, sizeof(text), "%08x", gw_key_job(&ours, "job"));
    json_array_foreach(json_object_get(status, "jobs"), i,
                       job) if (strcmp(json_string_value(json_object_get(job, "job")), text) ==
                                0) return job;
    fail_msg("the server does not know job %s", text);
    return NULL;
}

/* Tells the tenant where everybody is. */
static void tell_addresses(void)
{
    json_t *at_switch = gw_test_daemon_status(&top);
    const char *own = strstr(top.log, "address ");
    assert_non_null(own);
    for (int session = 0; session < SESSIONS; session++) {
        struct gw_stranger_cfg *cfg = &tenants[session].stranger.cfg;
        size_t i;
        const json_t *neighbour;
        json_array_foreach(json_object_get(at_switch, "sessions"), i, neighbour)
            cfg->targets[cfg->target_count++] =
            (uint32_t)strtoul(json_string_value(json_object_get(neighbour, "address")), NULL, 16);
        assert_true(cfg->target_count >= RANKS + 1); /* the server, too */
        cfg->switch_address = (uint32_t)strtoul(own + strlen("address "), NULL, 16);
        cfg->switches = 1;
    }
    json_decref(at_switch);
}

/* And how far the job is. */
static void tell_progress(void)
{
    json_t *status = gw_test_daemon_status(&server);
    const json_t *job = job_of(status);
    for (int session = 0; session < SESSIONS; session++) {
        struct gw_stranger_cfg *cfg = &tenants[session].stranger.cfg;
        assert_true(cfg->epoch == 0 || cfg->epoch == number(job, "epoch"));
        cfg->epoch = (uint16_t)number(job, "epoch");
        cfg->seq = (uint32_t)number(job, "results");
        assert_int_not_equal(cfg->epoch, 0);
    }
    json_decref(status);
}

static uint64_t said(const struct tenant *t)
{
    return t->stranger.sent + t->stranger.held;
}

static void attack(uint32_t packets)
{
    bool is_over = false;
    for (int session = 0; session < SESSIONS; session++)
        tenants[session].stranger.node.deadline =
            gw_loop_now(gw_station_loop(tenants[session].station));
    for (uint32_t turns = 0; !is_over; turns++) {
        assert_true(turns < TURNS_MAX);
        is_over = true;
        for (int session = 0; session < SESSIONS; session++) {
            struct tenant *t = &tenants[session];
            turn(t);
            assert_int_equal(t->last.kind, GW_NEIGHBOUR_UP);
            if (said(t) >= packets)
                gw_stranger_hush(&t->stranger.node);
            is_over &= said(t) >= packets;
        }
    }
}

/* What the daemon says of a key, borrowed. */
static const json_t *use_of(const json_t *status, const struct gw_key *key)
{
    char text[20];
    size_t i;
    const json_t *use;
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)key->id);
    json_array_foreach(json_object_get(status, "tenants"), i,
                       use) if (strcmp(json_string_value(json_object_get(use, "key")), text) ==
                                0) return use;
    fail_msg("the daemon does not list key %s", text);
    return NULL;
}

/* Every packet that a host may not say is counted by the daemon, for its key, but for what its
 * socket lost, and messages without payload, which are malformed in datagrams. */
static void expect_forbidden(const struct gw_test_daemon *daemon, bool is_server)
{
    json_int_t forbidden = 0, lost = 0, held = 0;
    for (int session = 0; session < SESSIONS; session++)
        held += is_at_server(session) == is_server ? (json_int_t)tenants[session].stranger.held : 0;
    assert_true(held > STEPS * STEP_PKTS / 4);
    for (uint32_t i = 0; i < LOOKS_MAX && forbidden + lost < held; i++) {
        json_t *status = gw_test_daemon_status(daemon);
        const json_t *datagrams = json_object_get(status, "datagrams");
        forbidden = number(use_of(status, &theirs), "forbidden");
        assert_int_equal(number(datagrams, "forbidden"), forbidden);
        lost = number(datagrams, "kernel_drops") + number(datagrams, "malformed");
        json_decref(status);
    }
    assert_true(forbidden <= held && forbidden + lost >= held);
}

/* Who has what of the daemon: ranks, a rank and a host of the tenant, and the fabric's switch or
 * server. */
static void expect_use(const struct gw_test_daemon *daemon)
{
    json_t *status = gw_test_daemon_status(daemon);
    const json_t *own = use_of(status, &ours), *his = use_of(status, &theirs);
    assert_int_equal(number(own, "sessions"), RANKS);
    assert_int_equal(number(own, "jobs"), 1);
    assert_int_equal(number(own, "forbidden"), 0);
    assert_int_equal(number(his, "sessions"), 2);
    assert_int_equal(number(his, "jobs") > 0, daemon == &server); /* no switch is told of it */
    assert_int_equal(number(his, "sessions_refused"), 0);
    json_decref(status);
}

static void hostile_neighbour__a_job_reduces_beside_him(void **state)
{
    (void)state;
    start_fabric();
    come_first();
    start_job();
    for (int session = 0; session < SESSIONS; session++) {
        dial(session, is_rank(session) ? gw_key_job(&theirs, "job") : 0);
        await_news(&tenants[session]);
        assert_int_equal(tenants[session].last.kind, GW_NEIGHBOUR_UP);
    }
    tell_addresses();
    for (uint32_t step = 1; step <= STEPS; step++) {
        tell_progress();
        attack(step * STEP_PKTS);
        gw_test_workers_await(ranks, RANKS, 1);
    }
    expect_forbidden(&top, false);
    expect_forbidden(&server, true);
    expect_use(&top);
    expect_use(&server);
    json_t *status = gw_test_daemon_status(&server);
    const json_t *job = job_of(status);
    assert_int_equal(number(job, "workers"), RANKS);
    assert_int_equal(number(job, "losses"), 0);
    assert_int_equal(number(job, "epoch"), tenants[0].stranger.cfg.epoch);
    assert_true(number(job, "complete") > 0); /* added up in the switch */
    json_decref(status);
    gw_test_workers_stop(ranks, RANKS);
    for (int session = 0; session < SESSIONS; session++)
        hang_up(&tenants[session]);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&top), 0);
}

/* At a switch of four ports he gets what is for anybody, and his own part; the port of the other
 * key is free when it comes. */
static void hostile_neighbour__leaves_a_port(void **state)
{
    char text[GW_DAEMON_CONFIG_MAX];
    (void)state;
    snprintf(text, sizeof(text), "ports: %d\nkey_files: [%.128s, %.128s]\n", PLACES, blue, green);
    gw_test_daemon_start(&top, "switch", ports[0], text);
    for (int i = 0; i <= PLACES; i++) {
        bool is_his = i < PLACES;
        dial_at(i, is_his ? &theirs : &ours, ports[0], &(struct gw_greeting){.job = 0});
        await_news(&tenants[i]);
        assert_int_equal(tenants[i].last.kind,
                         i == PLACES - 1 ? GW_NEIGHBOUR_REFUSED : GW_NEIGHBOUR_UP);
    }
    assert_int_equal(tenants[PLACES - 1].last.said.reason, GW_ATTACH_ROOM);
    json_t *status = gw_test_daemon_status(&top);
    assert_true(number(use_of(status, &theirs), "sessions_refused") > 0);
    assert_int_equal(number(use_of(status, &ours), "sessions_refused"), 0);
    json_decref(status);
    for (int i = 0; i <= PLACES; i++)
        hang_up(&tenants[i]);
    assert_int_equal(gw_test_daemon_stop(&top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_neighbour__a_job_reduces_beside_him, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hostile_neighbour__leaves_a_port, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
